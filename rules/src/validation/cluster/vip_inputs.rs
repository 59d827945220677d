//! Functions that the validations of virtual IP addresses (VIPs) share.

use std::net::IpAddr;

use assisted::step::VipType;

use crate::validation::outcome::OutcomeDescription;
use crate::view::{ClusterSettings, ClusterView};

/// Returns the virtual IP addresses of this type.
pub(super) fn vips_of(cluster: &ClusterSettings, vip_type: VipType) -> &[IpAddr] {
    match vip_type {
        VipType::Api => &cluster.api_vips,
        VipType::Ingress => &cluster.ingress_vips,
    }
}

/// Returns `true` if at least one host has an inventory report.
pub(super) fn has_inventories(view: &ClusterView) -> bool {
    view.hosts.iter().any(|host| host.summary.inventory.is_some())
}

/// Returns the description for a cluster without inventory reports.
pub(super) fn not_discovered() -> OutcomeDescription {
    OutcomeDescription::pending(
        "Hosts have not been discovered yet",
        "Wait for the agents to send their inventory reports.",
    )
}

/// Returns the name of a VIP type in messages.
pub(super) fn vip_name(vip_type: VipType) -> &'static str {
    match vip_type {
        VipType::Api => "API",
        VipType::Ingress => "Ingress",
    }
}

pub(super) fn not_required_of_user_managed(vip_type: VipType) -> OutcomeDescription {
    let name = vip_name(vip_type);
    OutcomeDescription::success(format!("{name} virtual IPs are not required: User Managed Networking"))
}

pub(super) fn not_required_of_single_node(vip_type: VipType) -> OutcomeDescription {
    OutcomeDescription::success(format!("{} virtual IPs are not required: SNO", vip_name(vip_type)))
}
