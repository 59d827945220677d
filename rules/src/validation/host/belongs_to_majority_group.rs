//! Validation `belongs-to-majority-group`: whether the host reaches the majority of the cluster's hosts.

use std::net::IpAddr;

use serde::{Deserialize, Serialize};

use super::group::HostGroup;
use super::input::{HostCluster, HostInput};
use crate::cluster::connectivity_groups::min_group_len;
use crate::validation::definition::{ValidationCategory, ValidationDefinition};
use crate::validation::outcome::{OutcomeDescription, TypedOutcome};
use crate::view::{ClusterSettings, HostView};

/// The outcome of the validation `belongs-to-majority-group`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MajorityGroupOutcome {
    /// The host does not belong to a cluster.
    Unbound,
    /// The host joins an installed cluster.
    Joining,
    /// The cluster has no machine networks.
    MissingNetworks,
    /// The host belongs to the required groups, or is the only host.
    Member,
    /// The host belongs to no group, but the cluster has too few hosts to form one.
    TooFewHosts,
    /// The host does not belong to a required group.
    Outside,
}

impl TypedOutcome for MajorityGroupOutcome {
    type Group = HostGroup;
    type Input<'a> = HostInput<'a>;

    const DEFINITION: ValidationDefinition<HostGroup> = ValidationDefinition {
        category: ValidationCategory::Network,
        groups: &[HostGroup::SufficientForInstall],
        is_ignorable: true,
        hidden_in: &[],
        applies_to: "hosts of a cluster with several nodes, except those that join an installed cluster",
        passes_if: "in each machine network, the host is one of the largest group of hosts that reach each other in \
            the same network segment; with user-managed networking or a load balancer of the user, all other hosts \
            reach an address of the host over IP, in each address family of the cluster",
    };

    fn evaluate(input: &HostInput<'_>) -> Self {
        let (host, Some(cluster)) = (input.host, input.cluster) else { return Self::Unbound };
        if host.joins() {
            return Self::Joining;
        }
        let settings = &cluster.view.cluster;
        if settings.is_single_node() {
            return Self::Member;
        }
        let is_member = if settings.user_managed_networking || settings.has_user_managed_load_balancer() {
            is_reached(host, cluster)
        } else if settings.machine_networks.is_empty() {
            return Self::MissingNetworks;
        } else {
            is_in_each_network(host, cluster)
        };
        if is_member {
            Self::Member
        } else if cluster.view.hosts.len() < min_group_len(cluster.view) {
            Self::TooFewHosts
        } else {
            Self::Outside
        }
    }

    fn describe(&self) -> OutcomeDescription {
        match self {
            Self::Unbound => OutcomeDescription::suppressed(),
            Self::Joining => OutcomeDescription::success(
                "Day2 host is not required to be connected to other hosts in the cluster",
            ),
            Self::MissingNetworks => OutcomeDescription::pending(
                "Not enough information to calculate host majority groups",
                "Set the virtual IP addresses or the machine networks of the cluster.",
            ),
            Self::Member => {
                OutcomeDescription::success("Host has connectivity to the majority of hosts in the cluster")
            }
            Self::TooFewHosts => OutcomeDescription::pending(
                "Not enough hosts in cluster to calculate connectivity groups",
                "Add the other hosts to the cluster.",
            ),
            Self::Outside => OutcomeDescription::failure(
                "No connectivity to the majority of hosts in the cluster",
                "Wait for the connectivity reports of all hosts. If the failure remains, check the cabling, the VLANs \
                 and the firewalls between the hosts.",
            ),
        }
    }

    fn samples() -> Vec<Self> {
        use MajorityGroupOutcome::{Joining, Member, MissingNetworks, Outside, TooFewHosts, Unbound};
        vec![Unbound, Joining, MissingNetworks, Member, TooFewHosts, Outside]
    }
}

fn is_in_each_network(host: &HostView, cluster: HostCluster<'_>) -> bool {
    let groups = &cluster.peers.groups.on_link;
    cluster.view.cluster.machine_networks.iter().all(|network| {
        let group = groups.get(&network.without_host_bits());
        // The ids of a group are sorted, as the binary search requires.
        group.is_some_and(|group| group.binary_search(&host.id).is_ok())
    })
}

/// Returns `true` if, for each address family of the cluster, all other hosts reach an address of this host.
fn is_reached(host: &HostView, cluster: HostCluster<'_>) -> bool {
    let Some(addresses) = cluster.peers.groups.reached_addresses.get(&host.id) else { return false };
    let families: [fn(&IpAddr) -> bool; 2] = [IpAddr::is_ipv4, IpAddr::is_ipv6];
    let mut families = families.into_iter().filter(|is_family| has_family(&cluster.view.cluster, *is_family));
    families.all(|is_family| addresses.iter().any(is_family))
}

/// Returns `true` if the cluster has a network of this address family.
fn has_family(cluster: &ClusterSettings, is_family: fn(&IpAddr) -> bool) -> bool {
    let pods = cluster.cluster_networks.iter().map(|network| network.cidr);
    let mut networks = pods.chain(cluster.service_networks.iter().chain(&cluster.machine_networks).copied());
    networks.any(|network| is_family(&network.address()))
}
