//! The networks that a cluster must have before validations can compare them.

use crate::view::ClusterSettings;

/// The message if a machine, cluster or service network is not set.
pub(super) const SOME_UNDEFINED: &str =
    "At least one of the CIDRs (Machine Network, Cluster Network, Service Network) is undefined.";

/// The message if a cluster or service network is not set. It does not mention the machine network.
pub(super) const CLUSTER_OR_SERVICE_UNDEFINED: &str =
    "At least one of the CIDRs (Cluster Network, Service Network) is undefined.";

/// The remedy for a network that is not set.
pub(super) const DEFINE_NETWORKS: &str =
    "See the validations `machine-cidr-defined`, `cluster-cidr-defined` and `service-cidr-defined`.";

/// Returns `true` if the cluster must have a machine network. A single-node cluster needs one even if its user manages
/// the networking.
pub(super) fn requires_machine_network(cluster: &ClusterSettings) -> bool {
    !cluster.user_managed_networking || cluster.is_single_node()
}

/// Returns `true` if the cluster has at least one network of each required kind.
pub(super) fn has_required_networks(cluster: &ClusterSettings) -> bool {
    let has_machine_network = !requires_machine_network(cluster) || !cluster.machine_networks.is_empty();
    has_machine_network && !cluster.cluster_networks.is_empty() && !cluster.service_networks.is_empty()
}
