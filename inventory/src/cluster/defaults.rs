//! The default cluster and service networks of new clusters.

use super::parts::ClusterNetwork;
use super::subnet::Subnet;
use crate::ClusterNetworks;

/// Returns the default cluster network, which contains the addresses of pods.
pub(crate) fn pod_network(networks: &ClusterNetworks) -> ClusterNetwork {
    let (cidr, host_prefix) = (Subnet(networks.cluster_cidr.clone()), i64::from(networks.host_prefix));
    ClusterNetwork { cluster_id: None, cidr, host_prefix }
}

pub(crate) fn service_network(networks: &ClusterNetworks) -> Subnet {
    Subnet(networks.service_cidr.clone())
}
