//! The machine networks of a cluster, derived from its settings and the networks of its hosts.
//!
//! Usually the user sets virtual IP addresses, and the service finds the hosts' networks that contain them. A cluster
//! with VIP DHCP allocation or with a single node has no virtual IP addresses yet. Its machine networks are chosen from
//! the networks of its hosts.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::sync::Arc;

use assisted::cluster::{ClusterKind, ClusterStatus};
use ignition::Cidr;

use crate::view::{ClusterSettings, ClusterView, HostView};

/// Returns the new machine networks of a cluster, or `None` if the stored networks do not change.
#[must_use]
pub fn new_machine_networks(view: &ClusterView) -> Option<Vec<Cidr>> {
    let cluster = &view.cluster;
    // The Assisted Installer changes the networks of a ready cluster only after the cluster becomes insufficient.
    // Kindling changes them immediately, which leads to the same networks.
    let can_change = matches!(
        cluster.status,
        ClusterStatus::PendingForInput | ClusterStatus::Insufficient | ClusterStatus::Ready
    );
    if cluster.kind != ClusterKind::Cluster || cluster.imported || !can_change {
        return None;
    }
    let networks = if cluster.vip_dhcp_allocation {
        only_network(&view.hosts)?
    } else if cluster.is_single_node() {
        single_node_networks(view)?
    } else if cluster.user_managed_networking || cluster.has_user_managed_load_balancer() {
        return None;
    } else {
        networks_of_vips(view)?
    };
    (networks != cluster.machine_networks).then_some(networks)
}

/// Returns the first network of the hosts' interfaces that contains a virtual IP address, as a network address.
///
/// Searches hosts, interfaces and addresses in order. A later network that also contains the address may be smaller.
#[must_use]
pub fn network_of_vip(hosts: &[Arc<HostView>], vip: IpAddr) -> Option<Cidr> {
    networks_of(hosts).find(|network| network.contains(vip))
}

/// Returns the network address of each interface address of the hosts.
fn networks_of(hosts: &[Arc<HostView>]) -> impl Iterator<Item = Cidr> {
    let nics = hosts.iter().flat_map(|host| host.nics());
    nics.flat_map(|nic| &nic.addresses).map(|address| address.without_host_bits())
}

/// Returns the only network of the hosts, or `None` if they have several networks.
fn only_network(hosts: &[Arc<HostView>]) -> Option<Vec<Cidr>> {
    let first = networks_of(hosts).next()?;
    networks_of(hosts).all(|network| network == first).then(|| vec![first])
}

/// Returns one network for each address family of a single-node cluster. Returns `None` if the cluster already has
/// machine networks.
fn single_node_networks(view: &ClusterView) -> Option<Vec<Cidr>> {
    let cluster = &view.cluster;
    let families = families_in_order(cluster.cluster_networks.iter().map(|network| network.cidr));
    let is_unset = cluster.machine_networks.is_empty() && !families.is_empty();
    if !is_unset || families != families_in_order(cluster.service_networks.iter().copied()) {
        return None;
    }
    families.into_iter().map(|family| network_of_family(&view.hosts, family)).collect()
}

/// Returns the hosts' network of an address family. If the hosts have several, returns the network of the default
/// gateway.
fn network_of_family(hosts: &[Arc<HostView>], family: AddressFamily) -> Option<Cidr> {
    let networks: BTreeSet<Cidr> =
        networks_of(hosts).filter(|network| family_of(*network) == family).collect();
    if networks.len() <= 1 {
        return networks.first().copied();
    }
    let gateway = default_gateway(hosts, family)?;
    networks.into_iter().find(|network| network.contains(gateway))
}

/// Returns the gateway of the default route with the lowest metric.
fn default_gateway(hosts: &[Arc<HostView>], family: AddressFamily) -> Option<IpAddr> {
    let inventories = hosts.iter().filter_map(|host| host.summary.inventory.as_deref());
    let gateways = inventories.flat_map(|inventory| &inventory.routes).filter_map(|route| {
        let is_default = route.destination.is_some_and(|destination| destination.is_unspecified());
        let gateway =
            route.gateway.filter(|gateway| is_default && AddressFamily::from(*gateway) == family)?;
        Some((route.metric, gateway))
    });
    // If several routes have the lowest metric, the first one counts.
    gateways.min_by_key(|(metric, _)| *metric).map(|(_, gateway)| gateway)
}

/// Returns the networks of the first and the second virtual IP address, or `None` if the stored networks do not change.
fn networks_of_vips(view: &ClusterView) -> Option<Vec<Cidr>> {
    let cluster = &view.cluster;
    let network_at = |index: usize| {
        let vip = cluster.api_vips.get(index).or_else(|| cluster.ingress_vips.get(index))?;
        network_of_vip(&view.hosts, *vip)
    };
    let (first, second) = (network_at(0), network_at(1));
    let stored = &cluster.machine_networks;
    // Users of dual-stack clusters set both networks themselves. Often the hosts are still unknown then, and only the
    // first network has a virtual IP address. The Assisted Installer also deletes the stored network of a cluster
    // without known hosts; Kindling keeps it.
    let has_no_network_yet = first.is_none() && (is_dual_stack(cluster) || !has_inventories(&view.hosts));
    let is_first_same = first.as_ref() == stored.first();
    let is_second_same = second.is_none() || second.as_ref() == stored.get(1);
    if has_no_network_yet || (is_first_same && is_second_same) {
        return None;
    }
    Some([first, second].into_iter().flatten().collect())
}

/// Returns `true` if at least one host has an inventory report.
fn has_inventories(hosts: &[Arc<HostView>]) -> bool {
    hosts.iter().any(|host| host.summary.inventory.is_some())
}

/// Returns `true` if any list of the cluster's networks contains both address families.
fn is_dual_stack(cluster: &ClusterSettings) -> bool {
    let has_both =
        |networks: &mut dyn Iterator<Item = Cidr>| networks.map(family_of).collect::<BTreeSet<_>>().len() > 1;
    has_both(&mut cluster.machine_networks.iter().copied())
        || has_both(&mut cluster.service_networks.iter().copied())
        || has_both(&mut cluster.cluster_networks.iter().map(|network| network.cidr))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum AddressFamily {
    V4,
    V6,
}

impl From<IpAddr> for AddressFamily {
    fn from(address: IpAddr) -> Self {
        if address.is_ipv4() { Self::V4 } else { Self::V6 }
    }
}

fn family_of(network: Cidr) -> AddressFamily {
    network.address().into()
}

/// Returns the address families of the networks, without adjacent duplicates.
fn families_in_order(networks: impl Iterator<Item = Cidr>) -> Vec<AddressFamily> {
    let mut families: Vec<_> = networks.map(family_of).collect();
    families.dedup();
    families
}

#[cfg(test)]
mod tests;
