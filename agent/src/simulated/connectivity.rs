//! Connectivity checks between simulated machines.

use std::net::Ipv4Addr;
use std::sync::atomic::Ordering;

use assisted::List;
use assisted::connectivity::{
    ConnectivityCheckHost, ConnectivityCheckNic, ConnectivityReport, LinkReport, MtuReport, PingReport,
    RemoteHost,
};

use super::fault::Fault;
use super::machine::SimulatedMachine;
use super::profile::NetworkLatency;
use crate::jitter::{fraction_of, mix_bits};

/// Round-trip time added by the router to another segment, in milliseconds.
const ROUTER_LATENCY: f64 = 0.5;
/// Round-trip time added by the fault `high-latency`, in milliseconds. It exceeds the limits of all roles.
const HIGH_LATENCY: f64 = 1500.0;
/// MTU at which agents skip the test with large packets.
const USUAL_MTU: u32 = 1500;

impl SimulatedMachine {
    pub(super) fn connectivity(&self, hosts: &List<ConnectivityCheckHost>) -> ConnectivityReport<'static> {
        let check = self.checks.fetch_add(1, Ordering::Relaxed);
        let mut remote_hosts: Vec<_> = hosts.iter().map(|host| self.remote_host(host, check)).collect();
        remote_hosts.sort_by(|one, other| one.host_id.cmp(&other.host_id));
        ConnectivityReport { remote_hosts: remote_hosts.into() }
    }

    /// Checks the connectivity to one host. `check` is the number of earlier checks of this machine.
    fn remote_host(&self, host: &ConnectivityCheckHost, check: u64) -> RemoteHost<'static> {
        let (mut links, mut pings, mut mtus) = (Vec::new(), Vec::new(), Vec::new());
        for address in host.nics.iter().flat_map(|nic| nic.ip_addresses.iter()) {
            let owner = self.reachable_host(address);
            links.extend(owner.into_iter().flat_map(|owner| self.links(address, owner, &host.nics)));
            pings.push(self.ping(address, owner, check));
            mtus.extend(owner.and_then(|owner| self.large_packets(address, owner)));
        }
        links.sort_by(|one: &LinkReport<'_>, other| {
            let by_address = one.remote_ip_address.cmp(&other.remote_ip_address);
            by_address.then_with(|| one.remote_mac.cmp(&other.remote_mac))
        });
        pings.sort_by(|one: &PingReport<'_>, other| one.remote_ip_address.cmp(&other.remote_ip_address));
        mtus.sort_by(|one: &MtuReport<'_>, other| one.remote_ip_address.cmp(&other.remote_ip_address));
        RemoteHost {
            host_id: host.host_id.to_string().into(),
            l2_connectivity: some_items(links),
            l3_connectivity: some_items(pings),
            mtu_report: some_items(mtus),
        }
    }

    /// Parses `address`, and returns the reachable host with that address.
    fn reachable_host(&self, address: &str) -> Option<u32> {
        self.reachable_host_at(address.parse().ok()?)
    }

    /// Returns the simulated host with this address, if this machine can reach it.
    pub(super) fn reachable_host_at(&self, address: Ipv4Addr) -> Option<u32> {
        self.address()?;
        let owner = self.site.host_at(address)?;
        let is_isolated =
            self.has_fault(Fault::Isolated) || self.site.slot(owner)?.has_fault(Fault::Isolated);
        (owner == self.number || !is_isolated).then_some(owner)
    }

    /// Returns the replies to ARP requests for an address of `owner`. A second machine may use the same address and
    /// reply as well. Hosts in other segments send no replies.
    fn links(
        &self,
        address: &str,
        owner: u32,
        nics: &List<ConnectivityCheckNic>,
    ) -> Vec<LinkReport<'static>> {
        let macs = self.replying_macs(address, owner).unwrap_or_default();
        let link = |remote_mac: String| {
            Some(LinkReport {
                outgoing_nic: self.connected_interface()?.name.clone().into(),
                outgoing_ip_address: self.address()?.to_string().into(),
                remote_ip_address: address.to_owned().into(),
                successful: nics.iter().any(|nic| nic.mac.eq_ignore_ascii_case(&remote_mac)),
                remote_mac: remote_mac.into(),
            })
        };
        macs.into_iter().filter_map(link).collect()
    }

    /// Returns the MAC addresses that reply to ARP requests for the address of a host. `None`: the host is in another
    /// segment.
    fn replying_macs(&self, address: &str, owner: u32) -> Option<Vec<String>> {
        let segment = self.site.segment(self.number)?;
        if !segment.contains(address.parse().ok()?) {
            return None;
        }
        let slot = self.site.slot(owner)?;
        let mut macs = vec![self.site.mac_address(owner, slot.connected_interface()?)];
        if slot.has_fault(Fault::AddressCollision) {
            macs.push(self.site.intruder_mac_address(owner));
        }
        Some(macs)
    }

    fn ping(&self, address: &str, owner: Option<u32>, check: u64) -> PingReport<'static> {
        let remote_ip_address = address.to_owned().into();
        let Some(owner) = owner else { return PingReport { remote_ip_address, ..PingReport::default() } };
        PingReport {
            remote_ip_address,
            successful: true,
            average_rtt_ms: self.round_trip_ms(owner, check),
            packet_loss_percentage: if self.has_fault(Fault::PacketLoss) { 50.0 } else { 0.0 },
            ..PingReport::default()
        }
    }

    /// Returns the round-trip time measured by a check, as a whole number of microseconds like the output of `ping`.
    fn round_trip_ms(&self, owner: u32, check: u64) -> f64 {
        let NetworkLatency { base_ms, spread_ms } = self.site.profile().latency;
        let is_near = self.site.segment(self.number) == self.site.segment(owner);
        let mut base_ms = if is_near { base_ms } else { base_ms + ROUTER_LATENCY };
        if self.has_fault(Fault::HighLatency) {
            base_ms += HIGH_LATENCY;
        }
        if spread_ms == 0.0 {
            return (base_ms * 1000.0).round().max(1.0) / 1000.0;
        }
        let pair = u64::from(self.number) << 32 | u64::from(owner);
        let bits = mix_bits(mix_bits(mix_bits(self.site.seed()) ^ pair) ^ check);
        let ms = base_ms + spread_ms * (2.0 * fraction_of(bits) - 1.0);
        // Checks alternate between odd and even numbers of microseconds, so no check measures the same time as the
        // previous one.
        let parity = if check.is_multiple_of(2) { 1.0 } else { 2.0 };
        ((ms * 500.0).floor() * 2.0 + parity) / 1000.0
    }

    /// Sends packets of the interface's MTU. Returns `None` if the interface has the usual MTU.
    fn large_packets(&self, address: &str, owner: u32) -> Option<MtuReport<'static>> {
        let own = self.connected_interface()?;
        if own.mtu == USUAL_MTU {
            return None;
        }
        let remote = self.site.slot(owner)?;
        let remote = remote.group.interfaces.get(remote.connected_interface()?)?;
        Some(MtuReport {
            outgoing_nic: own.name.clone().into(),
            remote_ip_address: address.to_owned().into(),
            mtu_successful: remote.mtu >= own.mtu,
        })
    }
}

/// Wraps `items` in a list. An empty list becomes null, as in the reports of the upstream agent.
fn some_items<T>(items: Vec<T>) -> List<T> {
    List((!items.is_empty()).then_some(items))
}
