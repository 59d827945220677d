//! The disks of a host: which disks OpenShift can be installed on, and which disk it will be installed on.
//!
//! The agent reports reasons why a disk is not eligible, such as a mounted partition. [`eligibility`] adds reasons that
//! follow from the [requirements](crate::requirements), the OpenShift version and the other hardware. A disk without
//! any reason is eligible, and [`installation_disk`] selects one of the eligible disks. [`splice_eligibility`] writes
//! the reasons into a stored inventory report.

mod choice;
mod eligibility;
mod iscsi;
mod multipath;
mod size;
mod splice;
#[cfg(test)]
mod tests;

use ignition::version::Version;

pub use choice::{ChosenDisk, disks_to_be_formatted, installation_disk, is_named};
pub use eligibility::{DiskReasons, eligibility, reasons_in_report};
pub use splice::{SpliceError, splice_eligibility};

use crate::requirements::HostRequirements;

/// Number of bytes in a GB. Disk sizes use decimal units.
const GB: i64 = 1_000_000_000;

/// Drive type of disks connected over Fibre Channel.
const FC: &str = "FC";
/// Drive type of disks connected over iSCSI.
const ISCSI: &str = "iSCSI";
/// Drive type of devices that combine several connections to the same disk.
const MULTIPATH: &str = "Multipath";

/// The conditions for an installation disk of one host.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DiskRules {
    /// Minimum size of the disk in bytes.
    pub min_bytes: i64,
    /// Allowed drive types, in the order in which messages list them.
    pub drive_types: Vec<&'static str>,
}

impl DiskRules {
    /// Creates the rules for a host with these requirements, OpenShift version and CPU architecture. If the version is
    /// `None`, the rules of the newest OpenShift apply.
    #[must_use]
    pub fn new(requirements: &HostRequirements, version: Option<&Version>, architecture: &str) -> Self {
        Self {
            // No disk has `i64::MAX` bytes, so saturation does not change any result.
            min_bytes: requirements.disk_size_gb.saturating_mul(GB),
            drive_types: allowed_drive_types(version, architecture),
        }
    }

    fn allows(&self, drive_type: &str) -> bool {
        self.drive_types.contains(&drive_type)
    }
}

/// Returns the allowed drive types of an installation disk, in the order in which messages list them. If the version is
/// `None`, the drive types of the newest OpenShift apply.
#[must_use]
pub fn allowed_drive_types(version: Option<&Version>, architecture: &str) -> Vec<&'static str> {
    let is_since = |minor: u64| version.is_none_or(|version| version.minor() >= (4, minor));
    let mut allowed = vec!["HDD", "SSD", MULTIPATH];
    if is_since(14) {
        allowed.push("RAID");
    }
    if is_since(15) {
        allowed.push(ISCSI);
    }
    match architecture {
        "x86_64" => allowed.push(FC),
        "s390x" => allowed.extend([FC, "ECKD (ESE)", "ECKD", "FBA"]),
        _ => {}
    }
    allowed
}
