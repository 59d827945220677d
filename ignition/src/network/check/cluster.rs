//! Rules that compare a host with its cluster.

use std::net::IpAddr;

use super::finding::{Rule, excerpt};
use super::state::{HostResult, Identity};
use crate::cidr::Cidr;
use crate::report::Severity;

/// The networks and addresses of a cluster, as far as they are known.
#[derive(Clone, Debug, Default)]
pub struct ClusterNetworks {
    /// The virtual addresses of the cluster, which hosts must not use.
    pub vips: Vec<ClusterVip>,
    /// The machine networks. Each host needs an address in at least one of them.
    pub machine_networks: Vec<Cidr>,
}

/// A virtual address of a cluster.
#[derive(Clone, Debug)]
pub struct ClusterVip {
    /// The IP address, which no host may use.
    pub address: IpAddr,
    /// A description for messages, such as `the API VIP in cluster.yaml:30`.
    pub label: String,
}

impl ClusterNetworks {
    /// Returns `true` if neither virtual addresses nor machine networks are known.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.vips.is_empty() && self.machine_networks.is_empty()
    }
}

/// Compares a host's static addresses with the addresses of the cluster. Must run after the rules that claim addresses.
pub(super) fn check(cluster: &ClusterNetworks, result: &mut HostResult) {
    let mut findings = Vec::new();
    let mut addresses = Vec::new();
    for claim in &result.claims {
        let Identity::Address(address) = claim.identity else { continue };
        addresses.push((address, claim));
        if let Some(vip) = cluster.vips.iter().find(|vip| vip.address == address) {
            let message = format!("{} is also {}", excerpt(&claim.written), vip.label);
            findings.push(claim.finding(Severity::Error, Rule::Vip, message));
        }
    }
    let is_inside =
        |address: IpAddr| cluster.machine_networks.iter().any(|network| network.contains(address));
    let may_get_one = |network: &Cidr| {
        if network.address.is_ipv4() { result.dynamic_families.ipv4 } else { result.dynamic_families.ipv6 }
    };
    if let (Some((_, first)), false) = (addresses.first(), cluster.machine_networks.is_empty())
        && !cluster.machine_networks.iter().any(may_get_one)
        && !addresses.iter().any(|(address, _)| is_inside(*address))
    {
        let networks: Vec<String> = cluster.machine_networks.iter().map(ToString::to_string).collect();
        let many = if networks.len() == 1 { "" } else { "s" };
        let message =
            format!("the host has no static address in the machine network{many} {}", networks.join(", "));
        findings.push(first.finding(Severity::Warning, Rule::MachineNetwork, message));
    }
    findings.into_iter().for_each(|finding| result.push(finding));
}
