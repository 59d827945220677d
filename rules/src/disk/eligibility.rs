//! The checks that decide whether OpenShift can be installed on a disk.

use serde::{Deserialize, Serialize};

use super::iscsi::{self, DefaultNics};
use super::multipath::{self, MultipathDevices};
use super::size::format_size;
use super::{DiskRules, ISCSI};
use crate::summary::{DiskSummary, ExcessPart, HostSummary, InventorySummary};

const TOO_SMALL: &str = "Disk is too small (disk only has ";
const DRIVE_TYPE: &str = "Drive type is ";
const NOT_CHECKED: &str = "Disk is not checked, because the host has too many disks";

/// The reasons why OpenShift cannot be installed on a disk. A disk without reasons is eligible.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct DiskReasons(Vec<Box<str>>);

impl DiskReasons {
    /// Returns `true` if OpenShift can be installed on the disk.
    #[must_use]
    pub fn is_eligible(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the texts of the reasons: first the agent's, then the service's.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|reason| &**reason)
    }
}

impl<T: Into<Box<str>>> FromIterator<T> for DiskReasons {
    fn from_iter<I: IntoIterator<Item = T>>(reasons: I) -> Self {
        Self(reasons.into_iter().map(Into::into).collect())
    }
}

/// Returns, for each disk in the order of the inventory, the reasons why it is not eligible. The reasons reported by
/// the agent come before the reasons found by the service.
///
/// # Examples
///
/// ```
/// use rules::disk::{DiskRules, eligibility, installation_disk};
/// use rules::requirements::HardwareRequirements;
/// use rules::summary::{DiskSummary, InventorySummary};
///
/// let small = DiskSummary { name: "sda".into(), drive_type: "HDD".into(), size_bytes: 1 << 30, ..Default::default() };
/// let large = DiskSummary { name: "sdb".into(), size_bytes: 1 << 40, ..small.clone() };
/// let inventory = InventorySummary { disks: vec![small, large], ..Default::default() };
///
/// let requirements = HardwareRequirements::default().for_version("4.18.1").worker;
/// let reasons = eligibility(&inventory, &DiskRules::new(&requirements, None, "x86_64"));
/// assert!(!reasons[0].is_eligible());
/// assert_eq!(installation_disk(&inventory, &reasons, None).unwrap().path, "/dev/sdb");
/// ```
#[must_use]
pub fn eligibility(inventory: &InventorySummary, rules: &DiskRules) -> Vec<DiskReasons> {
    let disks = &inventory.disks;
    let nics = DefaultNics::find(inventory);
    let of_network =
        |disk: &DiskSummary| (&*disk.drive_type == ISCSI).then(|| nics.reason_against(disk)).flatten();
    let of_network: Vec<Option<String>> = disks.iter().map(of_network).collect();
    let has_iscsi_error = |disk: &DiskSummary, of_network: &Option<String>| {
        of_network.is_some() || &*disk.drive_type == ISCSI && !rules.allows(ISCSI)
    };
    let errors = disks.iter().zip(&of_network).map(|(disk, reason)| (disk, has_iscsi_error(disk, reason)));
    let devices = MultipathDevices::collect(errors);
    let reasons = disks.iter().zip(of_network).map(|(disk, of_network)| {
        let of_agent = disk.agent_reasons.iter().filter(|reason| !is_service_reason(reason)).cloned();
        let of_service = size_reason(disk, rules)
            .into_iter()
            .chain(drive_type_reason(disk, rules))
            .chain(devices.reasons_against(disk))
            .chain(of_network);
        of_agent.chain(of_service.map(String::into_boxed_str)).collect()
    });
    reasons.collect()
}

/// Returns `true` if the service, not the agent, has written the reason into the report. Such a reason may be outdated.
fn is_service_reason(reason: &str) -> bool {
    let beginnings = [TOO_SMALL, DRIVE_TYPE].into_iter().chain(iscsi::REASONS).chain(multipath::REASONS);
    beginnings.into_iter().any(|beginning| reason.starts_with(beginning))
}

fn size_reason(disk: &DiskSummary, rules: &DiskRules) -> Option<String> {
    if disk.size_bytes >= rules.min_bytes {
        return None;
    }
    let (size, minimum) = (format_size(disk.size_bytes), format_size(rules.min_bytes));
    let difference = if size == minimum {
        format!(" (short by {})", format_size(rules.min_bytes.saturating_sub(disk.size_bytes)))
    } else {
        String::new()
    };
    Some(format!("{TOO_SMALL}{size}{difference}, but {minimum} are required)"))
}

fn drive_type_reason(disk: &DiskSummary, rules: &DiskRules) -> Option<String> {
    let drive_type = &*disk.drive_type;
    let reason = || format!("{DRIVE_TYPE}{drive_type}, it must be one of {}.", rules.drive_types.join(", "));
    (!rules.allows(drive_type)).then(reason)
}

/// Returns the reasons for all disks of an inventory report, in the order of the report. `reasons` covers the disks of
/// the summary, which are the first disks of the report. The other disks were not checked.
#[must_use]
pub fn reasons_in_report(summary: &HostSummary, mut reasons: Vec<DiskReasons>) -> Vec<DiskReasons> {
    if let Some(excess) = summary.excess.iter().find(|excess| excess.part == ExcessPart::Disks) {
        reasons.resize(excess.found, DiskReasons::from_iter([NOT_CHECKED]));
    }
    reasons
}
