//! The network services and free addresses that a simulated machine finds.

use std::net::{IpAddr, Ipv4Addr};

use assisted::List;
use assisted::cluster::VipVerification;
use assisted::reply::{
    ApiVipReport, DhcpReport, DomainReport, DomainResolution, ExitCode, FreeNetwork, NtpReport, NtpSource,
    TangReport, TangServer, TangSignature, VerifiedVip,
};
use assisted::request::{ApiVipRequest, DhcpRequest, DomainRequest, NtpRequest, TangRequest, VipToVerify};
use serde::Deserialize;

use super::fault::Fault;
use super::machine::SimulatedMachine;
use crate::machine::StepFailure;

/// Maximum number of free addresses in a report, as in the upstream agent.
const MAX_FREE_ADDRESSES: usize = 8000;
/// Offsets of the addresses to which the site's DNS server resolves the names of the API and the ingress.
const API_OFFSET: u32 = 5;
const INGRESS_OFFSET: u32 = 6;
/// Offsets of the addresses that the site's DHCP server leases.
const LEASED_OFFSETS: [u32; 2] = [7, 8];
/// Address to which the site's DNS server resolves all other names, from a range reserved for documentation.
const OTHER_ADDRESS: Ipv4Addr = Ipv4Addr::new(198, 51, 100, 10);

fn invalid(message: String) -> StepFailure {
    StepFailure::new(ExitCode::INVALID, message)
}

impl SimulatedMachine {
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

    /// Returns `true` if this machine finds that an address is in use.
    fn is_used(&self, address: Ipv4Addr) -> bool {
        let has_owner = || self.reachable_host_at(address).is_some() || self.site.is_gateway(address);
        let is_used_vip = || self.has_fault(Fault::VipsInUse) && self.site.profile().network.is_vip(address);
        self.address().is_some() && (has_owner() || is_used_vip())
    }

    pub(super) fn verified_vips(&self, vips: &List<VipToVerify>) -> List<VerifiedVip<'static>> {
        // The cluster's virtual addresses may be outside the range that `is_used` checks, so the fault marks all of
        // them as used.
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

    /// Leases two addresses in the host's segment.
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

    /// Synchronizes the clock with the time servers of the request and of the profile.
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

    /// Downloads the Ignition config of the cluster that the host will join.
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

    /// Requests the keys of Tang servers.
    pub(super) fn tang_servers(&self, request: &TangRequest) -> Result<TangReport<'static>, StepFailure> {
        let servers: Vec<DescribedTang> = serde_json::from_str(&request.tang_servers)
            .map_err(|error| invalid(format!("invalid list of Tang servers: {error}")))?;
        if self.address().is_none() {
            let failure = StepFailure::new(ExitCode::INVALID, "network is unreachable");
            return Err(failure.with_output(assisted::reply::ReplyPayload::Tang(TangReport::default())));
        }
        let results = servers.into_iter().map(|DescribedTang { url, thumbprint }| TangServer {
            tang_url: format!("{}/adv/{thumbprint}", url.trim_end_matches('/')).into(),
            // `{"keys":[]}` in base64.
            payload: "eyJrZXlzIjpbXX0".into(),
            signatures: vec![TangSignature { protected: "e30".into(), signature: thumbprint.into() }].into(),
        });
        Ok(TangReport { is_success: true, tang_server_response: results.collect() })
    }
}

/// A Tang server in the arguments of a step.
#[derive(Deserialize)]
struct DescribedTang {
    url: String,
    thumbprint: String,
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
