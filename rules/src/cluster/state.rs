//! The statuses of clusters: how a cluster gets its first one, and which operations a status allows.
//!
//! No operation changes the status of a cluster yet: installations do. `docs/state-machines.md` shows these tables.

use assisted::cluster::ClusterStatus;
use assisted::cluster::ClusterStatus::{
    AddingHosts, Installing, Insufficient, PendingForInput, Ready, Unmonitored,
};

/// How a cluster becomes known to the service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClusterOrigin {
    /// It is to be installed.
    Registered,
    /// It is installed, and hosts are added to it.
    Imported,
    /// It is installed without a connection to this service.
    Disconnected,
}

impl ClusterOrigin {
    #[cfg(test)]
    const ALL: [Self; 3] = [Self::Registered, Self::Imported, Self::Disconnected];

    /// Returns the first status and its text.
    pub fn first_status(self) -> (ClusterStatus, &'static str) {
        match self {
            Self::Registered => (Insufficient, "Cluster is not ready for install"),
            Self::Imported => (AddingHosts, "cluster is adding hosts to existing OCP cluster"),
            Self::Disconnected => (Unmonitored, "Cluster created for offline installation"),
        }
    }
}

/// An operation that only some statuses allow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClusterOperation {
    /// A change of its settings.
    Update,
    /// A host that registers in an infra-env of the cluster, or is bound to the cluster.
    AddHost,
    /// The deletion of the cluster.
    Delete,
}

/// The statuses in which a cluster can be changed and accepts hosts.
pub const CHANGEABLE_STATUSES: [ClusterStatus; 4] = [Insufficient, Ready, PendingForInput, AddingHosts];

impl ClusterOperation {
    #[cfg(test)]
    const ALL: [Self; 3] = [Self::Update, Self::AddHost, Self::Delete];

    /// Returns `true` if a cluster with this status allows the operation.
    pub fn is_allowed(self, status: ClusterStatus) -> bool {
        match self {
            Self::Update | Self::AddHost => CHANGEABLE_STATUSES.contains(&status),
            Self::Delete => status != Installing,
        }
    }
}

#[cfg(test)]
pub(crate) mod tests;
