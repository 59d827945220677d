//! The number of hosts with each role.

use assisted::host::HostRole;

use crate::view::ClusterView;

/// The number of hosts with each role.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RoleCounts {
    /// Control plane nodes.
    pub masters: i64,
    /// Arbiters.
    pub arbiters: i64,
    /// Workers.
    pub workers: i64,
}

impl RoleCounts {
    /// Counts the effective roles of a cluster's hosts. Hosts without one do not count.
    #[must_use]
    pub fn from_view(view: &ClusterView) -> Self {
        view.hosts.iter().fold(Self::default(), |counts, host| counts.with(host.effective_role()))
    }

    /// Returns the counts with another host.
    #[must_use]
    pub fn with(self, role: HostRole) -> Self {
        self.changed_by(1, role)
    }

    /// Returns the counts without a host that they include.
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
