//! Virtual IP addresses: whether they are unused, from the reply to `verify-vips`, and their leases, from the reply to
//! `dhcp-lease-allocate`.

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

/// Result of the check of a virtual IP address.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct VerifiedVip {
    /// The address.
    pub address: IpAddr,
    /// Its use.
    pub vip_type: VipType,
    /// The result.
    pub verification: VipVerification,
}
heap_len!(VerifiedVip { address, vip_type, verification });

/// Leases of virtual IP addresses from a DHCP server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct VipLeases {
    /// Address of the API.
    pub api: IpAddr,
    /// Address of the ingress.
    pub ingress: IpAddr,
}
heap_len!(VipLeases { api, ingress });

/// Returns the results of the checks of virtual IP addresses in a reply.
pub(super) fn read_vips(
    log: &mut ExcessLog,
    report: &List<reply::VerifiedVip<'_>>,
) -> Result<Vec<VerifiedVip>, InvalidReply> {
    let step = log.step();
    let vips: Vec<Option<VerifiedVip>> =
        report.iter().map(|vip| verified_vip(step, vip)).collect::<Result<_, _>>()?;
    Ok(log.list(VIPS, vips.into_iter().flatten(), |_, vip| vip))
}

/// Returns the leases in a report.
pub(super) fn read_leases(step: StepType, report: &DhcpReport<'_>) -> Result<VipLeases, InvalidReply> {
    let api = parse_address(step, &report.api_vip_address)?;
    let ingress = parse_address(step, &report.ingress_vip_address)?;
    Ok(VipLeases { api, ingress })
}

fn parse_address(step: StepType, text: &str) -> Result<IpAddr, InvalidReply> {
    text.parse().map_err(|_| InvalidReply::address(step, text))
}

/// Returns `None` if the entry has a result or a use that this version does not know.
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
