//! What a simulated machine finds in its network.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::atomic::Ordering;

use assisted::List;
use assisted::cluster::VipVerification;
use assisted::connectivity::{
    ConnectivityCheckHost, ConnectivityCheckNic, ConnectivityReport, LinkReport, MtuReport, PingReport,
    RemoteHost,
};
use assisted::reply::{
    ApiVipReport, DhcpReport, DomainReport, DomainResolution, ExitCode, FreeNetwork, NtpReport, NtpSource,
    TangReport, TangServer, TangSignature, VerifiedVip,
};
use assisted::request::{ApiVipRequest, DhcpRequest, DomainRequest, NtpRequest, TangRequest, VipToVerify};
use serde::Deserialize;

use super::fault::Fault;
use super::machine::SimulatedMachine;
use super::profile::NetworkLatency;
use crate::jitter::{fraction_of, mix_bits};
use crate::machine::StepFailure;

/// The most free addresses in a report, as upstream's agent has it.
const MAX_FREE_ADDRESSES: usize = 8000;
/// Offsets of the addresses that the DNS server of the site returns for the API and the ingress of a cluster.
const API_OFFSET: u32 = 5;
const INGRESS_OFFSET: u32 = 6;
/// Offsets of the addresses that the DHCP server of the site leases.
const LEASED_OFFSETS: [u32; 2] = [7, 8];
/// Address of all other names: one for documentation.
const OTHER_ADDRESS: Ipv4Addr = Ipv4Addr::new(198, 51, 100, 10);
/// Time that a router adds to the round trip to another segment, in milliseconds.
const ROUTER_LATENCY: f64 = 0.5;
/// Time that the fault `high-latency` adds to a ping, in milliseconds. It exceeds the limits of all roles.
const HIGH_LATENCY: f64 = 1500.0;
/// MTU for which agents send no large packets.
const USUAL_MTU: u32 = 1500;

fn invalid(message: String) -> StepFailure {
    StepFailure::new(ExitCode::INVALID, message)
}

impl SimulatedMachine {
    /// Checks the connectivity to other hosts.
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

    /// Returns the simulated host with an address, if this host reaches it.
    fn reachable_host(&self, address: &str) -> Option<u32> {
        self.reachable_host_at(address.parse().ok()?)
    }

    fn reachable_host_at(&self, address: Ipv4Addr) -> Option<u32> {
        self.address()?;
        let owner = self.site.host_at(address)?;
        let is_isolated =
            self.has_fault(Fault::Isolated) || self.site.slot(owner)?.has_fault(Fault::Isolated);
        (owner == self.number || !is_isolated).then_some(owner)
    }

    /// Returns the answers to ARP requests: those of a host in the same segment, and of another machine that has its
    /// address.
    fn links(
        &self,
        address: &str,
        owner: u32,
        nics: &List<ConnectivityCheckNic>,
    ) -> Vec<LinkReport<'static>> {
        let macs = self.answering_macs(address, owner).unwrap_or_default();
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

    /// Returns the MAC addresses that answer ARP requests for the address of a host. `None`: the host is in another
    /// segment.
    fn answering_macs(&self, address: &str, owner: u32) -> Option<Vec<String>> {
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

    /// Returns the round-trip time that a check measures. It is a whole number of microseconds, as `ping` prints it.
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
        // Odd and even numbers of microseconds alternate, so that no check measures the same time as the one before it.
        let parity = if check.is_multiple_of(2) { 1.0 } else { 2.0 };
        ((ms * 500.0).floor() * 2.0 + parity) / 1000.0
    }

    /// Sends packets as large as the interface permits.
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

    /// Finds unused addresses.
    pub(super) fn free_addresses(
        &self,
        networks: &List<String>,
    ) -> Result<List<FreeNetwork<'static>>, StepFailure> {
        networks.iter().map(|network| self.free_in(network)).collect::<Result<Vec<_>, _>>().map(List::from)
    }

    fn free_in(&self, network: &str) -> Result<FreeNetwork<'static>, StepFailure> {
        let addresses = addresses_of(network)
            .ok_or_else(|| invalid(format!("invalid network {network:?}: expected an IPv4 network")))?;
        let free = addresses.filter(|address| !self.is_used(*address)).take(MAX_FREE_ADDRESSES);
        Ok(FreeNetwork {
            network: network.to_owned().into(),
            free_addresses: free.map(|address| address.to_string().into()).collect(),
        })
    }

    /// Returns `true` if an address answers this host.
    fn is_used(&self, address: Ipv4Addr) -> bool {
        let has_owner = || self.reachable_host_at(address).is_some() || self.site.is_gateway(address);
        let is_used_vip = || self.has_fault(Fault::VipsInUse) && self.site.profile().network.is_vip(address);
        self.address().is_some() && (has_owner() || is_used_vip())
    }

    pub(super) fn verified_vips(&self, vips: &List<VipToVerify>) -> List<VerifiedVip<'static>> {
        // The virtual addresses of the cluster may be outside of the addresses that are meant for them.
        let all_are_used = self.address().is_some() && self.has_fault(Fault::VipsInUse);
        let verified = vips.iter().map(|VipToVerify { vip, vip_type }| {
            let is_used = all_are_used || vip.parse().is_ok_and(|address| self.is_used(address));
            let verification = if is_used { VipVerification::Failed } else { VipVerification::Succeeded };
            VerifiedVip {
                verification: Some(verification.into()),
                vip: vip.clone().into(),
                vip_type: Some((*vip_type).into()),
            }
        });
        verified.collect()
    }

    /// Leases two addresses of the host's segment.
    pub(super) fn dhcp_leases(&self, request: &DhcpRequest) -> Result<DhcpReport<'static>, StepFailure> {
        let interface = self.connected_interface().filter(|it| it.name == request.interface);
        let (Some(_), Some(segment)) = (interface, self.site.segment(self.number)) else {
            return Err(invalid(format!("interface {:?} has no link", request.interface)));
        };
        let [api, ingress] = LEASED_OFFSETS.map(|offset| segment.address(offset).to_string());
        Ok(DhcpReport {
            api_vip_address: api.into(),
            api_vip_lease: request.api_vip_lease.clone().into(),
            ingress_vip_address: ingress.into(),
            ingress_vip_lease: request.ingress_vip_lease.clone().into(),
        })
    }

    /// Synchronizes the clock with the known and the added time servers.
    pub(super) fn time_servers(&self, request: &NtpRequest) -> Result<NtpReport<'static>, StepFailure> {
        let added = request.ntp_source.split(',').map(str::trim).filter(|name| !name.is_empty());
        let added: Vec<&str> = added.collect();
        if let Some(name) = added.iter().find(|name| !is_server_name(name)) {
            return Err(invalid(format!("invalid time server {name:?}")));
        }
        let is_reachable = self.address().is_some() && !self.has_fault(Fault::NoNtp);
        let mut sources: Vec<NtpSource<'_>> = Vec::new();
        for name in added.into_iter().chain(self.site.profile().ntp_servers.iter().map(String::as_str)) {
            if sources.iter().any(|source| source.source_name == name) {
                continue;
            }
            let source_state = match (is_reachable, sources.is_empty()) {
                (false, _) => "unreachable",
                (true, true) => "synced",
                (true, false) => "combined",
            };
            sources
                .push(NtpSource { source_name: name.to_owned().into(), source_state: source_state.into() });
        }
        Ok(NtpReport { ntp_sources: sources.into() })
    }

    /// Resolves DNS names.
    pub(super) fn domains(&self, request: &DomainRequest) -> DomainReport<'static> {
        let names = request.domains.iter().map(|domain| domain.domain_name.as_str());
        DomainReport { resolutions: names.map(|name| self.resolution(name)).collect() }
    }

    fn resolution(&self, name: &str) -> DomainResolution<'static> {
        let network = self.site.profile().network;
        let address = match name {
            _ if self.address().is_none() || self.has_fault(Fault::NoDns) => None,
            _ if name.starts_with("validateNoWildcardDNS") => {
                self.has_fault(Fault::WildcardDns).then(|| network.address(INGRESS_OFFSET))
            }
            _ if name.starts_with("api.") || name.starts_with("api-int.") => {
                Some(network.address(API_OFFSET))
            }
            _ if name.contains(".apps.") => Some(network.address(INGRESS_OFFSET)),
            _ => Some(OTHER_ADDRESS),
        };
        DomainResolution {
            domain_name: name.to_owned().into(),
            ipv4_addresses: address.map(|address| address.to_string().into()).into_iter().collect(),
            ipv6_addresses: Vec::new().into(),
            cnames: List(address.map(|_| vec![format!("{}.", name.trim_end_matches('.')).into()])),
        }
    }

    /// Downloads the Ignition config of the cluster to join.
    pub(super) fn ignition_endpoint(&self, request: &ApiVipRequest) -> ApiVipReport<'static> {
        let url = request.url.clone().into();
        if self.address().is_none() {
            let download_error =
                "ignition file download failed: request failed: network is unreachable".into();
            return ApiVipReport { url, download_error, ..ApiVipReport::default() };
        }
        let ignition = r#"{"ignition":{"version":"3.2.0"}}"#.into();
        ApiVipReport { url, is_success: true, ignition, ..ApiVipReport::default() }
    }

    /// Asks Tang servers for their keys.
    pub(super) fn tang_servers(&self, request: &TangRequest) -> Result<TangReport<'static>, StepFailure> {
        let servers: Vec<DescribedTang> = serde_json::from_str(&request.tang_servers)
            .map_err(|error| invalid(format!("invalid list of Tang servers: {error}")))?;
        if self.address().is_none() {
            let failure = StepFailure::new(ExitCode::INVALID, "network is unreachable");
            return Err(failure.with_output(assisted::reply::ReplyPayload::Tang(TangReport::default())));
        }
        let answers = servers.into_iter().map(|DescribedTang { url, thumbprint }| TangServer {
            tang_url: format!("{}/adv/{thumbprint}", url.trim_end_matches('/')).into(),
            // {"keys":[]} in base64
            payload: "eyJrZXlzIjpbXX0".into(),
            signatures: vec![TangSignature { protected: "e30".into(), signature: thumbprint.into() }].into(),
        });
        Ok(TangReport { is_success: true, tang_server_response: answers.collect() })
    }
}

/// A Tang server in the arguments of a step.
#[derive(Deserialize)]
struct DescribedTang {
    url: String,
    thumbprint: String,
}

/// Returns a list that is null if it is empty, as upstream's agent writes it.
fn some_items<T>(items: Vec<T>) -> List<T> {
    List((!items.is_empty()).then_some(items))
}

/// Returns all addresses of a network in CIDR notation, including the first and the last one.
fn addresses_of(network: &str) -> Option<impl Iterator<Item = Ipv4Addr>> {
    let (address, prefix) = network.split_once('/')?;
    let (address, prefix): (Ipv4Addr, u32) = (address.parse().ok()?, prefix.parse().ok()?);
    let host_bits = 32_u32.checked_sub(prefix)?;
    let mask = u32::MAX.checked_shl(host_bits).unwrap_or(0);
    let first = address.to_bits();
    (first & !mask == 0).then(|| (first..=first | !mask).map(Ipv4Addr::from_bits))
}

/// Returns `true` for an IP address or a host name.
fn is_server_name(text: &str) -> bool {
    let is_label = |label: &str| {
        !label.is_empty()
            && !label.starts_with('-')
            && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
    };
    text.parse::<IpAddr>().is_ok() || text.split('.').all(is_label)
}
