//! Rules for the cluster of a host: whether it accepts hosts, and whether a host is bound to it.

use rules::cluster::state::ClusterOperation;

use super::record::HostRecord;
use crate::cluster::{ClusterKind, ClusterRecord};
use crate::error::Error;
use crate::id::ClusterId;

/// Returns `true` if hosts can be bound to the cluster in its current status.
pub(crate) fn accepts_hosts(cluster: &ClusterRecord) -> bool {
    ClusterOperation::AddHost.is_allowed(cluster.status())
}

/// Returns the error for a cluster that cannot accept hosts.
pub(crate) fn cannot_accept_hosts(cluster: &ClusterRecord) -> Error {
    Error::conflict(format!(
        "Cluster {} is in state {} and cannot accept hosts",
        cluster.id,
        cluster.status()
    ))
}

/// Returns `true` if the cluster is already installed, and hosts can be added to it.
pub(crate) fn is_add_hosts_cluster(cluster: &ClusterRecord) -> bool {
    cluster.kind == ClusterKind::AddHostsCluster
}

/// Returns `true` if the cluster is installed on a single node.
pub(crate) fn is_single_node(cluster: &ClusterRecord) -> bool {
    cluster.control_plane_count == 1 && !is_add_hosts_cluster(cluster)
}

/// Returns an error unless the host is bound to this cluster.
pub(crate) fn require_bound_to(cluster: ClusterId, host: &HostRecord) -> Result<(), Error> {
    if host.cluster_id == Some(cluster) {
        return Ok(());
    }
    Err(Error::conflict(format!("Host {} is not part of cluster {cluster}", host.id)))
}
