//! The facts that host validations receive as input.

use crate::cluster::peer_facts::PeerFacts;
use crate::summary::InventorySummary;
use crate::validation::settings::ValidationSettings;
use crate::view::{ClusterView, HostView};

/// The requirements of the least demanding role.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MinimumHardware {
    /// Minimum number of CPU cores.
    pub cpu_cores: i64,
    /// Minimum memory in MiB.
    pub ram_mib: i64,
}

/// The cluster of a host, with facts about all of its hosts.
#[derive(Clone, Copy, Debug)]
pub struct HostCluster<'a> {
    /// The cluster and all of its hosts.
    pub view: &'a ClusterView,
    /// Facts that depend on all hosts of the cluster.
    pub peers: &'a PeerFacts,
}

/// The facts that host validations read.
#[derive(Clone, Copy, Debug)]
pub struct HostInput<'a> {
    /// The host to validate.
    pub host: &'a HostView,
    /// The cluster of the host. `None` if the host is not bound to a cluster.
    pub cluster: Option<HostCluster<'a>>,
    /// Number of eligible disks.
    pub eligible_disks: usize,
    /// The requirements of the least demanding role.
    pub minimum: MinimumHardware,
    /// The validations that the operator has disabled.
    pub settings: &'a ValidationSettings,
}

impl HostInput<'_> {
    /// Returns the hardware of the host, or `None` if no inventory report is stored.
    pub(super) fn inventory(&self) -> Option<&InventorySummary> {
        self.host.summary.inventory.as_deref()
    }
}
