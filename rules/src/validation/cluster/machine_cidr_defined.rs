//! Validation `machine-cidr-defined` of clusters: whether a machine network is set.

use serde::{Deserialize, Serialize};

use super::group::ClusterGroup;
use super::input::ClusterInput;
use super::required_networks::requires_machine_network;
use crate::validation::definition::{ValidationCategory, ValidationDefinition};
use crate::validation::outcome::{OutcomeDescription, TypedOutcome};

/// The outcome of the validation `machine-cidr-defined` of clusters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MachineCidrOutcome {
    /// A multi-node cluster whose user manages the networking needs no machine network.
    NotNeeded,
    /// The cluster has a machine network.
    Defined,
    /// The cluster has no machine network yet, and no host has an inventory report.
    NoInventory,
    /// The cluster has no machine network.
    Undefined,
    /// The cluster has no machine network, although VIP DHCP allocation needs one.
    UndefinedForDhcp,
    /// The cluster has a single node and no machine network.
    UndefinedForSingleNode,
}

impl TypedOutcome for MachineCidrOutcome {
    type Group = ClusterGroup;
    type Input<'a> = ClusterInput<'a>;

    const DEFINITION: ValidationDefinition<ClusterGroup> = ValidationDefinition {
        category: ValidationCategory::Network,
        groups: &[ClusterGroup::PendingConditions],
        is_ignorable: true,
        hidden_in: &[],
        applies_to: "clusters with cluster-managed networking or a single node; otherwise, it passes",
        passes_if: "`machine_networks` has an entry",
    };

    fn evaluate(input: &ClusterInput<'_>) -> Self {
        let cluster = &input.view.cluster;
        if !requires_machine_network(cluster) {
            return Self::NotNeeded;
        }
        if !cluster.machine_networks.is_empty() {
            return Self::Defined;
        }
        if input.view.hosts.iter().all(|host| host.summary.inventory.is_none()) {
            return Self::NoInventory;
        }
        if cluster.vip_dhcp_allocation {
            return Self::UndefinedForDhcp;
        }
        if cluster.is_single_node() { Self::UndefinedForSingleNode } else { Self::Undefined }
    }

    fn describe(&self) -> OutcomeDescription {
        match self {
            Self::NotNeeded => {
                OutcomeDescription::success("No Machine Network CIDR needed: User Managed Networking")
            }
            Self::Defined => OutcomeDescription::success("The Machine Network CIDR is defined."),
            Self::NoInventory => OutcomeDescription::pending(
                "Hosts have not been discovered yet",
                "Boot the discovery image on the hosts of the cluster.",
            ),
            Self::Undefined => OutcomeDescription::failure(
                "The Machine Network CIDR is undefined; the Machine Network CIDR can be defined by setting either the \
                 API or Ingress virtual IPs.",
                "Set `api_vips` or `ingress_vips` of the cluster to addresses in a network of its hosts.",
            ),
            Self::UndefinedForDhcp => OutcomeDescription::failure(
                "The Machine Network CIDR is undefined; setting the Machine Network CIDR initiates the VIPs DHCP lease \
                 allocation.",
                "Set `machine_networks` of the cluster to a network of its hosts.",
            ),
            Self::UndefinedForSingleNode => OutcomeDescription::failure(
                "The Machine Network CIDR is undefined; Setting Machine Network CIDR is required for single node \
                 cluster",
                "Set `machine_networks` of the cluster to a network of its host.",
            ),
        }
    }

    fn samples() -> Vec<Self> {
        vec![
            Self::NotNeeded,
            Self::Defined,
            Self::NoInventory,
            Self::Undefined,
            Self::UndefinedForDhcp,
            Self::UndefinedForSingleNode,
        ]
    }
}
