//! Selects the disk on which OpenShift is installed, and the disks that the installation formats.

use super::eligibility::DiskReasons;
use super::{FC, ISCSI, MULTIPATH};
use crate::summary::{DiskSummary, InventorySummary};

/// The disk that OpenShift is installed on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChosenDisk {
    /// The disk's id, as in the inventory report. Users and API requests select disks by this id.
    pub id: String,
    /// Device path, such as `/dev/sda`.
    pub path: String,
}

/// Returns the installation disk: the disk named `preferred` if it is eligible, or else the best eligible disk. Returns
/// `None` if no disk is eligible.
///
/// `reasons` contains the [`DiskReasons`] of each disk of the inventory, in the same order. Bootable disks are
/// preferred. NVMe disks, and then SSDs, come last so that workloads can use them. Among otherwise equal disks, the
/// smallest is best.
#[must_use]
pub fn installation_disk(
    inventory: &InventorySummary,
    reasons: &[DiskReasons],
    preferred: Option<&str>,
) -> Option<ChosenDisk> {
    let disks = inventory.disks.iter().zip(reasons);
    let eligible = disks.filter(|(_, reasons)| reasons.is_eligible()).map(|(disk, _)| disk);
    let is_chosen = |disk: &&DiskSummary| preferred.is_some_and(|name| is_named(disk, name));
    let disk = eligible.clone().find(is_chosen).or_else(|| eligible.min_by_key(|disk| rank(disk)))?;
    Some(ChosenDisk { id: disk.id.to_string(), path: format!("/dev/{}", disk.name) })
}

/// Returns the ids of the disks that the installation formats, because the machine might otherwise boot from them.
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

/// Returns a sort key: the best installation disk comes first. The drive type sorts as text, so `HDD` precedes `SSD`.
fn rank(disk: &DiskSummary) -> (bool, bool, &str, i64, &str) {
    (!disk.bootable, disk.name.starts_with("nvme"), &disk.drive_type, disk.size_bytes, &disk.hctl)
}
