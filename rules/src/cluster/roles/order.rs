//! The order in which hosts get suggested roles.

use assisted::HostId;

use crate::disk::{DiskRules, eligibility};
use crate::requirements::HardwareRequirements;
use crate::summary::InventorySummary;
use crate::view::{ClusterSettings, HostView};

const GIB: i64 = 1 << 30;

/// Returns a sort key: hosts with graphics cards come last, then weak hosts come before strong hosts, then the id
/// decides.
pub(super) fn sort_key(
    host: &HostView,
    cluster: &ClusterSettings,
    hardware: &HardwareRequirements,
) -> (bool, i128, HostId) {
    let Some(inventory) = &host.summary.inventory else { return (false, i128::MAX, host.id) };
    let required = hardware.total_for_host(cluster, host);
    let rules = DiskRules::new(&required, cluster.version.as_ref(), &inventory.architecture);
    (!inventory.gpus.is_empty(), weight(inventory, &rules), host.id)
}

/// Returns the strength of a host in thousandths of a CPU core. 10 GiB of memory or 250 GiB of disks count as one core.
/// Integer arithmetic avoids rounding differences between equal hosts.
fn weight(inventory: &InventorySummary, rules: &DiskRules) -> i128 {
    let reasons = eligibility(inventory, rules);
    let disks = inventory.disks.iter().zip(reasons).filter(|(_, reasons)| reasons.is_eligible());
    let disks_gib: i128 = disks.map(|(disk, _)| i128::from(disk.size_bytes / GIB)).sum();
    let cores = i128::from(inventory.cpus.unwrap_or(0));
    let memory_gib = i128::from(inventory.usable_bytes / GIB);
    1000 * (cores - 4) + 100 * (memory_gib - 16) + 4 * (disks_gib - 100)
}
