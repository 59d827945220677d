//! Whether the cluster networks have room for all nodes and their pods.

use assisted::cluster::NetworkType;
use serde::{Deserialize, Serialize};

use super::group::ClusterGroup;
use super::input::ClusterInput;
use crate::validation::definition::{ValidationCategory, ValidationDefinition};
use crate::validation::outcome::{OutcomeDescription, TypedOutcome};
use crate::view::{ClusterSettings, PodNetwork};

/// Minimum number of bits for the addresses of the pods on a node: 128 addresses.
const MIN_POD_BITS: u32 = 7;

/// Minimum number of nodes for which a cluster network must have room, unless the cluster has exactly one host.
const MIN_NODES: usize = 4;

/// Maximum number of bits of a number in a message.
const MAX_SHOWN_BITS: u32 = 63;

/// Whether the cluster networks have room for all nodes and their pods.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum NetworkPrefixOutcome {
    /// The cluster has no cluster network.
    Undefined,
    /// All cluster networks have room.
    Valid,
    /// The host prefix is not a length.
    NotPositive {
        /// Host prefix.
        host_prefix: i64,
    },
    /// A node has room for too few pods.
    TooLong {
        /// Host prefix.
        host_prefix: i64,
        /// Maximum host prefix.
        maximum: u32,
    },
    /// The cluster network has room for too few nodes.
    TooFewNodes {
        /// Prefix of the cluster network.
        prefix: u32,
        /// Host prefix.
        host_prefix: u32,
        /// Number of hosts of the cluster.
        hosts: usize,
        /// Number of addresses of a node.
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

/// Returns the host prefix that counts for a network.
fn host_prefix(cluster: &ClusterSettings, network: PodNetwork) -> i64 {
    use NetworkType::{Calico, Cilium, CiscoACI, OVNKubernetes, OpenShiftSDN};
    match cluster.network_type {
        Some(OVNKubernetes | OpenShiftSDN) => network.host_prefix,
        // These plugins divide the network on their own. The installer requires a host prefix all the same.
        None | Some(CiscoACI | Cilium | Calico | NetworkType::None) => {
            if network.cidr.address().is_ipv4() {
                25
            } else {
                64
            }
        }
    }
}

/// Returns the reason why a cluster network is refused.
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
    // A number that `usize` cannot hold is larger than each number of hosts.
    let is_too_small = usize::try_from(nodes).is_ok_and(|nodes| nodes < required_nodes);
    let addresses = 1_u64 << (bits - len).min(MAX_SHOWN_BITS);
    is_too_small.then_some(NetworkPrefixOutcome::TooFewNodes { prefix, host_prefix: len, hosts, addresses })
}
