//! The disks of a host: which ones OpenShift can be installed on, and which one it is installed on.
//!
//! The agent reports reasons against an installation on a disk, such as a mounted partition. [`eligibility`] adds the
//! reasons that follow from the [requirements](crate::requirements), the OpenShift version and the other hardware. A
//! disk without any reason is eligible, and [`installation_disk`] chooses among these. [`splice_eligibility`] writes
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

/// Bytes of a GB: disk sizes are in decimal units.
const GB: i64 = 1_000_000_000;

/// Drive type of disks that are connected over Fibre Channel.
const FC: &str = "FC";
/// Drive type of disks that are connected over iSCSI.
const ISCSI: &str = "iSCSI";
/// Drive type of devices that combine several connections to one disk.
const MULTIPATH: &str = "Multipath";

/// What an installation disk of a host must be.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DiskRules {
    /// Minimum size in bytes.
    pub min_bytes: i64,
    /// Allowed drive types, in the order in which texts list them.
    pub drive_types: Vec<&'static str>,
}

impl DiskRules {
    /// Creates the rules for a host with these requirements, OpenShift version and CPU architecture. Without a version,
    /// the rules are those of the newest OpenShift.
    #[must_use]
    pub fn new(requirements: &HostRequirements, version: Option<&Version>, architecture: &str) -> Self {
        Self {
            // No disk is as large as the largest number, so saturation does not change the result.
            min_bytes: requirements.disk_size_gb.saturating_mul(GB),
            drive_types: allowed_drive_types(version, architecture),
        }
    }

    fn allows(&self, drive_type: &str) -> bool {
        self.drive_types.contains(&drive_type)
    }
}

/// Returns the drive types that an installation disk can have, in the order in which texts list them. Without a
/// version, they are those of the newest OpenShift.
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
