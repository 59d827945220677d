//! Validation `no-cidrs-overlapping`: whether the networks of a cluster overlap.

use ignition::Cidr;
use serde::{Deserialize, Serialize};

use super::group::ClusterGroup;
use super::input::ClusterInput;
use super::required_networks::{
    CLUSTER_OR_SERVICE_UNDEFINED, DEFINE_NETWORKS, SOME_UNDEFINED, has_required_networks,
    requires_machine_network,
};
use crate::validation::definition::{ValidationCategory, ValidationDefinition};
use crate::validation::outcome::{OutcomeDescription, TypedOutcome};
use crate::view::ClusterSettings;

/// The kinds of two overlapping networks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum NetworkPair {
    /// A machine network and a service network.
    MachineAndService,
    /// A machine network and a cluster network.
    MachineAndCluster,
    /// A service network and a cluster network.
    ServiceAndCluster,
}

impl NetworkPair {
    /// Returns the name used in messages. The letter case matches the Assisted Installer.
    fn as_str(self) -> &'static str {
        match self {
            Self::MachineAndService => "MachineNetworkCIDR and ServiceNetworkCIDR",
            Self::MachineAndCluster => "MachineNetworkCIDR and ClusterNetworkCidr",
            Self::ServiceAndCluster => "ServiceNetworkCidr and ClusterNetworkCidr",
        }
    }
}

/// The outcome of the validation `no-cidrs-overlapping`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CidrsOverlappingOutcome {
    /// At least one network is not set.
    Undefined,
    /// At least one network is not set, and the user manages the networking.
    UserManagedUndefined,
    /// The number of cluster networks differs from the number of service networks.
    NumbersDiffer,
    /// Two networks overlap.
    Overlapping {
        /// The kinds of the two networks.
        kinds: NetworkPair,
        /// The network whose kind [`NetworkPair`] names first.
        first: Cidr,
        /// The network whose kind [`NetworkPair`] names second.
        second: Cidr,
    },
    /// No networks overlap.
    Distinct,
}

impl TypedOutcome for CidrsOverlappingOutcome {
    type Group = ClusterGroup;
    type Input<'a> = ClusterInput<'a>;

    const DEFINITION: ValidationDefinition<ClusterGroup> = ValidationDefinition {
        category: ValidationCategory::Network,
        groups: &[ClusterGroup::RequiredForInstall],
        is_ignorable: true,
        hidden_in: &[],
        applies_to: "all clusters; the machine networks count with cluster-managed networking or a single node",
        passes_if: "the machine, cluster and service network at each position of their lists do not overlap",
    };

    fn evaluate(input: &ClusterInput<'_>) -> Self {
        let cluster = &input.view.cluster;
        if !has_required_networks(cluster) {
            // This message is also used for a single-node cluster without a machine network, as in the Assisted
            // Installer.
            return if cluster.user_managed_networking {
                Self::UserManagedUndefined
            } else {
                Self::Undefined
            };
        }
        if cluster.cluster_networks.len() != cluster.service_networks.len() {
            return Self::NumbersDiffer;
        }
        overlap(cluster).unwrap_or(Self::Distinct)
    }

    fn describe(&self) -> OutcomeDescription {
        match self {
            Self::Undefined => OutcomeDescription::pending(SOME_UNDEFINED, DEFINE_NETWORKS),
            Self::UserManagedUndefined => {
                OutcomeDescription::pending(CLUSTER_OR_SERVICE_UNDEFINED, DEFINE_NETWORKS)
            }
            Self::NumbersDiffer => OutcomeDescription::error(
                "A mismatch between the number of Cluster and Service networks",
                "Set as many `service_networks` of the cluster as `cluster_networks`.",
            ),
            Self::Overlapping { kinds, first, second } => OutcomeDescription::failure(
                format!("CIDRS Overlapping: {}: CIDRS {first} and {second} overlap.", kinds.as_str()),
                "Change one of the two networks. The machine network is a network of the hosts.",
            ),
            Self::Distinct => OutcomeDescription::success("No CIDRS are overlapping."),
        }
    }

    #[allow(clippy::unwrap_used, reason = "the texts are constants, and tests make all samples")]
    fn samples() -> Vec<Self> {
        let cidr = |text| Cidr::parse(text).unwrap();
        let overlapping =
            |kinds, first, second| Self::Overlapping { kinds, first: cidr(first), second: cidr(second) };
        vec![
            Self::Undefined,
            Self::UserManagedUndefined,
            Self::NumbersDiffer,
            overlapping(NetworkPair::MachineAndService, "172.30.5.0/24", "172.30.0.0/16"),
            overlapping(NetworkPair::MachineAndCluster, "10.128.5.0/24", "10.128.0.0/14"),
            overlapping(NetworkPair::ServiceAndCluster, "10.128.0.0/16", "10.128.0.0/14"),
            Self::Distinct,
        ]
    }
}

/// Returns the first overlap of two networks at the same position of their lists.
fn overlap(cluster: &ClusterSettings) -> Option<CidrsOverlappingOutcome> {
    let is_machine_network_used = requires_machine_network(cluster);
    let pods = cluster.cluster_networks.iter().map(|network| network.cidr);
    let networks = pods.zip(&cluster.service_networks).enumerate();
    let mut pairs = networks.flat_map(|(index, (pods, services))| {
        // If the list of machine networks is too short, its last network is used.
        let machines = cluster.machine_networks.get(index).or(cluster.machine_networks.last());
        let machines = machines.copied().filter(|_| is_machine_network_used);
        let with_machines = machines.map(|machines| {
            [
                (NetworkPair::MachineAndService, machines, *services),
                (NetworkPair::MachineAndCluster, machines, pods),
            ]
        });
        let without = [(NetworkPair::ServiceAndCluster, *services, pods)];
        with_machines.into_iter().flatten().chain(without)
    });
    let (kinds, first, second) = pairs.find(|(_, first, second)| first.overlaps(*second))?;
    Some(CidrsOverlappingOutcome::Overlapping { kinds, first, second })
}
