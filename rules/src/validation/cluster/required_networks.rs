//! The networks that a cluster must have before its validations can compare them.

use crate::view::ClusterSettings;

/// The message while one of all networks is undefined.
pub(super) const SOME_UNDEFINED: &str =
    "At least one of the CIDRs (Machine Network, Cluster Network, Service Network) is undefined.";

/// The message while one of the networks is undefined, without the machine network.
pub(super) const CLUSTER_OR_SERVICE_UNDEFINED: &str =
    "At least one of the CIDRs (Cluster Network, Service Network) is undefined.";

/// What a user can do while a network is undefined.
pub(super) const DEFINE_NETWORKS: &str =
    "See the validations `machine-cidr-defined`, `cluster-cidr-defined` and `service-cidr-defined`.";

/// Returns `true` if a cluster must have a machine network. A cluster with a single node needs one although its user
/// manages the networking.
pub(super) fn requires_machine_network(cluster: &ClusterSettings) -> bool {
    !cluster.user_managed_networking || cluster.is_single_node()
}

/// Returns `true` if a cluster has a network of each kind that it must have.
pub(super) fn has_required_networks(cluster: &ClusterSettings) -> bool {
    let has_machine_network = !requires_machine_network(cluster) || !cluster.machine_networks.is_empty();
    has_machine_network && !cluster.cluster_networks.is_empty() && !cluster.service_networks.is_empty()
}
