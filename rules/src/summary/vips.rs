//! Virtual IP addresses (VIPs): their verification, from the agent's reply to `verify-vips`, and their leases, from the
//! reply to `dhcp-lease-allocate`.

use std::net::IpAddr;

use assisted::cluster::VipVerification;
use assisted::reply::{self, DhcpReport};
use assisted::step::{StepType, VipType};
use assisted::{Extensible, List};
use serde::{Deserialize, Serialize};

use super::error::InvalidReply;
use super::excess::{ExcessLog, ExcessPart, ListLimit};
use super::limits::MAX_VIPS;
use super::memory::heap_len;

const VIPS: ListLimit = ListLimit::new(ExcessPart::Vips, MAX_VIPS);

/// The verification of a virtual IP address by one host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct VerifiedVip {
    /// The verified virtual IP address.
    pub address: IpAddr,
    /// Whether the address is for the API or for ingress.
    pub vip_type: VipType,
    /// Whether the address is free.
    pub verification: VipVerification,
}
heap_len!(VerifiedVip { address, vip_type, verification });

/// Leases of the virtual IP addresses of a cluster from a DHCP server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct VipLeases {
    /// Leased address for the API.
    pub api: IpAddr,
    /// Leased address for ingress.
    pub ingress: IpAddr,
}
heap_len!(VipLeases { api, ingress });

/// Converts the reply of the agent into a summary.
pub(super) fn read_vips(
    log: &mut ExcessLog,
    report: &List<reply::VerifiedVip<'_>>,
) -> Result<Vec<VerifiedVip>, InvalidReply> {
    let step = log.step();
    let vips: Vec<Option<VerifiedVip>> =
        report.iter().map(|vip| verified_vip(step, vip)).collect::<Result<_, _>>()?;
    Ok(log.list(VIPS, vips.into_iter().flatten(), |_, vip| vip))
}

/// Converts the report of the agent into a summary.
pub(super) fn read_leases(step: StepType, report: &DhcpReport<'_>) -> Result<VipLeases, InvalidReply> {
    let api = parse_address(step, &report.api_vip_address)?;
    let ingress = parse_address(step, &report.ingress_vip_address)?;
    Ok(VipLeases { api, ingress })
}

fn parse_address(step: StepType, text: &str) -> Result<IpAddr, InvalidReply> {
    text.parse().map_err(|_| InvalidReply::address(step, text))
}

/// Converts an entry of the report. Returns `None` if the entry has a result or a VIP type unknown to this version.
fn verified_vip(step: StepType, vip: &reply::VerifiedVip<'_>) -> Result<Option<VerifiedVip>, InvalidReply> {
    let address = parse_address(step, &vip.vip)?;
    let verification = vip.verification.as_ref().map_or(Some(VipVerification::Unverified), Extensible::known);
    let vip_type = vip.vip_type.as_ref().and_then(Extensible::known);
    Ok(vip_type.zip(verification).map(|(vip_type, verification)| VerifiedVip {
        address,
        vip_type,
        verification,
    }))
}
