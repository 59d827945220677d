//! Validation `machine-cidr-equals-to-calculated-cidr`: whether the virtual IP addresses are in the machine networks.

use std::fmt::Write as _;
use std::net::IpAddr;

use ignition::Cidr;
use serde::{Deserialize, Serialize};

use super::group::ClusterGroup;
use super::input::ClusterInput;
use super::vip_inputs::{has_inventories, not_discovered};
use crate::cluster::machine_networks::network_of_vip;
use crate::validation::definition::{ValidationCategory, ValidationDefinition};
use crate::validation::outcome::{OutcomeDescription, TypedOutcome};
use crate::view::ClusterView;

/// The outcome of the validation `machine-cidr-equals-to-calculated-cidr`, which compares each machine network with the
/// hosts' network that contains the virtual IP address at the same position.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CalculatedNetworkOutcome {
    /// The user manages the networking, so the networks are not compared.
    UserManagedNetworking,
    /// The user provides the load balancer, so the networks are not compared.
    UserManagedLoadBalancer,
    /// No virtual IP address is set.
    Undefined,
    /// No host has an inventory report.
    NotDiscovered,
    /// All compared networks are equal.
    Equal,
    /// At least one network differs or does not exist.
    Different {
        /// The differences, in the order of the virtual IP addresses.
        differences: Vec<NetworkDifference>,
    },
}

/// A virtual IP address whose network differs from the machine network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum NetworkDifference {
    /// No host has a network that contains the address.
    NoNetwork {
        /// The virtual IP address without a network.
        vip: IpAddr,
    },
    /// The network of the address differs from the machine network.
    OtherNetwork {
        /// Machine network at the same position as the address. `None` if the list is too short.
        stored: Option<Cidr>,
        /// The hosts' network that contains the address.
        calculated: Cidr,
    },
}

impl TypedOutcome for CalculatedNetworkOutcome {
    type Group = ClusterGroup;
    type Input<'a> = ClusterInput<'a>;

    const DEFINITION: ValidationDefinition<ClusterGroup> = ValidationDefinition {
        category: ValidationCategory::Network,
        groups: &[ClusterGroup::RequiredForInstall],
        is_ignorable: true,
        hidden_in: &[],
        applies_to: "clusters with several nodes, unless the user manages the networking or the load balancer",
        passes_if: "each virtual IP address of the API is in a network of the hosts, and the machine network at its \
                    position is that network or not set",
    };

    fn evaluate(input: &ClusterInput<'_>) -> Self {
        let cluster = &input.view.cluster;
        if cluster.user_managed_networking {
            return Self::UserManagedNetworking;
        }
        if cluster.has_user_managed_load_balancer() {
            return Self::UserManagedLoadBalancer;
        }
        if cluster.api_vips.is_empty() && cluster.ingress_vips.is_empty() {
            return Self::Undefined;
        }
        if !has_inventories(input.view) {
            return Self::NotDiscovered;
        }
        let differences = differences(input.view);
        if differences.is_empty() { Self::Equal } else { Self::Different { differences } }
    }

    fn describe(&self) -> OutcomeDescription {
        match self {
            Self::UserManagedNetworking => OutcomeDescription::success(
                "The Cluster Machine CIDR is not required: User Managed Networking",
            ),
            Self::UserManagedLoadBalancer => OutcomeDescription::success(
                "Calculating machine network CIDR is not enabled: User Managed Load Balancer",
            ),
            Self::Undefined => OutcomeDescription::pending(
                "The Machine Network CIDR, API virtual IPs, or Ingress virtual IPs are undefined.",
                "Set the virtual IP addresses.",
            ),
            Self::NotDiscovered => not_discovered(),
            Self::Equal => {
                OutcomeDescription::success("The Cluster Machine CIDR is equivalent to the calculated CIDR.")
            }
            Self::Different { differences } => OutcomeDescription::failure(
                list_text(differences),
                "Set virtual IP addresses in a network of the hosts, and the machine network to that network.",
            ),
        }
    }

    #[allow(clippy::unwrap_used, reason = "the texts are constants, and tests make all samples")]
    fn samples() -> Vec<Self> {
        let cidr = |text| Cidr::parse(text).unwrap();
        let none = NetworkDifference::NoNetwork { vip: "192.0.2.5".parse().unwrap() };
        let other = NetworkDifference::OtherNetwork {
            stored: Some(cidr("192.0.2.0/24")),
            calculated: cidr("192.0.2.0/25"),
        };
        vec![
            Self::UserManagedNetworking,
            Self::UserManagedLoadBalancer,
            Self::Undefined,
            Self::NotDiscovered,
            Self::Equal,
            Self::Different { differences: vec![none] },
            Self::Different { differences: vec![other] },
        ]
    }
}

/// Returns the API addresses whose network differs from the machine network. Ingress addresses are not compared.
fn differences(view: &ClusterView) -> Vec<NetworkDifference> {
    let networks = &view.cluster.machine_networks;
    let differences = view.cluster.api_vips.iter().enumerate().filter_map(|(index, vip)| {
        let Some(calculated) = network_of_vip(&view.hosts, *vip) else {
            return Some(NetworkDifference::NoNetwork { vip: *vip });
        };
        let stored = networks.get(index).copied();
        let is_same = stored.map(Cidr::without_host_bits) == Some(calculated) || networks.is_empty();
        (!is_same).then_some(NetworkDifference::OtherNetwork { stored, calculated })
    });
    differences.collect()
}

/// Formats a list of errors like the Assisted Installer.
fn list_text(differences: &[NetworkDifference]) -> String {
    let mut text = match differences {
        [_] => "1 error occurred:\n".to_owned(),
        _ => format!("{} errors occurred:\n", differences.len()),
    };
    for difference in differences {
        // Writing to a `String` cannot fail.
        let _ = writeln!(text, "\t* {}", difference.text());
    }
    text.push('\n');
    text
}

impl NetworkDifference {
    fn text(&self) -> String {
        match self {
            Self::NoNetwork { vip } => format!("No suitable matching CIDR found for VIP {vip}"),
            Self::OtherNetwork { stored, calculated } => {
                // The Assisted Installer shows an empty text if the machine network does not exist.
                let stored = stored.map(|network| network.to_string()).unwrap_or_default();
                format!(
                    "The Cluster Machine CIDR {stored} is different than the calculated CIDR {calculated}."
                )
            }
        }
    }
}
