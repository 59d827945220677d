//! The disks that an installation uses.

use super::eligibility::DiskReasons;
use super::{FC, ISCSI, MULTIPATH};
use crate::summary::{DiskSummary, InventorySummary};

/// The disk that OpenShift is installed on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChosenDisk {
    /// Id.
    pub id: String,
    /// Device path, such as `/dev/sda`.
    pub path: String,
}

/// Returns the installation disk: the one with the name `chosen` if it is eligible, or else the best eligible disk.
/// Returns `None` if no disk is eligible. `reasons` are those of the inventory's disks, in their order.
///
/// Bootable disks are preferred. NVMe disks and then SSDs are left for workloads. Among equal disks, the smallest is
/// best.
#[must_use]
pub fn installation_disk(
    inventory: &InventorySummary,
    reasons: &[DiskReasons],
    chosen: Option<&str>,
) -> Option<ChosenDisk> {
    let disks = inventory.disks.iter().zip(reasons);
    let eligible = disks.filter(|(_, reasons)| reasons.is_eligible()).map(|(disk, _)| disk);
    let is_chosen = |disk: &&DiskSummary| chosen.is_some_and(|name| is_named(disk, name));
    let disk = eligible.clone().find(is_chosen).or_else(|| eligible.min_by_key(|disk| rank(disk)))?;
    Some(ChosenDisk { id: disk.id.to_string(), path: format!("/dev/{}", disk.name) })
}

/// Returns the ids of the disks that an installation formats, because the machine might boot from them.
#[must_use]
pub fn disks_to_be_formatted(inventory: &InventorySummary) -> Vec<String> {
    let formatted = inventory.disks.iter().filter(|disk| {
        let is_mmc = disk.by_path.contains("mmcblk") || disk.name.starts_with("mmcblk");
        let is_excluded_type = matches!(&*disk.drive_type, FC | ISCSI | "LVM" | MULTIPATH);
        disk.bootable && !disk.removable && !is_mmc && !is_excluded_type && !disk.is_installation_media
    });
    formatted.map(|disk| disk.id.to_string()).collect()
}

/// Returns `true` if `name` is the disk's id, its `by-path` link or its device path.
#[must_use]
pub fn is_named(disk: &DiskSummary, name: &str) -> bool {
    let is_device_path = || !disk.name.is_empty() && name.strip_prefix("/dev/") == Some(&disk.name);
    !name.is_empty() && (*disk.id == *name || *disk.by_path == *name || is_device_path())
}

/// Returns the order of preference as installation disk, lowest first. HDDs come before SSDs as texts.
fn rank(disk: &DiskSummary) -> (bool, bool, &str, i64, &str) {
    (!disk.bootable, disk.name.starts_with("nvme"), &disk.drive_type, disk.size_bytes, &disk.hctl)
}
