//! Multipath devices combine several connections to the same disk. The agent reports each connection as a separate
//! disk, which lists the multipath device among its holders.

use std::collections::BTreeMap;

use super::{FC, ISCSI, MULTIPATH};
use crate::summary::DiskSummary;

/// Prefixes of the reasons that this module returns.
pub(super) const REASONS: [&str; 4] = [MEMBER, UNSUPPORTED_TYPE, DIFFERENT_TYPES, ISCSI_ERRORS];

const MEMBER: &str = "Disk is a member of multipath device ";
const UNSUPPORTED_TYPE: &str = "Multipath device has path of unsupported type. It must be ";
const DIFFERENT_TYPES: &str =
    "Multipath device has paths of different types, but they must all be the same type";
const ISCSI_ERRORS: &str =
    "Installation on multipath device is not possible due to errors on at least one iSCSI disk";

/// The multipath devices of a host, by device name.
#[derive(Default)]
pub(super) struct MultipathDevices<'a>(BTreeMap<&'a str, Paths<'a>>);

/// A summary of the disks that are paths of one multipath device.
#[derive(Default)]
struct Paths<'a> {
    drive_type: Option<&'a str>,
    has_several_types: bool,
    has_supported_type: bool,
    has_iscsi_error: bool,
}

impl<'a> MultipathDevices<'a> {
    /// Collects the multipath devices and their paths. Each disk is paired with `true` if it is an iSCSI disk with an
    /// error. The time is proportional to the total length of the `holders` texts.
    pub(super) fn collect(disks: impl Iterator<Item = (&'a DiskSummary, bool)> + Clone) -> Self {
        let devices = disks.clone().map(|(disk, _)| disk).filter(|disk| &*disk.drive_type == MULTIPATH);
        let mut devices: BTreeMap<_, Paths<'_>> =
            devices.map(|device| (&*device.name, Paths::default())).collect();
        for (disk, has_iscsi_error) in disks {
            for holder in holders(disk) {
                if let Some(paths) = devices.get_mut(holder) {
                    paths.add(disk, has_iscsi_error);
                }
            }
        }
        Self(devices)
    }

    /// Returns the reasons why a multipath device, or a path of one, is not eligible. Other disks have no such reasons.
    pub(super) fn reasons_against(&self, disk: &DiskSummary) -> Vec<String> {
        match &*disk.drive_type {
            FC | ISCSI => holders(disk)
                .find(|holder| self.0.contains_key(holder))
                .map(|device| {
                    format!(
                        "{MEMBER}{device} and is not eligible for installation. Use the multipath device instead."
                    )
                })
                .into_iter()
                .collect(),
            MULTIPATH => self.0.get(&*disk.name).map_or_else(Vec::new, Paths::reasons),
            _ => Vec::new(),
        }
    }
}

impl<'a> Paths<'a> {
    fn add(&mut self, disk: &'a DiskSummary, has_iscsi_error: bool) {
        let drive_type = &*disk.drive_type;
        self.has_several_types |= self.drive_type.is_some_and(|other| other != drive_type);
        self.drive_type = Some(drive_type);
        self.has_supported_type |= matches!(drive_type, FC | ISCSI);
        self.has_iscsi_error |= has_iscsi_error;
    }

    fn reasons(&self) -> Vec<String> {
        let mut reasons = Vec::new();
        if !self.has_supported_type {
            reasons.push(format!("{UNSUPPORTED_TYPE}{FC}, {ISCSI}"));
        } else if self.has_several_types {
            reasons.push(DIFFERENT_TYPES.to_owned());
        }
        if self.has_iscsi_error {
            reasons.push(ISCSI_ERRORS.to_owned());
        }
        reasons
    }
}

/// Returns the names of the block devices that use the disk, from the comma-separated `holders`.
fn holders(disk: &DiskSummary) -> impl Iterator<Item = &str> {
    disk.holders.split(',').map(str::trim).filter(|holder| !holder.is_empty())
}
