//! The connectivity groups of a cluster: hosts that all report that they can reach each other.
//!
//! Validations require that a host belongs to such a group, and the API shows the groups. The groups are computed from
//! the connectivity reports of the agents.

mod host_set;
mod mesh;
mod reach;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;
use std::net::IpAddr;

use assisted::HostId;
use assisted::host::HostRole;
use ignition::Cidr;
use serde::{Deserialize, Serialize};

use host_set::HostSet;
use mesh::largest_mesh;
use reach::{HostReach, reach_of_hosts};

use crate::view::ClusterView;

/// Maximum number of networks for which a group is computed. Machine networks come first, then the networks with the
/// most hosts.
pub const MAX_NETWORKS: usize = 128;

/// Maximum number of hosts, added up over all networks except the machine networks. Agents choose their networks and
/// the groups are stored, so the limit bounds the stored size.
const MAX_MEMBERS: usize = 8192;

/// The connectivity groups of a cluster, by network and by address family.
///
/// Two hosts reach each other only if each of them reports that it reaches the other. In each group, every host reaches
/// every other host. The ids of a group are in ascending order.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConnectivityGroups {
    /// For each network of the hosts, the largest group found in it. Empty if the group is too small.
    pub on_link: BTreeMap<Cidr, Vec<HostId>>,
    /// Hosts that reach each other at all of their IPv4 addresses: the largest group that the search finds.
    pub ipv4: Vec<HostId>,
    /// Hosts that reach each other at all of their IPv6 addresses: the largest group that the search finds.
    pub ipv6: Vec<HostId>,
    /// For each host, the addresses that every other host reaches, in ascending order. Hosts without such an address
    /// are omitted.
    pub reached_addresses: BTreeMap<HostId, Vec<IpAddr>>,
}

impl ConnectivityGroups {
    /// Computes the groups from the connectivity reports of the cluster's hosts.
    #[must_use]
    pub fn new(view: &ClusterView) -> Self {
        let reach = reach_of_hosts(view);
        let group = |reaching: &dyn Fn(&HostReach) -> HostSet| -> Vec<HostId> {
            let mesh = largest_mesh(&mutual(reach.iter().map(reaching).collect()));
            if mesh.len() < min_group_len(view) {
                return Vec::new();
            }
            mesh.iter().filter_map(|host| view.hosts.get(host)).map(|host| host.id).collect()
        };
        let networks = networks(view).into_iter();
        Self {
            on_link: networks.map(|network| (network, group(&|reach| reach.in_network(network)))).collect(),
            ipv4: group(&|reach| reach.in_family(IpAddr::is_ipv4)),
            ipv6: group(&|reach| reach.in_family(IpAddr::is_ipv6)),
            reached_addresses: reached_addresses(view, &reach),
        }
    }

    /// Returns the groups as the JSON text that the API shows.
    #[must_use]
    pub fn to_json(&self) -> String {
        let networks = self.on_link.iter().map(|(network, hosts)| (network.to_string(), hosts));
        let families = [("IPv4".to_owned(), &self.ipv4), ("IPv6".to_owned(), &self.ipv6)];
        // The API sorts keys and addresses as text. They contain no characters that need JSON escaping, so they are
        // written as is.
        let groups: BTreeMap<_, _> = networks.chain(families).collect();
        let groups = groups.into_iter().map(|(name, hosts)| (name, json_list(hosts)));
        let addresses = self.reached_addresses.iter().map(|(host, addresses)| {
            let texts: BTreeSet<_> = addresses.iter().map(IpAddr::to_string).collect();
            (host, json_list(&texts))
        });
        let (groups, addresses) = (json_object(groups), json_object(addresses));
        format!(r#"{{"majority_groups":{groups},"l3_connected_addresses":{addresses}}}"#)
    }
}

/// Returns the minimum number of hosts in a group of this cluster. Smaller groups count as empty.
#[must_use]
pub fn min_group_len(view: &ClusterView) -> usize {
    if has_two_fenced_masters(view) { 2 } else { 3 }
}

/// Returns `true` if a cluster has exactly two control plane nodes, and each of them can switch off the other.
fn has_two_fenced_masters(view: &ClusterView) -> bool {
    let hosts_with = |role| view.hosts.iter().filter(move |host| host.effective_role() == role);
    view.cluster.control_plane_count == 2
        && hosts_with(HostRole::Arbiter).next().is_none()
        && hosts_with(HostRole::Master).count() == 2
        && hosts_with(HostRole::Master).all(|host| host.has_fencing_credentials)
}

/// Returns the networks of the hosts, within [`MAX_NETWORKS`] and [`MAX_MEMBERS`].
fn networks(view: &ClusterView) -> Vec<Cidr> {
    let mut host_counts = BTreeMap::<Cidr, usize>::new();
    for host in &view.hosts {
        let addresses = host.nics().iter().flat_map(|nic| &nic.addresses);
        let networks: BTreeSet<_> = addresses.map(|address| address.without_host_bits()).collect();
        networks.into_iter().for_each(|network| *host_counts.entry(network).or_default() += 1);
    }
    let machine_networks: BTreeSet<_> =
        view.cluster.machine_networks.iter().map(|network| network.without_host_bits()).collect();
    let mut networks: Vec<_> = host_counts.into_iter().collect();
    networks.sort_by_key(|(network, count)| (!machine_networks.contains(network), Reverse(*count)));
    let mut members = 0_usize;
    let is_within_limit = |(network, count): &(Cidr, usize)| {
        members = members.saturating_add(*count);
        machine_networks.contains(network) || members <= MAX_MEMBERS
    };
    networks.into_iter().take(MAX_NETWORKS).take_while(is_within_limit).map(|(network, _)| network).collect()
}

/// Returns the closed neighbourhood of each host: the host and the hosts with which it has contact in both directions.
/// `reached_by[i]` contains the hosts that report that they reach host `i`.
fn mutual(reached_by: Vec<HostSet>) -> Vec<HostSet> {
    let is_reached_by = |host: usize, other: usize| reached_by.get(host).is_some_and(|it| it.contains(other));
    let mut neighbours = reached_by.clone();
    for (host, (closed, reporters)) in neighbours.iter_mut().zip(&reached_by).enumerate() {
        reporters.iter().filter(|other| !is_reached_by(*other, host)).for_each(|other| closed.remove(other));
        closed.insert(host);
    }
    neighbours
}

fn reached_addresses(view: &ClusterView, reach: &[HostReach]) -> BTreeMap<HostId, Vec<IpAddr>> {
    let others = view.hosts.len().saturating_sub(1);
    let addresses = |reach: &HostReach| -> Vec<IpAddr> {
        let reached = reach.addresses.iter().filter(|reached| reached.routed.len() == others);
        let mut addresses: Vec<_> = reached.map(|reached| reached.address).collect();
        addresses.sort_unstable();
        addresses
    };
    let hosts = view.hosts.iter().zip(reach).filter(|_| others > 0);
    let hosts = hosts.map(|(host, reach)| (host.id, addresses(reach)));
    hosts.filter(|(_, addresses)| !addresses.is_empty()).collect()
}

fn json_list<T: Display>(items: impl IntoIterator<Item = T>) -> String {
    let items: Vec<_> = items.into_iter().map(|item| format!(r#""{item}""#)).collect();
    format!("[{}]", items.join(","))
}

fn json_object<K: Display>(members: impl IntoIterator<Item = (K, String)>) -> String {
    let members: Vec<_> = members.into_iter().map(|(key, value)| format!(r#""{key}":{value}"#)).collect();
    format!("{{{}}}", members.join(","))
}

#[cfg(test)]
mod tests;
