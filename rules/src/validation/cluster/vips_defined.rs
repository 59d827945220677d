//! The outcome shared by `api-vips-defined` and `ingress-vips-defined`: whether virtual IP addresses are set.

use assisted::step::VipType;
use serde::{Deserialize, Serialize};

use super::group::ClusterGroup;
use super::vip_inputs::{not_required_of_single_node, not_required_of_user_managed, vip_name, vips_of};
use crate::validation::definition::{ValidationCategory, ValidationDefinition};
use crate::validation::outcome::OutcomeDescription;
use crate::view::ClusterSettings;

/// The definition that `api-vips-defined` and `ingress-vips-defined` share.
pub(super) const DEFINITION: ValidationDefinition<ClusterGroup> = ValidationDefinition {
    category: ValidationCategory::Network,
    groups: &[ClusterGroup::VipsDefined],
    is_ignorable: false,
    hidden_in: &[],
    applies_to: "clusters with several nodes, unless the user manages the networking",
    passes_if: "at least one address is set",
};

/// The outcome that `api-vips-defined` and `ingress-vips-defined` share.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum VipsDefinedOutcome {
    /// The user manages the networking, so no addresses are needed.
    UserManagedNetworking,
    /// A single-node cluster needs no addresses.
    SingleNode,
    /// At least one address is set.
    Defined,
    /// VIP DHCP allocation is enabled, but the machine network is not set.
    MissingMachineNetwork,
    /// VIP DHCP allocation is enabled, but no host has reported a lease yet.
    MissingLease,
    /// No address is set.
    Undefined,
}

impl VipsDefinedOutcome {
    pub(super) fn evaluate(cluster: &ClusterSettings, vip_type: VipType) -> Self {
        if cluster.user_managed_networking {
            return Self::UserManagedNetworking;
        }
        if cluster.is_single_node() {
            return Self::SingleNode;
        }
        if !vips_of(cluster, vip_type).is_empty() {
            return Self::Defined;
        }
        match (cluster.vip_dhcp_allocation, cluster.machine_networks.is_empty()) {
            (true, true) => Self::MissingMachineNetwork,
            (true, false) => Self::MissingLease,
            (false, _) => Self::Undefined,
        }
    }

    pub(super) fn describe(self, vip_type: VipType) -> OutcomeDescription {
        let name = vip_name(vip_type);
        match self {
            Self::UserManagedNetworking => not_required_of_user_managed(vip_type),
            Self::SingleNode => not_required_of_single_node(vip_type),
            Self::Defined => OutcomeDescription::success(format!("{name} virtual IPs are defined.")),
            Self::MissingMachineNetwork => OutcomeDescription::pending(
                "The Machine Network CIDR is undefined",
                "Set the machine network of the cluster.",
            ),
            Self::MissingLease => OutcomeDescription::failure(
                format!(
                    "{name} virtual IPs are undefined; after the Machine Network CIDR has been defined, {name} \
                     virtual IPs are received from a DHCP lease allocation task which may take up to 2 minutes."
                ),
                "Wait. If no address is assigned, check that a DHCP server is in the machine network.",
            ),
            Self::Undefined => OutcomeDescription::failure(
                format!("{name} virtual IPs are undefined and must be provided."),
                "Set a virtual IP address: an unused one in a network of the hosts.",
            ),
        }
    }

    pub(super) fn samples() -> Vec<Self> {
        vec![
            Self::UserManagedNetworking,
            Self::SingleNode,
            Self::Defined,
            Self::MissingMachineNetwork,
            Self::MissingLease,
            Self::Undefined,
        ]
    }
}
