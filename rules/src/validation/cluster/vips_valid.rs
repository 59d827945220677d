//! The outcome shared by `api-vips-valid` and `ingress-vips-valid`: whether virtual IP addresses are unused addresses
//! in the machine networks.

use std::net::IpAddr;

use assisted::cluster::VipVerification;
use assisted::step::VipType;
use ignition::Cidr;
use serde::{Deserialize, Serialize};

use super::group::ClusterGroup;
use super::vip_inputs::{
    has_inventories, not_discovered, not_required_of_single_node, not_required_of_user_managed, vip_name,
    vips_of,
};
use super::vip_problem::VipProblem;
use crate::cluster::vips::verification_in;
use crate::validation::definition::{ValidationCategory, ValidationDefinition};
use crate::validation::outcome::OutcomeDescription;
use crate::view::ClusterView;

/// The definition that `api-vips-valid` and `ingress-vips-valid` share.
pub(super) const DEFINITION: ValidationDefinition<ClusterGroup> = ValidationDefinition {
    category: ValidationCategory::Network,
    groups: &[ClusterGroup::RequiredForInstall],
    is_ignorable: true,
    hidden_in: &[],
    applies_to: "clusters with several nodes, unless the user manages the networking",
    passes_if: "each address is an unused address of its machine network, and not the broadcast address. If the user \
                manages the load balancer: the first address is in one of the machine networks",
};

const CHOOSE_ADDRESS: &str = "Set an unused address of the machine network, or wait until the hosts have checked the \
                              address.";

/// The outcome that `api-vips-valid` and `ingress-vips-valid` share.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum VipsValidOutcome {
    /// The user manages the networking, so no addresses are needed.
    UserManagedNetworking,
    /// A single-node cluster needs no addresses.
    SingleNode,
    /// No address is set.
    Undefined,
    /// No host has an inventory report, or no machine network is set.
    NotDiscovered,
    /// All addresses are valid.
    Valid {
        /// The valid addresses, for the message.
        vips: Vec<IpAddr>,
    },
    /// The address on the user-managed load balancer is valid.
    ValidForLoadBalancer {
        /// The first address of the list.
        vip: IpAddr,
    },
    /// At least one address is invalid.
    Invalid {
        /// The problems, in the order of the addresses.
        problems: Vec<VipProblem>,
    },
    /// The address on the user-managed load balancer is in none of the machine networks.
    InvalidForLoadBalancer {
        /// The first address of the list.
        vip: IpAddr,
        /// Each machine network, with the reason why it does not fit.
        problems: Vec<(Cidr, VipProblem)>,
    },
}

impl VipsValidOutcome {
    pub(super) fn evaluate(view: &ClusterView, vip_type: VipType) -> Self {
        let cluster = &view.cluster;
        if cluster.user_managed_networking {
            return Self::UserManagedNetworking;
        }
        if cluster.is_single_node() {
            return Self::SingleNode;
        }
        let vips = vips_of(cluster, vip_type);
        let Some(first) = vips.first() else { return Self::Undefined };
        if !has_inventories(view) || cluster.machine_networks.is_empty() {
            return Self::NotDiscovered;
        }
        if cluster.has_user_managed_load_balancer() {
            return Self::of_load_balancer(&cluster.machine_networks, *first);
        }
        let problems = vips.iter().enumerate().filter_map(|(index, vip)| {
            problem_of(view, vip_type, *vip, cluster.machine_networks.get(index).copied())
        });
        let problems: Vec<VipProblem> = problems.collect();
        if problems.is_empty() { Self::Valid { vips: vips.to_vec() } } else { Self::Invalid { problems } }
    }

    /// Computes the outcome for an address on a user-managed load balancer. The address may already be in use.
    fn of_load_balancer(networks: &[Cidr], vip: IpAddr) -> Self {
        let problems: Option<Vec<_>> = networks
            .iter()
            .map(|network| VipProblem::in_network(vip, *network).map(|problem| (*network, problem)))
            .collect();
        problems.map_or(Self::ValidForLoadBalancer { vip }, |problems| Self::InvalidForLoadBalancer {
            vip,
            problems,
        })
    }

    pub(super) fn describe(&self, vip_type: VipType) -> OutcomeDescription {
        let name = vip_type.as_str();
        match self {
            Self::UserManagedNetworking => not_required_of_user_managed(vip_type),
            Self::SingleNode => not_required_of_single_node(vip_type),
            Self::Undefined => OutcomeDescription::pending(
                format!("{} virtual IPs are undefined.", vip_name(vip_type)),
                "Set a virtual IP address: an unused one in a network of the hosts.",
            ),
            Self::NotDiscovered => not_discovered(),
            Self::Valid { vips } => OutcomeDescription::success(format!(
                "{name} vips {} belongs to the Machine CIDR and is not in use.",
                joined(vips.iter(), ", "),
            )),
            Self::ValidForLoadBalancer { vip } => {
                OutcomeDescription::success(format!("{name} vip {vip} is valid"))
            }
            Self::Invalid { problems } => {
                let label = format!("{name} vips");
                let problems = problems.iter().map(|problem| problem.text(&label));
                OutcomeDescription::failure(joined(problems, ";"), CHOOSE_ADDRESS)
            }
            Self::InvalidForLoadBalancer { vip, problems } => {
                let label = format!("{name} vip");
                let problems = problems.iter().map(|(network, problem)| {
                    format!("machine network CIDR <{network}> verification failed: {}", problem.text(&label))
                });
                OutcomeDescription::failure(
                    format!(
                        "{label} '{vip}' failed verification: none of the machine networks is satisfying the \
                         requirements, description: {}",
                        joined(problems, "; "),
                    ),
                    "Set an address in a machine network, or add the network of the address to the machine networks.",
                )
            }
        }
    }

    #[allow(clippy::unwrap_used, reason = "the texts are constants, and tests make all samples")]
    pub(super) fn samples() -> Vec<Self> {
        let vip = "192.0.2.5".parse().unwrap();
        let network = Cidr::parse("198.51.100.0/24").unwrap();
        let outside = VipProblem::Outside { vip, network };
        let mut samples = vec![
            Self::UserManagedNetworking,
            Self::SingleNode,
            Self::Undefined,
            Self::NotDiscovered,
            Self::Valid { vips: vec![vip] },
            Self::ValidForLoadBalancer { vip },
            Self::InvalidForLoadBalancer { vip, problems: vec![(network, outside)] },
        ];
        let problems = VipProblem::samples().into_iter();
        samples.extend(problems.map(|problem| Self::Invalid { problems: vec![problem] }));
        samples
    }
}

/// Returns the reason why an address is invalid, or `None` if it is valid. `network` is the machine network at the
/// position of the address.
fn problem_of(
    view: &ClusterView,
    vip_type: VipType,
    vip: IpAddr,
    network: Option<Cidr>,
) -> Option<VipProblem> {
    let Some(network) = network else { return Some(VipProblem::NoNetwork { vip }) };
    if let Some(problem) = VipProblem::in_network(vip, network) {
        return Some(problem);
    }
    match verification_in(view, vip_type, vip, network) {
        VipVerification::Succeeded => None,
        VipVerification::Failed => Some(VipProblem::in_use(vip, network, view.hosts.len())),
        VipVerification::Unverified => Some(VipProblem::Unverified { vip }),
    }
}

fn joined<T: ToString>(items: impl Iterator<Item = T>, separator: &str) -> String {
    items.map(|item| item.to_string()).collect::<Vec<_>>().join(separator)
}
