//! Validation `machine-cidr-defined` of hosts: whether the cluster of the host has machine networks.

use assisted::cluster::ClusterKind;
use serde::{Deserialize, Serialize};

use super::group::HostGroup;
use super::input::HostInput;
use crate::validation::definition::{ValidationCategory, ValidationDefinition};
use crate::validation::outcome::{OutcomeDescription, TypedOutcome};

const SET_MACHINE_NETWORKS: &str = "Set the machine networks of the cluster.";

/// The outcome of the validation `machine-cidr-defined` of hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MachineCidrOutcome {
    /// The host does not belong to a cluster.
    Unbound,
    /// The user manages the networking, so no machine network is needed.
    UserManagedNetworking,
    /// The cluster is already installed, and only adds hosts.
    AddedHosts,
    /// The cluster has machine networks.
    Defined,
    /// The cluster has no machine networks, although VIP DHCP allocation needs one.
    UndefinedWithDhcp,
    /// The cluster has no machine networks.
    Undefined,
}

impl TypedOutcome for MachineCidrOutcome {
    type Group = HostGroup;
    type Input<'a> = HostInput<'a>;

    const DEFINITION: ValidationDefinition<HostGroup> = ValidationDefinition {
        category: ValidationCategory::Network,
        groups: &[HostGroup::RequiredInput],
        is_ignorable: false,
        hidden_in: &[],
        applies_to: "hosts of a cluster",
        passes_if: "the cluster has machine networks, needs none because the user manages the networking, or is \
            installed already",
    };

    fn evaluate(input: &HostInput<'_>) -> Self {
        let Some(cluster) = input.cluster.map(|it| &it.view.cluster) else { return Self::Unbound };
        if cluster.user_managed_networking {
            Self::UserManagedNetworking
        } else if cluster.kind == ClusterKind::AddHostsCluster {
            Self::AddedHosts
        } else if !cluster.machine_networks.is_empty() {
            Self::Defined
        } else if cluster.vip_dhcp_allocation {
            Self::UndefinedWithDhcp
        } else {
            Self::Undefined
        }
    }

    fn describe(&self) -> OutcomeDescription {
        match self {
            Self::Unbound => OutcomeDescription::suppressed(),
            Self::UserManagedNetworking => {
                OutcomeDescription::success("No Machine Network CIDR needed: User Managed Networking")
            }
            Self::AddedHosts => OutcomeDescription::success("No Machine Network CIDR needed: Day2 cluster"),
            Self::Defined => OutcomeDescription::success("Machine Network CIDR is defined"),
            Self::UndefinedWithDhcp => {
                OutcomeDescription::failure("Machine Network CIDR is undefined", SET_MACHINE_NETWORKS)
            }
            Self::Undefined => OutcomeDescription::failure(
                "Machine Network CIDR is undefined; the Machine Network CIDR can be defined by setting either the API \
                 or Ingress virtual IPs",
                "Set the virtual IP addresses of the cluster. The machine network follows from them.",
            ),
        }
    }

    fn samples() -> Vec<Self> {
        use MachineCidrOutcome::{
            AddedHosts, Defined, Unbound, Undefined, UndefinedWithDhcp, UserManagedNetworking,
        };
        vec![Unbound, UserManagedNetworking, AddedHosts, Defined, UndefinedWithDhcp, Undefined]
    }
}
