//! Whether a machine can be installed, as far as the machine alone tells.
//!
//! What depends on the cluster, on its other hosts and on operators is not looked at here.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use chrono::{DateTime, Utc};
use regex::Regex;
use serde::{Deserialize, Serialize};

use super::machine::{LEAST_DISK_GB, Machine, Memory};
use super::record::HostRecord;
use super::status::MediaStatus;
use super::words::words;
use crate::inventory::Settings;

words! {
    /// What came out of a validation.
    #[schema(as = validation_status)]
    ValidationStatus {
        /// It is as it should be.
        Success = "success",
        /// It is not.
        Failure = "failure",
        /// It is not known yet.
        Pending = "pending",
        /// It cannot be said.
        Error = "error",
    }
}

/// A validation of a host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Validation {
    /// Its id; stable.
    pub id: String,
    /// What came out.
    pub status: ValidationStatus,
    /// In words.
    pub message: String,
}

impl Validation {
    fn new(id: &str, holds: bool, message: String) -> Self {
        let status = if holds { ValidationStatus::Success } else { ValidationStatus::Failure };
        Self { id: id.to_owned(), status, message }
    }

    /// Whether it stands in the way of an installation.
    fn is_in_the_way(&self) -> bool {
        self.status != ValidationStatus::Success && self.id != PARTLY_TRUNCATED
    }
}

/// Reported, and in nobody's way.
const PARTLY_TRUNCATED: &str = "inventory-not-partially-truncated";

/// The least that any role needs.
const LEAST_CORES: i64 = 2;
const LEAST_MEMORY_MIB: i64 = 8192;

/// What may be missing of the memory: firmware and graphics take their part.
const MEMORY_TOLERANCE_MIB: i64 = 100;

const MIB: i64 = 1 << 20;

/// Names that are no names.
const FORBIDDEN_NAMES: [&str; 6] = [
    "localhost",
    "localhost.localdomain",
    "localhost4",
    "localhost4.localdomain4",
    "localhost6",
    "localhost6.localdomain6",
];

#[expect(clippy::unwrap_used, reason = "the pattern is ours, and a test uses it")]
static HOST_NAME: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"^[a-z0-9][a-z0-9-]{0,62}(?:[.][a-z0-9-]{1,63})*$").unwrap());

/// What is wrong with the name of a host.
pub(super) fn check_host_name(name: &str) -> Result<(), String> {
    const MOST: usize = 63;
    if name.len() > MOST {
        return Err(format!("hostname is too long, must be {MOST} characters or less"));
    }
    if !HOST_NAME.is_match(name) {
        return Err(format!("hostname does not pass required regex validation: {name:?}"));
    }
    if FORBIDDEN_NAMES.contains(&name) {
        return Err(format!("hostname {name:?} is forbidden"));
    }
    Ok(())
}

/// What a machine says about whether it can be installed.
pub(super) fn of_machine(machine: &Machine) -> Vec<Validation> {
    let truncation = machine.truncation.as_ref().map(|it| it.kind.as_str()).unwrap_or_default();
    vec![
        cores(machine),
        memory(machine),
        disks(machine),
        Validation::new(
            "inventory-not-fully-truncated",
            truncation != "full",
            if truncation == "full" {
                "The inventory is too large: nothing of it came"
            } else {
                "The inventory came"
            }
            .to_owned(),
        ),
        Validation::new(
            PARTLY_TRUNCATED,
            truncation != "partial",
            if truncation == "partial" {
                "The inventory is too large: a part is missing"
            } else {
                "The inventory is whole"
            }
            .to_owned(),
        ),
    ]
}

fn cores(machine: &Machine) -> Validation {
    let found = machine.cpu.as_ref().map_or(0, |cpu| cpu.count);
    let message = format!("{found} CPU cores are there, and at least {LEAST_CORES} are needed");
    Validation::new("has-min-cpu-cores", found >= LEAST_CORES, message)
}

fn memory(machine: &Machine) -> Validation {
    let memory = machine.memory.clone().unwrap_or_default();
    let found = memory.physical_bytes / MIB;
    let message = format!("{found} MiB of memory are there, and at least {LEAST_MEMORY_MIB} MiB are needed");
    Validation::new("has-min-memory", memory.physical_bytes >= least_memory(&memory), message)
}

fn least_memory(memory: &Memory) -> i64 {
    let least = (LEAST_MEMORY_MIB - MEMORY_TOLERANCE_MIB) * MIB;
    // What Linux itself counts lacks what it took at its start.
    if memory.physical_bytes_method == "meminfo" { least - least / 50 } else { least }
}

fn disks(machine: &Machine) -> Validation {
    const ID: &str = "has-min-valid-disks";
    if machine.disks.iter().next().is_none() {
        let message = "The inventory has no disks".to_owned();
        return Validation { id: ID.to_owned(), status: ValidationStatus::Error, message };
    }
    let found = machine.eligible_disks().count();
    let message =
        format!("{found} disks of at least {LEAST_DISK_GB} GB may hold a system, and one is needed");
    Validation::new(ID, found > 0, message)
}

/// How a host is called: whether another machine may have that name is not looked at.
fn host_name(host: &HostRecord) -> Validation {
    match check_host_name(&host.name()) {
        Ok(()) => Validation::new("hostname-valid", true, format!("Hostname {} is allowed", host.name())),
        Err(reason) => Validation::new("hostname-valid", false, reason),
    }
}

/// What stands in the way of an installation. An inventory has to be there.
pub(super) fn what_is_missing(host: &HostRecord) -> Vec<String> {
    let mut all = host.findings.validations.clone();
    all.push(host_name(host));
    all.into_iter().filter(Validation::is_in_the_way).map(|it| it.message).collect()
}

/// Whether the agent of a host was heard of lately.
pub(super) fn is_connected(host: &HostRecord, settings: &Settings, now: DateTime<Utc>) -> bool {
    let Some(last) = host.checked_in_at.0 else { return false };
    now.signed_duration_since(last).to_std().is_ok_and(|silence| silence <= settings.most_silence)
        || last > now
}

/// Whether it can read what it booted from, as far as anybody knows.
pub(super) fn has_media(host: &HostRecord) -> bool {
    host.findings.media != Some(MediaStatus::Disconnected)
}

/// All validations of a host, as the API shows them: JSON, by category.
pub(super) fn shown(host: &HostRecord, settings: &Settings, now: DateTime<Utc>) -> String {
    let connected = is_connected(host, settings, now);
    let network = vec![
        Validation::new(
            "connected",
            connected,
            if connected { "The host was heard of lately" } else { "The host is silent" }.to_owned(),
        ),
        Validation::new(
            "media-connected",
            has_media(host),
            if has_media(host) { "The media are readable" } else { "The media cannot be read" }.to_owned(),
        ),
    ];
    let has_inventory = !host.findings.inventory.is_empty();
    let mut hardware = vec![Validation::new(
        "has-inventory",
        has_inventory,
        if has_inventory { "There is an inventory" } else { "There is no inventory yet" }.to_owned(),
    )];
    if has_inventory {
        hardware.extend(host.findings.validations.iter().cloned());
        hardware.push(host_name(host));
    }
    let all = BTreeMap::from([("hardware", hardware), ("network", network)]);
    serde_json::to_string(&all).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_that_dns_knows() {
        for name in ["a", "node-1", "node-1.example.com", "0a"] {
            check_host_name(name).unwrap();
        }
        let long = "a".repeat(64);
        for name in ["", "-a", "A", "a_b", "a..b", "a.", "localhost", "localhost6.localdomain6", "a\n", &long]
        {
            assert!(check_host_name(name).is_err(), "{name:?}");
        }
    }

    #[test]
    fn a_little_memory_may_be_missing() {
        let enough = |bytes: i64, method: &str| {
            let memory =
                Memory { physical_bytes: bytes, physical_bytes_method: method.to_owned(), usable_bytes: 0 };
            bytes >= least_memory(&memory)
        };
        assert!(enough(8092 * MIB, "dmidecode"));
        assert!(!enough(8092 * MIB - 1, "dmidecode"));
        assert!(enough(7931 * MIB, "meminfo"));
        assert!(!enough(7930 * MIB, "meminfo"));
    }
}
