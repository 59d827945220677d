//! The facts that validations of a host read.

use crate::cluster::peer_facts::PeerFacts;
use crate::summary::InventorySummary;
use crate::validation::settings::ValidationSettings;
use crate::view::{ClusterView, HostView};

/// The least hardware that some role needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MinimumHardware {
    /// Number of CPU cores.
    pub cpu_cores: i64,
    /// Memory in MiB.
    pub ram_mib: i64,
}

/// The cluster of a host.
#[derive(Clone, Copy, Debug)]
pub struct HostCluster<'a> {
    /// The cluster with all its hosts.
    pub view: &'a ClusterView,
    /// What follows from all its hosts together.
    pub peers: &'a PeerFacts,
}

/// The facts that validations of a host read.
#[derive(Clone, Copy, Debug)]
pub struct HostInput<'a> {
    /// The host.
    pub host: &'a HostView,
    /// Its cluster.
    pub cluster: Option<HostCluster<'a>>,
    /// Number of disks that are eligible for the installation.
    pub eligible_disks: usize,
    /// The least hardware that some role needs.
    pub minimum: MinimumHardware,
    /// The settings of the service.
    pub settings: &'a ValidationSettings,
}

impl HostInput<'_> {
    /// Returns the hardware of the host. `None`: no inventory report is stored.
    pub(super) fn inventory(&self) -> Option<&InventorySummary> {
        self.host.summary.inventory.as_deref()
    }
}
