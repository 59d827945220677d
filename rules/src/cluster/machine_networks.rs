//! The machine networks that follow from the settings of a cluster and the networks of its hosts.
//!
//! Users set virtual IP addresses, and the service looks for the network that they belong to. A cluster whose addresses
//! come from a DHCP server, or that has one node, has no such addresses yet: its machine networks are networks of its
//! hosts.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::sync::Arc;

use assisted::cluster::{ClusterKind, ClusterStatus};
use ignition::Cidr;

use crate::view::{ClusterSettings, ClusterView, HostView};

/// Returns the machine networks of a cluster if they must change. `None`: they stay.
#[must_use]
pub fn new_machine_networks(view: &ClusterView) -> Option<Vec<Cidr>> {
    let cluster = &view.cluster;
    // The Assisted Installer does not change the networks of a ready cluster until it becomes insufficient. Here they
    // change immediately, which leads to the same networks.
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

/// Returns the first network of the hosts' interfaces that contains a virtual IP address, without host bits.
///
/// Searches hosts, interfaces and addresses in order. A smaller network that also contains the address may follow.
#[must_use]
pub fn network_of_vip(hosts: &[Arc<HostView>], vip: IpAddr) -> Option<Cidr> {
    networks_of(hosts).find(|network| network.contains(vip))
}

/// Returns the network of each address of the hosts, without host bits.
fn networks_of(hosts: &[Arc<HostView>]) -> impl Iterator<Item = Cidr> {
    let nics = hosts.iter().flat_map(|host| host.nics());
    nics.flat_map(|nic| &nic.addresses).map(|address| address.without_host_bits())
}

/// Returns the network that all hosts are in, if they are in no other network.
fn only_network(hosts: &[Arc<HostView>]) -> Option<Vec<Cidr>> {
    let first = networks_of(hosts).next()?;
    networks_of(hosts).all(|network| network == first).then(|| vec![first])
}

/// Returns a network of the host for each address family of a cluster with one node, if it has no machine network.
fn single_node_networks(view: &ClusterView) -> Option<Vec<Cidr>> {
    let cluster = &view.cluster;
    let families = families_in_order(cluster.cluster_networks.iter().map(|network| network.cidr));
    let is_unset = cluster.machine_networks.is_empty() && !families.is_empty();
    if !is_unset || families != families_in_order(cluster.service_networks.iter().copied()) {
        return None;
    }
    families.into_iter().map(|family| network_of_family(&view.hosts, family)).collect()
}

/// Returns the network of a family. If the hosts have several, the default route decides.
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
    // Of routes with equal metrics, the first one counts.
    gateways.min_by_key(|(metric, _)| *metric).map(|(_, gateway)| gateway)
}

/// Returns the networks of the first and of the second virtual IP address. `None`: the stored networks stay.
fn networks_of_vips(view: &ClusterView) -> Option<Vec<Cidr>> {
    let cluster = &view.cluster;
    let network_at = |index: usize| {
        let vip = cluster.api_vips.get(index).or_else(|| cluster.ingress_vips.get(index))?;
        network_of_vip(&view.hosts, *vip)
    };
    let (first, second) = (network_at(0), network_at(1));
    let stored = &cluster.machine_networks;
    // Users of dual-stack clusters set both networks, often before the hosts are known and with a virtual IP address in
    // the first network only. The Assisted Installer also deletes the stored network of a cluster without known hosts.
    let has_no_network_yet = first.is_none() && (is_dual_stack(cluster) || !has_inventories(&view.hosts));
    let is_first_same = first.as_ref() == stored.first();
    let is_second_same = second.is_none() || second.as_ref() == stored.get(1);
    if has_no_network_yet || (is_first_same && is_second_same) {
        return None;
    }
    Some([first, second].into_iter().flatten().collect())
}

/// Returns `true` if the networks of some host are known.
fn has_inventories(hosts: &[Arc<HostView>]) -> bool {
    hosts.iter().any(|host| host.summary.inventory.is_some())
}

/// Returns `true` if a list of the cluster's networks has both address families.
fn is_dual_stack(cluster: &ClusterSettings) -> bool {
    let has_both =
        |networks: &mut dyn Iterator<Item = Cidr>| networks.map(family_of).collect::<BTreeSet<_>>().len() > 1;
    has_both(&mut cluster.machine_networks.iter().copied())
        || has_both(&mut cluster.service_networks.iter().copied())
        || has_both(&mut cluster.cluster_networks.iter().map(|network| network.cidr))
}

/// The family of an address.
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

/// Returns the families of networks, without adjacent duplicates.
fn families_in_order(networks: impl Iterator<Item = Cidr>) -> Vec<AddressFamily> {
    let mut families: Vec<_> = networks.map(family_of).collect();
    families.dedup();
    families
}

#[cfg(test)]
mod tests;
