//! Whether a machine can be installed, as far as the machine alone tells.
//!
//! What depends on the cluster, on its other hosts and on operators is not looked at here.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::LazyLock;

use chrono::{DateTime, Utc};
use regex::Regex;
use serde::{Deserialize, Serialize};

use super::machine::{Machine, Memory};
use super::record::HostRecord;
use super::status::MediaStatus;
use super::string_enum::string_enum;
use crate::inventory::Settings;

string_enum! {
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

    /// Whether it blocks the installation of the host.
    fn is_blocking(&self) -> bool {
        self.status != ValidationStatus::Success && self.id != PARTLY_TRUNCATED
    }
}

/// The status text of a host whose discovery media are gone.
pub(super) const MEDIA_DISCONNECTED: &str = "Unable to read from the discovery media. It was either disconnected or poor network \
                                             conditions prevented it from being read. Try using the minimal ISO option and be \
                                             sure to keep the media connected until the installation is completed";

/// Reported, but blocks nothing.
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

/// The validations that rest on the inventory report alone.
pub(super) fn of_machine(machine: &Machine) -> Vec<Validation> {
    vec![partly_truncated(machine), fully_truncated(machine), cores(machine), memory(machine), disks(machine)]
}

/// What the agent left out of its report: `full`, `partial` or nothing, with its reasons.
fn truncation(machine: &Machine) -> (&str, String) {
    let Some(truncation) = &machine.truncation else { return ("", String::new()) };
    let reasons: Vec<_> = truncation.reasons.iter().map(String::as_str).collect();
    (&truncation.kind, reasons.join("; "))
}

fn partly_truncated(machine: &Machine) -> Validation {
    match truncation(machine) {
        ("partial", reasons) => {
            Validation::new(PARTLY_TRUNCATED, false, format!("Inventory is truncated (partial): {reasons}"))
        }
        ("full", _) => {
            Validation::new(PARTLY_TRUNCATED, true, "Inventory is not partially truncated".to_owned())
        }
        _ => Validation::new(PARTLY_TRUNCATED, true, "Inventory is not truncated".to_owned()),
    }
}

fn fully_truncated(machine: &Machine) -> Validation {
    const ID: &str = "inventory-not-fully-truncated";
    match truncation(machine) {
        ("full", reasons) => Validation::new(ID, false, format!("Inventory is truncated (full): {reasons}")),
        ("partial", _) => Validation::new(ID, true, "Inventory is partially truncated".to_owned()),
        _ => Validation::new(ID, true, "Inventory is not truncated".to_owned()),
    }
}

/// The text of a resource of which the host has too little for any role.
fn too_little(what: &str, least: impl fmt::Display, found: impl fmt::Display) -> String {
    format!(
        "The host is not eligible to participate in Openshift Cluster because the minimum required {what} for any role is \
         {least}, found only {found}"
    )
}

fn cores(machine: &Machine) -> Validation {
    const ID: &str = "has-min-cpu-cores";
    let found = machine.cpu.as_ref().map_or(0, |cpu| cpu.count);
    if found >= LEAST_CORES {
        return Validation::new(ID, true, "Sufficient CPU cores".to_owned());
    }
    Validation::new(ID, false, too_little("CPU cores", LEAST_CORES, found))
}

fn memory(machine: &Machine) -> Validation {
    const ID: &str = "has-min-memory";
    let memory = machine.memory.clone().unwrap_or_default();
    if memory.physical_bytes >= least_memory(&memory) {
        return Validation::new(ID, true, "Sufficient minimum RAM".to_owned());
    }
    let (least, found) = (shown_bytes(LEAST_MEMORY_MIB * MIB), shown_bytes(memory.physical_bytes));
    Validation::new(ID, false, too_little("RAM", least, found))
}

/// Bytes in binary units with two decimals: `8.00 GiB`.
fn shown_bytes(bytes: i64) -> String {
    const UNITS: [(&str, i64); 4] = [("TiB", 1 << 40), ("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)];
    match UNITS.into_iter().find(|(_, unit)| bytes >= *unit) {
        Some((name, unit)) => {
            let hundredths = i128::from(bytes) * 100 / i128::from(unit);
            format!("{}.{:02} {name}", hundredths / 100, hundredths % 100)
        }
        None => format!("{bytes} bytes"),
    }
}

fn least_memory(memory: &Memory) -> i64 {
    let least = (LEAST_MEMORY_MIB - MEMORY_TOLERANCE_MIB) * MIB;
    // The kernel's own count lacks what the kernel took at boot.
    if memory.physical_bytes_method == "meminfo" { least - least / 50 } else { least }
}

fn disks(machine: &Machine) -> Validation {
    const ID: &str = "has-min-valid-disks";
    if machine.disks.iter().next().is_none() {
        let message = "Failed to detected disks".to_owned();
        return Validation { id: ID.to_owned(), status: ValidationStatus::Error, message };
    }
    if machine.eligible_disks().next().is_some() {
        return Validation::new(ID, true, "Sufficient disk capacity".to_owned());
    }
    let message =
        "No eligible disks were found, please check specific disks to see why they are not eligible";
    Validation::new(ID, false, message.to_owned())
}

/// The name of a host. Whether another host of the cluster has the same name is not checked here.
fn host_name(host: &HostRecord) -> Validation {
    const ID: &str = "hostname-valid";
    let name = host.name();
    if FORBIDDEN_NAMES.contains(&name.as_str()) {
        return Validation::new(ID, false, format!("The host name {name} is forbidden"));
    }
    if check_host_name(&name).is_err() {
        let pattern = HOST_NAME.as_str();
        let message = format!("Hostname {name} is forbidden, hostname should match pattern {pattern}");
        return Validation::new(ID, false, message);
    }
    Validation::new(ID, true, format!("Hostname {name} is allowed"))
}

/// The validations of a host that block its installation, and the messages of all failed ones, as status texts list them. The host
/// must have an inventory report.
pub(super) fn blocking(host: &HostRecord) -> (Vec<Validation>, String) {
    let mut all = host.findings.validations.clone();
    all.push(host_name(host));
    let is_failure = |it: &&Validation| it.status == ValidationStatus::Failure;
    let mut failures: Vec<_> = all.iter().filter(is_failure).map(|it| it.message.as_str()).collect();
    failures.sort_unstable();
    let failures = failures.join(" ; ");
    (all.into_iter().filter(Validation::is_blocking).collect(), failures)
}

/// Whether validations that block an installation are about the least that every role needs.
pub(super) fn has_minimum_hardware(blocking: &[Validation]) -> bool {
    const HARDWARE: [&str; 3] = ["has-min-valid-disks", "has-min-cpu-cores", "has-min-memory"];
    !blocking.iter().any(|it| HARDWARE.contains(&it.id.as_str()))
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
    let checked = |id: &str, holds: bool, [good, bad]: [&str; 2]| {
        Validation::new(id, holds, if holds { good } else { bad }.to_owned())
    };
    let network = vec![
        checked(
            "connected",
            is_connected(host, settings, now),
            ["Host is connected", "Host is disconnected"],
        ),
        checked("media-connected", has_media(host), ["Media device is connected", MEDIA_DISCONNECTED]),
    ];
    let has_inventory = !host.findings.inventory.is_empty();
    let texts = ["Valid inventory exists for the host", "Inventory has not been received for the host"];
    let mut hardware = vec![checked("has-inventory", has_inventory, texts)];
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
