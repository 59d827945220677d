//! Validations of a host that depend only on the host itself.
//!
//! Validations that depend on the cluster, on its other hosts or on operators are not implemented.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::LazyLock;

use assisted::host::{MediaStatus, Validation, ValidationStatus};
use assisted::inventory_report::{InventoryReport, Memory};
use chrono::{DateTime, TimeDelta, Utc};
use regex::Regex;
use rules::host::status::MEDIA_DISCONNECTED;

use super::disks::eligible_disks;
use super::record::HostRecord;
use crate::Settings;
use crate::error::Error;
use crate::json::to_json_text;
use crate::store::ReportKind;

fn validation(id: &str, passes: bool, message: String) -> Validation {
    let status = if passes { ValidationStatus::Success } else { ValidationStatus::Failure };
    Validation { id: id.to_owned(), status: status.into(), message }
}

/// Returns `true` if the validation blocks the installation of the host.
fn is_blocking(validation: &Validation) -> bool {
    validation.status != ValidationStatus::Success && validation.id != NOT_PARTIALLY_TRUNCATED
}

/// The id of a validation that does not block an installation.
const NOT_PARTIALLY_TRUNCATED: &str = "inventory-not-partially-truncated";

/// The minimum number of CPU cores for any role.
const MIN_CPU_CORES: i64 = 2;

/// The minimum memory for any role, in MiB.
const MIN_MEMORY_MIB: i64 = 8192;

/// The memory that may be missing because firmware and graphics reserve it.
const MEMORY_TOLERANCE_MIB: i64 = 100;

const MIB: i64 = 1 << 20;

/// The most characters of the reasons for a truncated report in the message of a validation. The message is stored with
/// the host.
const MAX_REASONS: usize = 4096;

/// Host names that do not identify a host.
pub(crate) const FORBIDDEN_NAMES: [&str; 6] = [
    "localhost",
    "localhost.localdomain",
    "localhost4",
    "localhost4.localdomain4",
    "localhost6",
    "localhost6.localdomain6",
];

/// The pattern of a host name.
#[expect(clippy::unwrap_used, reason = "the pattern is constant, and a test uses it")]
static HOST_NAME: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"^[a-z0-9][a-z0-9-]{0,62}(?:[.][a-z0-9-]{1,63})*$").unwrap());

/// Checks a host name. The error is the reason for users.
pub(crate) fn check_host_name(name: &str) -> Result<(), String> {
    const MAX_LEN: usize = 63;
    if name.len() > MAX_LEN {
        return Err(format!("hostname is too long, must be {MAX_LEN} characters or less"));
    }
    if !HOST_NAME.is_match(name) {
        return Err(format!("hostname does not pass required regex validation: {name:?}"));
    }
    if FORBIDDEN_NAMES.contains(&name) {
        return Err(format!("hostname {name:?} is forbidden"));
    }
    Ok(())
}

/// Returns the validations that depend only on the inventory report.
pub(crate) fn hardware_validations(report: &InventoryReport<'_>) -> Vec<Validation> {
    vec![
        not_partially_truncated(report),
        not_fully_truncated(report),
        cores(report),
        memory(report),
        disks(report),
    ]
}

/// Returns how much the agent omitted from its report (`full`, `partial` or empty), and the reasons, which are cut at a
/// limit.
fn truncation<'a>(report: &'a InventoryReport<'_>) -> (&'a str, String) {
    let Some(truncation) = &report.truncation else { return ("", String::new()) };
    let reasons = truncation.reasons.iter().enumerate();
    let texts = reasons.flat_map(|(index, reason)| [if index == 0 { "" } else { "; " }, &**reason]);
    (&truncation.kind, texts.flat_map(str::chars).take(MAX_REASONS).collect())
}

fn not_partially_truncated(report: &InventoryReport<'_>) -> Validation {
    match truncation(report) {
        ("partial", reasons) => {
            validation(NOT_PARTIALLY_TRUNCATED, false, format!("Inventory is truncated (partial): {reasons}"))
        }
        ("full", _) => {
            validation(NOT_PARTIALLY_TRUNCATED, true, "Inventory is not partially truncated".to_owned())
        }
        _ => validation(NOT_PARTIALLY_TRUNCATED, true, "Inventory is not truncated".to_owned()),
    }
}

fn not_fully_truncated(report: &InventoryReport<'_>) -> Validation {
    const ID: &str = "inventory-not-fully-truncated";
    match truncation(report) {
        ("full", reasons) => validation(ID, false, format!("Inventory is truncated (full): {reasons}")),
        ("partial", _) => validation(ID, true, "Inventory is partially truncated".to_owned()),
        _ => validation(ID, true, "Inventory is not truncated".to_owned()),
    }
}

/// Returns the message for a resource that is below the minimum for any role.
fn below_minimum(what: &str, minimum: impl fmt::Display, found: impl fmt::Display) -> String {
    format!(
        "The host is not eligible to participate in Openshift Cluster because the minimum required {what} for any role is \
         {minimum}, found only {found}"
    )
}

fn cores(report: &InventoryReport<'_>) -> Validation {
    const ID: &str = "has-min-cpu-cores";
    let found = report.cpu.as_ref().map_or(0, |cpu| cpu.count);
    if found >= MIN_CPU_CORES {
        return validation(ID, true, "Sufficient CPU cores".to_owned());
    }
    validation(ID, false, below_minimum("CPU cores", MIN_CPU_CORES, found))
}

fn memory(report: &InventoryReport<'_>) -> Validation {
    const ID: &str = "has-min-memory";
    let memory = report.memory.clone().unwrap_or_default();
    if memory.physical_bytes >= min_memory(&memory) {
        return validation(ID, true, "Sufficient minimum RAM".to_owned());
    }
    let (minimum, found) = (format_bytes(MIN_MEMORY_MIB * MIB), format_bytes(memory.physical_bytes));
    validation(ID, false, below_minimum("RAM", minimum, found))
}

/// Formats a size in binary units with two decimals: `8.00 GiB`.
fn format_bytes(bytes: i64) -> String {
    const UNITS: [(&str, i64); 4] = [("TiB", 1 << 40), ("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)];
    match UNITS.into_iter().find(|(_, unit)| bytes >= *unit) {
        Some((name, unit)) => {
            let hundredths = i128::from(bytes) * 100 / i128::from(unit);
            format!("{}.{:02} {name}", hundredths / 100, hundredths % 100)
        }
        None => format!("{bytes} bytes"),
    }
}

/// Returns the minimum memory in bytes, less the tolerance.
fn min_memory(memory: &Memory<'_>) -> i64 {
    let minimum = (MIN_MEMORY_MIB - MEMORY_TOLERANCE_MIB) * MIB;
    // `/proc/meminfo` excludes the memory that the kernel reserves at boot.
    if memory.physical_bytes_method == "meminfo" { minimum - minimum / 50 } else { minimum }
}

fn disks(report: &InventoryReport<'_>) -> Validation {
    const ID: &str = "has-min-valid-disks";
    if report.disks.iter().next().is_none() {
        let message = "Failed to detected disks".to_owned();
        return Validation { id: ID.to_owned(), status: ValidationStatus::Error.into(), message };
    }
    if eligible_disks(report).next().is_some() {
        return validation(ID, true, "Sufficient disk capacity".to_owned());
    }
    let message =
        "No eligible disks were found, please check specific disks to see why they are not eligible";
    validation(ID, false, message.to_owned())
}

/// Returns the validation of the host name. It does not check whether another host of the cluster has the same name.
fn host_name(host: &HostRecord) -> Validation {
    const ID: &str = "hostname-valid";
    let name = host.name();
    if FORBIDDEN_NAMES.contains(&name.as_str()) {
        return validation(ID, false, format!("The host name {name} is forbidden"));
    }
    if check_host_name(&name).is_err() {
        let pattern = HOST_NAME.as_str();
        let message = format!("Hostname {name} is forbidden, hostname should match pattern {pattern}");
        return validation(ID, false, message);
    }
    validation(ID, true, format!("Hostname {name} is allowed"))
}

/// Returns the validations of a host that block its installation, and the messages of all failed validations, as status
/// texts list them. The host must have an inventory report.
pub(crate) fn blocking_validations(host: &HostRecord) -> (Vec<Validation>, String) {
    let mut all = host.findings.validations.clone();
    all.push(host_name(host));
    let is_failure = |it: &&Validation| it.status == ValidationStatus::Failure;
    let mut failures: Vec<_> = all.iter().filter(is_failure).map(|it| it.message.as_str()).collect();
    failures.sort_unstable();
    let failures = failures.join(" ; ");
    (all.into_iter().filter(is_blocking).collect(), failures)
}

/// Returns `true` if no validation that blocks the installation is about the minimum hardware.
pub(crate) fn has_minimum_hardware(blocking: &[Validation]) -> bool {
    const HARDWARE: [&str; 3] = ["has-min-valid-disks", "has-min-cpu-cores", "has-min-memory"];
    !blocking.iter().any(|it| HARDWARE.contains(&it.id.as_str()))
}

/// Returns `true` if the host has checked in recently enough to be connected.
pub(crate) fn is_connected(host: &HostRecord, settings: &Settings, now: DateTime<Utc>) -> bool {
    let Some(last) = host.checked_in_at.0 else { return false };
    now.signed_duration_since(last).to_std().is_ok_and(|silence| silence <= settings.max_silence)
        || last > now
}

/// Returns the time since when a host must have checked in to be connected.
pub(crate) fn connected_since(settings: &Settings, now: DateTime<Utc>) -> DateTime<Utc> {
    let silence = TimeDelta::from_std(settings.max_silence).ok();
    // A limit that is longer than the calendar never disconnects a host.
    silence.and_then(|silence| now.checked_sub_signed(silence)).unwrap_or(DateTime::<Utc>::MIN_UTC)
}

/// Returns `true` unless the agent has reported that it cannot read its boot media.
pub(crate) fn has_media(host: &HostRecord) -> bool {
    host.findings.media != Some(MediaStatus::Disconnected)
}

/// Returns all validations of a host by category, as JSON for the API.
pub(crate) fn validations_json(
    host: &HostRecord,
    settings: &Settings,
    now: DateTime<Utc>,
) -> Result<String, Error> {
    let checked = |id: &str, passes: bool, [success, failure]: [&str; 2]| {
        validation(id, passes, if passes { success } else { failure }.to_owned())
    };
    let network = [
        checked(
            "connected",
            is_connected(host, settings, now),
            ["Host is connected", "Host is disconnected"],
        ),
        checked("media-connected", has_media(host), ["Media device is connected", MEDIA_DISCONNECTED]),
    ];
    let has_inventory = host.findings.has_report(ReportKind::Inventory);
    let texts = ["Valid inventory exists for the host", "Inventory has not been received for the host"];
    let valid_inventory = checked("has-inventory", has_inventory, texts);
    let name = host_name(host);
    let mut hardware = vec![&valid_inventory];
    if has_inventory {
        hardware.extend(&host.findings.validations);
        hardware.push(&name);
    }
    let all = BTreeMap::from([("hardware", hardware), ("network", network.iter().collect())]);
    to_json_text("validations_info", &all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::inventory_report::parse;

    #[test]
    fn host_names_are_dns_names() {
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
    fn reasons_of_a_truncated_report_are_joined_and_cut() {
        let message = |reasons: &[&str]| {
            let report =
                serde_json::json!({"truncation": {"type": "partial", "reasons": reasons}}).to_string();
            not_partially_truncated(&parse(&report).unwrap()).message
        };
        let before = "Inventory is truncated (partial): ";
        assert_eq!(message(&[]), before);
        assert_eq!(message(&["one", "two", ""]), format!("{before}one; two; "));
        let long = "ö".repeat(MAX_REASONS - 1);
        assert_eq!(message(&[&long, "two", "three"]), format!("{before}{long};"));
    }

    #[test]
    fn memory_may_be_slightly_below_the_minimum() {
        let enough = |bytes: i64, method: &str| {
            let memory = Memory {
                physical_bytes: bytes,
                physical_bytes_method: method.to_owned().into(),
                usable_bytes: 0,
            };
            bytes >= min_memory(&memory)
        };
        assert!(enough(8092 * MIB, "dmidecode"));
        assert!(!enough(8092 * MIB - 1, "dmidecode"));
        assert!(enough(7931 * MIB, "meminfo"));
        assert!(!enough(7930 * MIB, "meminfo"));
    }
}
