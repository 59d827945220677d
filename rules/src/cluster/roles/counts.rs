//! Counts the hosts of a cluster by role.

use assisted::host::HostRole;

use crate::view::ClusterView;

/// The number of hosts with each role.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RoleCounts {
    /// Number of control plane nodes.
    pub masters: i64,
    /// Number of arbiters.
    pub arbiters: i64,
    /// Number of workers.
    pub workers: i64,
}

impl RoleCounts {
    /// Counts the effective roles of a cluster's hosts. Hosts without a role are not counted.
    #[must_use]
    pub fn from_view(view: &ClusterView) -> Self {
        view.hosts.iter().fold(Self::default(), |counts, host| counts.with(host.effective_role()))
    }

    /// Returns the counts after a host with this role is added.
    #[must_use]
    pub fn with(self, role: HostRole) -> Self {
        self.changed_by(1, role)
    }

    /// Returns the counts after a host with this role is removed.
    #[must_use]
    pub(super) fn without(self, role: HostRole) -> Self {
        self.changed_by(-1, role)
    }

    fn changed_by(mut self, difference: i64, role: HostRole) -> Self {
        match role {
            HostRole::Master | HostRole::Bootstrap => self.masters += difference,
            HostRole::Arbiter => self.arbiters += difference,
            HostRole::Worker => self.workers += difference,
            HostRole::AutoAssign => {}
        }
        self
    }
}
