//! The disks of a host: which ones are eligible for an installation, and which one is the installation disk.

use std::borrow::Cow;

use assisted::List;
use assisted::inventory_report::{Disk, Eligibility, InventoryReport};

use super::record::InstallationDisk;

/// The minimum size of an installation disk, in GB.
const MIN_DISK_GB: i64 = 100;

/// Bytes of a GB: disk sizes are in decimal units.
const GB: i64 = 1_000_000_000;

/// Returns the disks that are eligible for the installation.
pub(crate) fn eligible_disks<'a, 'b>(report: &'b InventoryReport<'a>) -> impl Iterator<Item = &'b Disk<'a>> {
    report.disks.iter().filter(|disk| disk.installation_eligibility.eligible)
}

/// Returns the installation disk: the chosen one if it is eligible, or else the best eligible one.
pub(crate) fn installation_disk(
    report: &InventoryReport<'_>,
    chosen: Option<&InstallationDisk>,
) -> Option<InstallationDisk> {
    let is_chosen = |disk: &&Disk<'_>| chosen.is_some_and(|chosen| is_named(disk, &chosen.id));
    let chosen = eligible_disks(report).find(is_chosen);
    chosen.or_else(|| eligible_disks(report).min_by_key(|disk| rank(disk))).map(as_installation_disk)
}

/// Returns the ids of the disks that an installation formats, because the machine might boot from them.
pub(crate) fn disks_to_format(report: &InventoryReport<'_>) -> Vec<String> {
    let formatted = report.disks.iter().filter(|disk| {
        let is_mmc = disk.by_path.contains("mmcblk") || disk.name.starts_with("mmcblk");
        let is_excluded_type = matches!(&*disk.drive_type, "FC" | "iSCSI" | "LVM" | "Multipath");
        disk.bootable && !disk.removable && !is_mmc && !is_excluded_type && !disk.is_installation_media
    });
    formatted.map(|disk| disk_id(disk).into_owned()).collect()
}

/// Returns the id of the disk, or its device path if the agent reports no id.
pub(crate) fn disk_id<'a>(disk: &'a Disk<'_>) -> Cow<'a, str> {
    if disk.id.is_empty() { device_path(disk) } else { Cow::Borrowed(&disk.id) }
}

/// Returns the device path of the disk, such as `/dev/sda`.
fn device_path<'a>(disk: &'a Disk<'_>) -> Cow<'a, str> {
    if disk.path.is_empty() { Cow::Owned(path_by_name(disk)) } else { Cow::Borrowed(&disk.path) }
}

fn path_by_name(disk: &Disk<'_>) -> String {
    format!("/dev/{}", disk.name)
}

/// Returns `true` if `name` is the disk's id, its `by-path` link or its device path.
pub(crate) fn is_named(disk: &Disk<'_>, name: &str) -> bool {
    !name.is_empty()
        && (disk_id(disk) == name
            || disk.by_path == name
            || device_path(disk) == name
            || path_by_name(disk) == name)
}

pub(crate) fn as_installation_disk(disk: &Disk<'_>) -> InstallationDisk {
    InstallationDisk { id: disk_id(disk).into_owned(), path: device_path(disk).into_owned() }
}

/// Adds the reasons that make the disk ineligible to those of the agent.
pub(crate) fn evaluate_eligibility(disk: &mut Disk<'_>, architecture: &str) {
    let mut reasons = disk.installation_eligibility.not_eligible_reasons.0.take().unwrap_or_default();
    if disk.size_bytes < MIN_DISK_GB * GB {
        let (found, minimum) = (format_size(disk.size_bytes), format_size(MIN_DISK_GB * GB));
        let reason = if found == minimum {
            let short = format_size((MIN_DISK_GB * GB).saturating_sub(disk.size_bytes));
            format!(
                "Disk is too small (disk only has {found}, but {minimum} are required) (short by {short})"
            )
        } else {
            format!("Disk is too small (disk only has {found}, but {minimum} are required)")
        };
        reasons.push(reason.into());
    }
    if !allowed_drive_types(architecture).any(|allowed| disk.drive_type == allowed) {
        let allowed: Vec<_> = allowed_drive_types(architecture).collect();
        let (found, allowed) = (&disk.drive_type, allowed.join(", "));
        reasons.push(format!("Drive type is {found}, it must be one of {allowed}.").into());
    }
    disk.installation_eligibility =
        Eligibility { eligible: reasons.is_empty(), not_eligible_reasons: List(Some(reasons)) };
}

/// Returns the order of preference as installation disk, lowest first: bootable disks, then disks other than NVMe,
/// then by drive type (HDD before SSD), then smaller disks.
fn rank<'a>(disk: &'a Disk<'_>) -> (bool, bool, &'a str, i64, &'a str) {
    (!disk.bootable, disk.name.starts_with("nvme"), &disk.drive_type, disk.size_bytes, &disk.hctl)
}

/// Returns the drive types that an installation disk can have.
fn allowed_drive_types(architecture: &str) -> impl Iterator<Item = &'static str> {
    let on_all = ["HDD", "SSD", "Multipath", "RAID", "iSCSI"];
    let others: &[&str] = match architecture {
        "x86_64" => &["FC"],
        "s390x" => &["FC", "ECKD (ESE)", "ECKD", "FBA"],
        _ => &[],
    };
    on_all.into_iter().chain(others.iter().copied())
}

/// Formats a size in decimal units, with at most three decimals, rounded up: `53.688 GB`.
fn format_size(bytes: i64) -> String {
    const UNITS: [(&str, i64); 4] = [("TB", 1_000_000_000_000), ("GB", GB), ("MB", 1_000_000), ("KB", 1000)];
    match UNITS.into_iter().find(|(_, unit)| bytes >= *unit) {
        Some((name, unit)) => {
            let thousandths = (i128::from(bytes) * 1000 + i128::from(unit) - 1) / i128::from(unit);
            let text = format!("{}.{:03}", thousandths / 1000, thousandths % 1000);
            format!("{} {name}", text.trim_end_matches('0').trim_end_matches('.'))
        }
        None => format!("{bytes} B"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::inventory_report::{evaluate, parse};

    fn report(disks: &str) -> String {
        format!(r#"{{"cpu": {{"architecture": "x86_64"}}, "disks": {disks}}}"#)
    }

    fn evaluated(report: &str) -> InventoryReport<'_> {
        let mut inventory = parse(report).unwrap();
        evaluate(&mut inventory);
        inventory
    }

    #[test]
    fn small_disks_and_optical_drives_are_ineligible() {
        let report = report(
            r#"[{"id": "small", "drive_type": "SSD", "size_bytes": 99999999999},
                {"id": "dvd", "drive_type": "ODD", "size_bytes": 100000000000},
                {"id": "used", "drive_type": "HDD", "size_bytes": 100000000000,
                 "installation_eligibility": {"eligible": true, "not_eligible_reasons": ["It is mounted"]}},
                {"id": "good", "drive_type": "FC", "size_bytes": 100000000000}]"#,
        );
        let inventory = evaluated(&report);
        let good: Vec<_> = eligible_disks(&inventory).map(disk_id).collect();
        assert_eq!(good, ["good"]);
        let reasons: Vec<_> = inventory
            .disks
            .iter()
            .map(|disk| disk.installation_eligibility.not_eligible_reasons.clone())
            .collect();
        assert_eq!(
            reasons[0].0.as_deref().unwrap(),
            ["Disk is too small (disk only has 100 GB, but 100 GB are required) (short by 1 B)"]
        );
        assert_eq!(reasons[2].0.as_deref().unwrap(), ["It is mounted"]);
        assert_eq!(reasons[3].0.as_deref().unwrap(), [""; 0]);
    }

    #[test]
    fn installation_disk_is_the_chosen_one_or_the_best() {
        let report = report(
            r#"[{"id": "n", "name": "nvme0n1", "drive_type": "HDD", "size_bytes": 100000000000},
                {"id": "s", "name": "sdb", "drive_type": "SSD", "size_bytes": 100000000000},
                {"id": "h", "name": "sda", "drive_type": "HDD", "size_bytes": 200000000000},
                {"id": "g", "name": "sdc", "by_path": "by-path-g", "drive_type": "HDD", "size_bytes": 300000000000}]"#,
        );
        let inventory = evaluated(&report);
        let best = installation_disk(&inventory, None).unwrap();
        assert_eq!((best.id.as_str(), best.path.as_str()), ("h", "/dev/sda"));
        for (name, id) in [("g", "g"), ("/dev/sdc", "g"), ("by-path-g", "g"), ("sdc", "h"), ("", "h")] {
            let chosen = InstallationDisk { id: name.to_owned(), path: String::new() };
            let found = installation_disk(&inventory, Some(&chosen)).unwrap();
            assert_eq!(found.id, id, "{name}");
        }
        let chosen = InstallationDisk { id: "g".to_owned(), path: String::new() };
        assert_eq!(installation_disk(&inventory, Some(&chosen)).unwrap().id, "g");
        let missing = InstallationDisk { id: "x".to_owned(), path: String::new() };
        assert_eq!(installation_disk(&inventory, Some(&missing)).unwrap().id, "h");
    }

    #[test]
    fn extreme_disk_sizes_do_not_overflow() {
        let report = report(
            r#"[{"drive_type": "SSD", "size_bytes": 9223372036854775807},
                {"drive_type": "SSD", "size_bytes": -9223372036854775808}]"#,
        );
        let inventory = evaluated(&report);
        assert_eq!(eligible_disks(&inventory).count(), 1);
    }
}
