//! Rules about the cluster that hosts are meant for.

use std::net::IpAddr;

use super::address::Subnet;
use super::finding::{Draft, Rule, shown};
use super::state::{Claim, Found, Identity};

/// Networks and addresses of a cluster, as far as they are known.
#[derive(Clone, Debug, Default)]
pub struct ClusterNetworks {
    /// The virtual addresses, which no host may have.
    pub vips: Vec<Vip>,
    /// The machine networks. Each host needs an address in one of them.
    pub machine_networks: Vec<Subnet>,
}

/// A virtual address of a cluster.
#[derive(Clone, Debug)]
pub struct Vip {
    /// The address.
    pub address: IpAddr,
    /// What it is, for messages: `the API VIP in cluster.yaml:30`.
    pub label: String,
}

impl ClusterNetworks {
    /// Whether nothing is known.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.vips.is_empty() && self.machine_networks.is_empty()
    }
}

/// Compares the static addresses of a host with the cluster's. Their claims have been made.
pub(super) fn check(cluster: &ClusterNetworks, found: &mut Found) {
    let mut findings = Vec::new();
    let mut addresses = Vec::new();
    for claim in &found.claims {
        let Claim { identity: Identity::Address(address), written, interface, path } = claim else {
            continue;
        };
        addresses.push((*address, claim));
        if let Some(vip) = cluster.vips.iter().find(|vip| vip.address == *address) {
            let message = format!("{} is {} too", shown(written), vip.label);
            findings.push(draft(Draft::error(Rule::Vip, path, message), interface.as_deref()));
        }
    }
    let is_inside =
        |address: IpAddr| cluster.machine_networks.iter().any(|network| network.contains(address));
    let may_get_one = |network: &Subnet| {
        if network.is_ipv4() { found.is_dynamic.ipv4 } else { found.is_dynamic.ipv6 }
    };
    if let (Some((_, first)), false) = (addresses.first(), cluster.machine_networks.is_empty())
        && !cluster.machine_networks.iter().any(may_get_one)
        && !addresses.iter().any(|(address, _)| is_inside(*address))
    {
        let networks: Vec<String> = cluster.machine_networks.iter().map(ToString::to_string).collect();
        let many = if networks.len() == 1 { "" } else { "s" };
        let message =
            format!("the host has no static address in the machine network{many} {}", networks.join(", "));
        findings.push(draft(
            Draft::warning(Rule::MachineNetwork, &first.path, message),
            first.interface.as_deref(),
        ));
    }
    findings.into_iter().for_each(|finding| found.push(finding));
}

fn draft(draft: Draft, interface: Option<&str>) -> Draft {
    match interface {
        Some(interface) => draft.of(interface),
        None => draft,
    }
}
