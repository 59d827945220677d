//! Validation `network-prefix-valid`: whether the cluster networks have enough addresses for all nodes and pods.

use assisted::cluster::NetworkType;
use serde::{Deserialize, Serialize};

use super::group::ClusterGroup;
use super::input::ClusterInput;
use crate::validation::definition::{ValidationCategory, ValidationDefinition};
use crate::validation::outcome::{OutcomeDescription, TypedOutcome};
use crate::view::{ClusterSettings, PodNetwork};

/// Minimum number of host bits of a node's subnet. Seven bits are enough for 128 pod addresses.
const MIN_POD_BITS: u32 = 7;

/// Minimum number of nodes for which a cluster network must have room. A cluster with exactly one host needs room for
/// only one node.
const MIN_NODES: usize = 4;

/// Maximum exponent of a power of two in a message.
const MAX_SHOWN_BITS: u32 = 63;

/// The outcome of the validation `network-prefix-valid`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum NetworkPrefixOutcome {
    /// The cluster has no cluster network.
    Undefined,
    /// All cluster networks are large enough.
    Valid,
    /// The host prefix is zero or negative.
    NotPositive {
        /// The invalid host prefix.
        host_prefix: i64,
    },
    /// The host prefix is too long: a node's subnet has too few addresses.
    TooLong {
        /// The invalid host prefix.
        host_prefix: i64,
        /// Maximum host prefix.
        maximum: u32,
    },
    /// The cluster network has too few subnets for the nodes.
    TooFewNodes {
        /// Prefix length of the cluster network.
        prefix: u32,
        /// Host prefix: the prefix length of a node's subnet.
        host_prefix: u32,
        /// Number of hosts in the cluster.
        hosts: usize,
        /// Number of addresses in a node's subnet.
        addresses: u64,
    },
}

impl TypedOutcome for NetworkPrefixOutcome {
    type Group = ClusterGroup;
    type Input<'a> = ClusterInput<'a>;

    const DEFINITION: ValidationDefinition<ClusterGroup> = ValidationDefinition {
        category: ValidationCategory::Network,
        groups: &[ClusterGroup::RequiredForInstall],
        is_ignorable: true,
        hidden_in: &[],
        applies_to: "all clusters. The host prefix counts with OVNKubernetes and OpenShiftSDN; with other network \
                     types, it is 25 for IPv4 and 64 for IPv6",
        passes_if: "the part of each cluster network that the host prefix assigns to a node has at least 128 addresses, \
                    and each cluster network has such a part for every host: at least four, or one if the cluster has \
                    one host",
    };

    fn evaluate(input: &ClusterInput<'_>) -> Self {
        let cluster = &input.view.cluster;
        if cluster.cluster_networks.is_empty() {
            return Self::Undefined;
        }
        let hosts = input.view.hosts.len();
        let check = |network: &PodNetwork| defect(*network, host_prefix(cluster, *network), hosts);
        cluster.cluster_networks.iter().find_map(check).unwrap_or(Self::Valid)
    }

    fn describe(&self) -> OutcomeDescription {
        let (message, remedy) = match self {
            Self::Undefined => {
                return OutcomeDescription::pending(
                    "The Cluster Network CIDR is undefined.",
                    "Set `cluster_networks` of the cluster.",
                );
            }
            Self::Valid => return OutcomeDescription::success("The Cluster Network prefix is valid."),
            Self::NotPositive { host_prefix } => (
                format!(
                    "Invalid Cluster Network prefix: Host prefix, now {host_prefix}, must be a positive integer."
                ),
                "Set a positive `host_prefix` in `cluster_networks` of the cluster.",
            ),
            Self::TooLong { host_prefix, maximum } => (
                format!(
                    "Host prefix, now {host_prefix}, must be less than or equal to {maximum} to allow at least 128 \
                     addresses"
                ),
                "Set a smaller `host_prefix` in `cluster_networks` of the cluster.",
            ),
            Self::TooFewNodes { prefix, host_prefix, hosts, addresses } => (
                format!(
                    "Cluster network CIDR prefix {prefix} does not contain enough addresses for {hosts} hosts each one \
                     with {host_prefix} prefix ({addresses} addresses)"
                ),
                "Set a larger network or a larger `host_prefix` in `cluster_networks` of the cluster.",
            ),
        };
        OutcomeDescription::failure(message, remedy)
    }

    fn samples() -> Vec<Self> {
        vec![
            Self::Undefined,
            Self::Valid,
            Self::NotPositive { host_prefix: 0 },
            Self::TooLong { host_prefix: 26, maximum: 25 },
            Self::TooFewNodes { prefix: 22, host_prefix: 23, hosts: 3, addresses: 512 },
        ]
    }
}

/// Returns the host prefix with which a network is validated.
fn host_prefix(cluster: &ClusterSettings, network: PodNetwork) -> i64 {
    use NetworkType::{Calico, Cilium, CiscoACI, OVNKubernetes, OpenShiftSDN};
    match cluster.network_type {
        Some(OVNKubernetes | OpenShiftSDN) => network.host_prefix,
        // These plugins do not use the host prefix, but the installer requires one. So the installer's default is
        // validated.
        None | Some(CiscoACI | Cilium | Calico | NetworkType::None) => {
            if network.cidr.address().is_ipv4() {
                25
            } else {
                64
            }
        }
    }
}

/// Returns the outcome for an invalid cluster network, or `None` if it is valid.
fn defect(network: PodNetwork, host_prefix: i64, hosts: usize) -> Option<NetworkPrefixOutcome> {
    if host_prefix < 1 {
        return Some(NetworkPrefixOutcome::NotPositive { host_prefix });
    }
    let bits = if network.cidr.address().is_ipv4() { 32 } else { 128 };
    let maximum = bits - MIN_POD_BITS;
    let Some(len) = u32::try_from(host_prefix).ok().filter(|len| *len <= maximum) else {
        return Some(NetworkPrefixOutcome::TooLong { host_prefix, maximum });
    };
    let prefix = network.cidr.prefix();
    let nodes = 1_u64 << len.saturating_sub(prefix).min(MAX_SHOWN_BITS);
    let required_nodes = if hosts == 1 { 1 } else { hosts.max(MIN_NODES) };
    // If `nodes` does not fit into `usize`, it is larger than any number of hosts, so the network is large enough.
    let is_too_small = usize::try_from(nodes).is_ok_and(|nodes| nodes < required_nodes);
    let addresses = 1_u64 << (bits - len).min(MAX_SHOWN_BITS);
    is_too_small.then_some(NetworkPrefixOutcome::TooFewNodes { prefix, host_prefix: len, hosts, addresses })
}
