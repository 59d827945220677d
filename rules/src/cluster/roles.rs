//! The roles that the service suggests for the hosts of a cluster.
//!
//! The weakest sufficient hosts become control plane nodes, so that strong hosts stay workers. A suggestion stays until
//! a host is added, a user chooses another role, or the hardware of the host no longer suffices.

mod counts;
mod order;

use assisted::HostId;
use assisted::host::{HostRole, HostStatus};

pub use counts::RoleCounts;

use crate::requirements::HardwareRequirements;
use crate::view::{ClusterSettings, ClusterView, HostView};

/// Number of control plane nodes of a cluster that also needs an arbiter.
pub const CONTROL_PLANE_WITH_ARBITER: i64 = 2;

/// Minimum number of workers that can run all workloads, so that the control plane runs none.
const WORKERS_FOR_WORKLOADS: i64 = 2;

/// The statuses in which a host gets a role suggestion.
const SUGGESTED_IN: [HostStatus; 5] = [
    HostStatus::Discovering,
    HostStatus::Known,
    HostStatus::Disconnected,
    HostStatus::Insufficient,
    HostStatus::PendingForInput,
];

/// Amount by which the reported memory may be too small, because firmware and graphics reserve some of it.
const MEMORY_TOLERANCE_MIB: i128 = 100;

const MIB: i128 = 1 << 20;

/// Maximum number of passes over the hosts. Suggestions settle in the third pass.
const MAX_PASSES: usize = 8;

/// Returns the hosts whose suggested role must change, with their new roles. The list is empty while any host has no
/// inventory report.
///
/// Roles are suggested to weak hosts before strong hosts, and to hosts with graphics cards last. Hosts of equal
/// strength are in the order of their ids.
#[must_use]
pub fn new_suggestions(view: &ClusterView, hardware: &HardwareRequirements) -> Vec<(HostId, HostRole)> {
    if view.hosts.iter().any(|host| host.summary.inventory.is_none()) {
        return Vec::new();
    }
    let mut suggestions = Suggestions::new(view, hardware);
    if view.hosts.iter().any(|host| is_new(host)) {
        suggestions.reset();
    } else if suggestions.are_settled() {
        // Usually no role changes. The hosts then need not be sorted.
        return Vec::new();
    }
    suggestions.sort();
    // One pass is not enough: a host that loses its role frees the role for a host earlier in the order. After the
    // first pass, no insufficient host has a suggested master or arbiter role, so masters settle in the second pass,
    // and arbiters settle in the third.
    for _ in 0..MAX_PASSES {
        if suggestions.are_settled() {
            break;
        }
        suggestions.renew();
    }
    suggestions.changes()
}

/// Returns `true` if the CPU cores and the memory of a host suffice for a role. A resource also suffices if the user
/// ignores its validation. A host without an inventory report never suffices.
#[must_use]
pub fn meets_role(
    host: &HostView,
    role: HostRole,
    cluster: &ClusterSettings,
    hardware: &HardwareRequirements,
) -> bool {
    let Some(inventory) = &host.summary.inventory else { return false };
    let required = hardware.total_for_host(cluster, &HostView { role, ..host.clone() });
    // A report that omits processors or memory counts as zero.
    let (cpus, bytes) = (inventory.cpus.unwrap_or(0), inventory.physical_bytes.unwrap_or(0));
    let required_bytes = (i128::from(required.ram_mib) - MEMORY_TOLERANCE_MIB) * MIB;
    (cpus >= required.cpu_cores || is_ignored(cluster, "has-cpu-cores-for-role"))
        && (i128::from(bytes) >= required_bytes || is_ignored(cluster, "has-memory-for-role"))
}

/// Returns `true` if the control plane must run workloads, because the cluster has one node or too few workers.
#[must_use]
pub fn forces_schedulable_masters(view: &ClusterView) -> bool {
    view.cluster.is_single_node() || RoleCounts::from_view(view).workers < WORKERS_FOR_WORKLOADS
}

/// Returns `true` if the user ignores a host validation. A malformed list ignores nothing. `IgnoredValidations` cannot
/// be used here, because the validations depend on this module.
fn is_ignored(cluster: &ClusterSettings, id: &str) -> bool {
    let list = serde_json::from_str::<Vec<String>>(&cluster.ignored_host_validations);
    list.is_ok_and(|list| list.iter().any(|item| item == id || item == "all"))
}

/// Returns `true` if the host has no suggestion yet. All suggestions are then made from scratch, because the host may
/// suit a role better than the other hosts.
fn is_new(host: &HostView) -> bool {
    host.effective_role() == HostRole::AutoAssign && host.status != HostStatus::Disconnected && !host.joins()
}

/// Role suggestions while they are being computed.
#[derive(Debug)]
struct Suggestions<'a> {
    cluster: &'a ClusterSettings,
    hardware: &'a HardwareRequirements,
    /// Each host with the role that it has at this point of the computation.
    hosts: Vec<(&'a HostView, HostRole)>,
    counts: RoleCounts,
}

impl<'a> Suggestions<'a> {
    fn new(view: &'a ClusterView, hardware: &'a HardwareRequirements) -> Self {
        let hosts = view.hosts.iter().map(|host| (&**host, host.effective_role())).collect();
        Self { cluster: &view.cluster, hardware, hosts, counts: RoleCounts::from_view(view) }
    }

    /// Drops the suggestions for all hosts.
    fn reset(&mut self) {
        for (host, role) in &mut self.hosts {
            self.counts = self.counts.without(*role).with(host.role);
            *role = host.role;
        }
    }

    fn sort(&mut self) {
        self.hosts.sort_by_cached_key(|(host, _)| order::sort_key(host, self.cluster, self.hardware));
    }

    /// Returns `true` if another pass would change no role.
    fn are_settled(&self) -> bool {
        self.hosts.iter().all(|(host, role)| self.suggestion(host, *role) == *role)
    }

    /// Makes one pass: suggests a role for each host in turn.
    fn renew(&mut self) {
        let mut hosts = std::mem::take(&mut self.hosts);
        for (host, role) in &mut hosts {
            let suggestion = self.suggestion(host, *role);
            self.counts = self.counts.without(*role).with(suggestion);
            *role = suggestion;
        }
        self.hosts = hosts;
    }

    /// Returns the role to suggest for a host, from its current role and the roles of the other hosts.
    fn suggestion(&self, host: &HostView, role: HostRole) -> HostRole {
        if host.role != HostRole::AutoAssign || !SUGGESTED_IN.contains(&host.status) {
            return role;
        }
        let others = self.counts.without(role);
        let size = self.cluster.control_plane_count;
        let meets = |role| meets_role(host, role, self.cluster, self.hardware);
        match size {
            _ if host.joins() => HostRole::Worker,
            _ if others.masters < size && meets(HostRole::Master) => HostRole::Master,
            CONTROL_PLANE_WITH_ARBITER if others.arbiters == 0 && meets(HostRole::Arbiter) => {
                HostRole::Arbiter
            }
            _ => HostRole::Worker,
        }
    }

    fn changes(self) -> Vec<(HostId, HostRole)> {
        let hosts = self.hosts.into_iter();
        let changed = hosts.filter(|(host, role)| host.effective_role() != *role);
        changed.map(|(host, role)| (host.id, role)).collect()
    }
}

#[cfg(test)]
mod tests;
