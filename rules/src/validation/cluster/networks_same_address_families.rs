//! Validation `networks-same-address-families`: whether all networks of a cluster have the same address families.

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

const CHANGE_NETWORKS: &str = "Set the machine, cluster and service networks of the cluster with the same address families in the same order.";

/// The outcome of the validation `networks-same-address-families`, which compares the address families of all networks
/// in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AddressFamiliesOutcome {
    /// At least one network is not set.
    Undefined,
    /// The cluster or service network is not set. The cluster does not need a machine network.
    ClusterOrServiceUndefined,
    /// The families of the cluster and service networks differ.
    ServiceDiffers,
    /// The families of the machine and service networks differ.
    MachineDiffers,
    /// The families of all networks are equal.
    Same,
}

impl TypedOutcome for AddressFamiliesOutcome {
    type Group = ClusterGroup;
    type Input<'a> = ClusterInput<'a>;

    const DEFINITION: ValidationDefinition<ClusterGroup> = ValidationDefinition {
        category: ValidationCategory::Network,
        groups: &[ClusterGroup::RequiredForInstall],
        is_ignorable: true,
        hidden_in: &[],
        applies_to: "all clusters; the machine networks count with cluster-managed networking or a single node",
        passes_if: "the lists of machine, cluster and service networks have the same address families in the same order",
    };

    fn evaluate(input: &ClusterInput<'_>) -> Self {
        let cluster = &input.view.cluster;
        let is_machine_network_used = requires_machine_network(cluster);
        if !has_required_networks(cluster) {
            return if is_machine_network_used { Self::Undefined } else { Self::ClusterOrServiceUndefined };
        }
        // Consecutive cluster or machine networks may have the same family, but consecutive service networks may not.
        let services: Vec<_> = cluster.service_networks.iter().map(|network| is_ipv4(*network)).collect();
        if services != families(cluster.cluster_networks.iter().map(|network| network.cidr)) {
            return Self::ServiceDiffers;
        }
        if is_machine_network_used && services != families(cluster.machine_networks.iter().copied()) {
            return Self::MachineDiffers;
        }
        Self::Same
    }

    fn describe(&self) -> OutcomeDescription {
        match self {
            Self::Undefined => OutcomeDescription::pending(SOME_UNDEFINED, DEFINE_NETWORKS),
            Self::ClusterOrServiceUndefined => {
                OutcomeDescription::pending(CLUSTER_OR_SERVICE_UNDEFINED, DEFINE_NETWORKS)
            }
            Self::ServiceDiffers => OutcomeDescription::failure(
                "Address families of networks (ServiceNetworks, ClusterNetworks) are not the same.",
                CHANGE_NETWORKS,
            ),
            Self::MachineDiffers => OutcomeDescription::failure(
                "Address families of networks (MachineNetworks, ServiceNetworks, ClusterNetworks) are not the same.",
                CHANGE_NETWORKS,
            ),
            Self::Same => OutcomeDescription::success("Same address families for all networks."),
        }
    }

    fn samples() -> Vec<Self> {
        vec![
            Self::Undefined,
            Self::ClusterOrServiceUndefined,
            Self::ServiceDiffers,
            Self::MachineDiffers,
            Self::Same,
        ]
    }
}

fn is_ipv4(network: Cidr) -> bool {
    network.address().is_ipv4()
}

/// Returns the address families of networks: `true` for IPv4. Consecutive networks of the same family count once.
fn families(networks: impl Iterator<Item = Cidr>) -> Vec<bool> {
    let mut families: Vec<_> = networks.map(is_ipv4).collect();
    families.dedup();
    families
}
