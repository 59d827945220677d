//! Validation `network-type-valid`: whether the network plugin supports the other settings of the cluster.

use assisted::cluster::NetworkType;
use serde::{Deserialize, Serialize};

use super::group::ClusterGroup;
use super::input::ClusterInput;
use crate::validation::definition::{ValidationCategory, ValidationDefinition};
use crate::validation::outcome::{OutcomeDescription, TypedOutcome};
use crate::view::ClusterSettings;

const USE_OVN: &str = "Set `network_type` of the cluster to `OVNKubernetes`.";

/// The outcome of the validation `network-type-valid`. The API refuses unknown network plugins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum NetworkTypeOutcome {
    /// The network plugin supports all settings, or is not set.
    Valid,
    /// `OpenShiftSDN` does not support the IPv6 networks of the cluster.
    Ipv6,
    /// `OpenShiftSDN` does not support single-node clusters.
    SingleNode,
    /// `OVNKubernetes` does not support VIP DHCP allocation.
    VipDhcp,
}

impl TypedOutcome for NetworkTypeOutcome {
    type Group = ClusterGroup;
    type Input<'a> = ClusterInput<'a>;

    const DEFINITION: ValidationDefinition<ClusterGroup> = ValidationDefinition {
        category: ValidationCategory::Network,
        groups: &[ClusterGroup::RequiredForInstall],
        is_ignorable: true,
        hidden_in: &[],
        applies_to: "all clusters",
        passes_if: "the network type is not OpenShiftSDN in a cluster with an IPv6 network or a single node, and not \
                    OVNKubernetes in a cluster with `vip_dhcp_allocation`",
    };

    fn evaluate(input: &ClusterInput<'_>) -> Self {
        use NetworkType::{Calico, Cilium, CiscoACI, OVNKubernetes, OpenShiftSDN};
        let cluster = &input.view.cluster;
        match cluster.network_type {
            Some(OpenShiftSDN) if has_ipv6_network(cluster) => Self::Ipv6,
            Some(OpenShiftSDN) if cluster.is_single_node() => Self::SingleNode,
            Some(OVNKubernetes) if cluster.vip_dhcp_allocation => Self::VipDhcp,
            None | Some(OpenShiftSDN | OVNKubernetes | CiscoACI | Cilium | Calico | NetworkType::None) => {
                Self::Valid
            }
        }
    }

    fn describe(&self) -> OutcomeDescription {
        match self {
            Self::Valid => OutcomeDescription::success("The cluster has a valid network type"),
            Self::Ipv6 => OutcomeDescription::failure(
                "The cluster is configured with IPv6 which is not supported by OpenShiftSDN; use OVNKubernetes instead",
                USE_OVN,
            ),
            Self::SingleNode => OutcomeDescription::failure(
                "Control Plane Count '1' (SNO) is not supported by OpenShiftSDN; use another network type instead",
                USE_OVN,
            ),
            Self::VipDhcp => OutcomeDescription::failure(
                "VIP DHCP allocation is not supported when the cluster is configured to use OVNKubernetes.",
                "Set `vip_dhcp_allocation` of the cluster to `false`, and set `api_vips` and `ingress_vips`.",
            ),
        }
    }

    fn samples() -> Vec<Self> {
        vec![Self::Valid, Self::Ipv6, Self::SingleNode, Self::VipDhcp]
    }
}

fn has_ipv6_network(cluster: &ClusterSettings) -> bool {
    let pods = cluster.cluster_networks.iter().map(|network| &network.cidr);
    let mut networks = pods.chain(&cluster.machine_networks).chain(&cluster.service_networks);
    networks.any(|network| network.address().is_ipv6())
}
