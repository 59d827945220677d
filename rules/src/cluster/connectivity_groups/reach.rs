//! For each host of a cluster, the other hosts that report that they can reach it, by address.

use std::collections::BTreeSet;
use std::net::IpAddr;

use ignition::Cidr;

use super::host_set::HostSet;
use crate::summary::{PeerAddress, PeerSummary};
use crate::view::{ClusterView, HostView};

/// Maximum number of addresses considered for one host. A connectivity report lists at most 16 addresses of each host.
const MAX_ADDRESSES: usize = 32;

/// One address of a host, and the hosts that reach it on the local link or over routes.
#[derive(Debug)]
pub(super) struct ReachedAddress {
    pub(super) address: IpAddr,
    /// `true` if the host's own inventory report contains the address.
    is_own: bool,
    on_link: HostSet,
    pub(super) routed: HostSet,
}

impl ReachedAddress {
    fn add(&mut self, reporter: usize, reported: &PeerAddress) {
        if reported.on_link {
            self.on_link.insert(reporter);
        }
        if reported.routed {
            self.routed.insert(reporter);
        }
    }
}

/// The addresses of one host, and the hosts that reach them.
#[derive(Debug)]
pub(super) struct HostReach {
    host_count: usize,
    /// All addresses in the host's inventory report.
    /// The first addresses of the inventory report in ascending order, then addresses that only other hosts report.
    own: BTreeSet<IpAddr>,
    pub(super) addresses: Vec<ReachedAddress>,
}

impl HostReach {
    fn new(host: &HostView, host_count: usize) -> Self {
        let own = host.nics().iter().flat_map(|nic| &nic.addresses);
        let own: BTreeSet<_> = own.map(|address| address.address()).collect();
        let mut reach = Self { host_count, own: BTreeSet::new(), addresses: Vec::new() };
        for address in own.iter().take(MAX_ADDRESSES) {
            reach.push(*address, true);
        }
        Self { own, ..reach }
    }

    fn push(&mut self, address: IpAddr, is_own: bool) {
        let (on_link, routed) = (HostSet::empty(self.host_count), HostSet::empty(self.host_count));
        self.addresses.push(ReachedAddress { address, is_own, on_link, routed });
    }

    /// Adds the report of one host. Addresses beyond [`MAX_ADDRESSES`] are ignored.
    fn add(&mut self, reporter: usize, peer: &PeerSummary) {
        for (position, reported) in peer.addresses.iter().enumerate() {
            // Usually, the reported address is at the same position in `addresses`, because both lists are sorted and
            // contain the addresses of the inventory report.
            match self.addresses.get_mut(position) {
                Some(reached) if reached.address == reported.address => reached.add(reporter, reported),
                _ => self.add_elsewhere(reporter, reported),
            }
        }
    }

    fn add_elsewhere(&mut self, reporter: usize, reported: &PeerAddress) {
        let is_known = self.addresses.iter().any(|reached| reached.address == reported.address);
        if !is_known && self.addresses.len() < MAX_ADDRESSES {
            self.push(reported.address, false);
        }
        if let Some(reached) = self.addresses.iter_mut().find(|it| it.address == reported.address) {
            reached.add(reporter, reported);
        }
    }

    /// Returns the hosts that reach an address of this host in a network.
    ///
    /// For IPv6, a routed connection also counts, because agents sometimes miss replies of IPv6 neighbours on the link.
    pub(super) fn in_network(&self, network: Cidr) -> HostSet {
        let mut hosts = HostSet::empty(self.host_count);
        for reached in self.addresses.iter().filter(|it| network.contains(it.address)) {
            hosts.union(&reached.on_link);
            if reached.address.is_ipv6() {
                hosts.union(&reached.routed);
            }
        }
        hosts
    }

    /// Returns the hosts that reach all addresses of a family in the inventory report. Addresses that only other hosts
    /// report are ignored: the host had them earlier. Returns an empty set if the host has no address of the family.
    pub(super) fn in_family(&self, is_family: fn(&IpAddr) -> bool) -> HostSet {
        let own = || self.addresses.iter().filter(|it| it.is_own && is_family(&it.address));
        let mut sets = own().map(|reached| &reached.routed);
        let Some(first) = sets.next() else { return HostSet::empty(self.host_count) };
        if own().count() < self.own.iter().filter(|address| is_family(address)).count() {
            return HostSet::empty(self.host_count);
        }
        let mut hosts = first.clone();
        sets.for_each(|routed| hosts.intersect(routed));
        hosts
    }
}

/// Returns, for each host of a cluster, the hosts that reach it. Hosts and their peers must be sorted by id.
pub(super) fn reach_of_hosts(view: &ClusterView) -> Vec<HostReach> {
    // A cluster of 500 hosts needs half a million comparisons of ids, so the ids are compared as integers. Integers
    // have the same order and compare faster.
    let ids: Vec<_> = view.hosts.iter().map(|host| host.id.0.as_u128()).collect();
    let mut reach: Vec<_> = view.hosts.iter().map(|host| HostReach::new(host, ids.len())).collect();
    for (reporter, host) in view.hosts.iter().enumerate() {
        let mut targets = ids.iter().zip(&mut reach).enumerate().peekable();
        for peer in host.summary.peers.iter().flat_map(|peers| &peers.hosts) {
            let peer_id = peer.host.0.as_u128();
            while targets.next_if(|(_, (id, _))| **id < peer_id).is_some() {}
            while let Some((target, (_, reach))) = targets.next_if(|(_, (id, _))| **id == peer_id) {
                if target != reporter {
                    reach.add(reporter, peer);
                }
            }
        }
    }
    reach
}
