//! Validation `belongs-to-machine-cidr`: whether the host has addresses in the machine networks.

use assisted::cluster::ClusterKind;
use serde::{Deserialize, Serialize};

use super::group::HostGroup;
use super::input::HostInput;
use super::missing_inventory::WAIT_FOR_INVENTORY;
use crate::validation::definition::{ValidationCategory, ValidationDefinition};
use crate::validation::outcome::{OutcomeDescription, TypedOutcome};

/// The outcome of the validation `belongs-to-machine-cidr`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MachineCidrMemberOutcome {
    /// The host does not belong to a cluster.
    Unbound,
    /// The user manages the networking, so the host's addresses are not checked.
    UserManagedNetworking,
    /// The cluster is already installed, and only adds hosts.
    AddedHosts,
    /// No inventory report is stored, or the cluster has no machine networks.
    MissingFacts,
    /// The host has an address in each machine network.
    InAll,
    /// The host lacks an address in a machine network.
    NotInAll,
    /// The host has an address in one machine network, which suffices with a user-managed load balancer.
    InOne,
    /// The host has no address in any machine network.
    InNone,
}

impl TypedOutcome for MachineCidrMemberOutcome {
    type Group = HostGroup;
    type Input<'a> = HostInput<'a>;

    const DEFINITION: ValidationDefinition<HostGroup> = ValidationDefinition {
        category: ValidationCategory::Network,
        groups: &[HostGroup::SufficientForInstall],
        is_ignorable: true,
        hidden_in: &[],
        applies_to: "hosts of a cluster that is not installed yet; with user-managed networking, only the host of a \
            single-node cluster, and the bootstrap host if machine networks are set",
        passes_if: "the host has an address in each machine network, or in one of them if the user provides the load \
            balancer",
    };

    fn evaluate(input: &HostInput<'_>) -> Self {
        let Some(cluster) = input.cluster.map(|it| &it.view.cluster) else { return Self::Unbound };
        let networks = &cluster.machine_networks;
        let is_bootstrap = input.host.bootstrap && !networks.is_empty();
        if cluster.user_managed_networking && !cluster.is_single_node() && !is_bootstrap {
            return Self::UserManagedNetworking;
        }
        if cluster.kind == ClusterKind::AddHostsCluster {
            return Self::AddedHosts;
        }
        if input.inventory().is_none() || networks.is_empty() {
            return Self::MissingFacts;
        }
        let count = networks.iter().filter(|network| input.host.nic_in(**network).is_some()).count();
        match (cluster.has_user_managed_load_balancer(), count) {
            (true, 0) => Self::InNone,
            (true, _) => Self::InOne,
            (false, count) if count == networks.len() => Self::InAll,
            (false, _) => Self::NotInAll,
        }
    }

    fn describe(&self) -> OutcomeDescription {
        const CONNECT: &str =
            "Connect the host to the machine networks, or change the machine networks of the cluster.";
        match self {
            Self::Unbound => OutcomeDescription::suppressed(),
            Self::UserManagedNetworking => OutcomeDescription::success(
                "No machine network CIDR validation needed: User Managed Networking",
            ),
            Self::AddedHosts => {
                OutcomeDescription::success("No machine network CIDR validation needed: Day2 cluster")
            }
            Self::MissingFacts => {
                OutcomeDescription::pending("Missing inventory or machine network CIDR", WAIT_FOR_INVENTORY)
            }
            Self::InAll => OutcomeDescription::success("Host belongs to all machine network CIDRs"),
            Self::NotInAll => OutcomeDescription::failure(
                "Host does not belong to machine network CIDRs. Verify that the host belongs to every CIDR listed \
                 under machine networks",
                CONNECT,
            ),
            Self::InOne => OutcomeDescription::success("Host belongs to at least one machine network CIDR"),
            Self::InNone => OutcomeDescription::failure(
                "Host does not belong to any machine network CIDR. Verify that the host belongs to at least one CIDR \
                 listed under machine networks",
                CONNECT,
            ),
        }
    }

    fn samples() -> Vec<Self> {
        use MachineCidrMemberOutcome::{
            AddedHosts, InAll, InNone, InOne, MissingFacts, NotInAll, Unbound, UserManagedNetworking,
        };
        vec![Unbound, UserManagedNetworking, AddedHosts, MissingFacts, InAll, NotInAll, InOne, InNone]
    }
}
