//! Connectivity to the other hosts of the cluster, from the agent's reply to `connectivity-check`.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use assisted::HostId;
use assisted::connectivity::{ConnectivityReport, LinkReport, RemoteHost};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::compact::{compact, exact, is_default};
use super::excess::{ExcessLog, ExcessPart, ListLimit};
use super::limits::{
    MAX_ADDRESSES, MAX_COLLIDING_MACS, MAX_COLLISION_BYTES, MAX_COLLISIONS, MAX_MAC, MAX_NIC_NAME,
    MAX_PEER_BYTES, MAX_PEERS,
};
use super::memory::{heap_len, no_heap};

const PEERS: ListLimit = ListLimit::new(ExcessPart::Peers, MAX_PEERS).with_heap_bytes(MAX_PEER_BYTES);
const ADDRESSES: ListLimit = ListLimit::new(ExcessPart::Addresses, MAX_ADDRESSES);
const BROKEN_MTU: ListLimit = ListLimit::new(ExcessPart::BrokenMtu, MAX_ADDRESSES);
const COLLISIONS: ListLimit =
    ListLimit::new(ExcessPart::Collisions, MAX_COLLISIONS).with_heap_bytes(MAX_COLLISION_BYTES);
const MACS: ListLimit = ListLimit::new(ExcessPart::Macs, MAX_COLLIDING_MACS);

/// Upper limit for stored measurements. Larger values are replaced by the limit, so that JSON represents every stored
/// value exactly.
const MAX_MEASUREMENT: f64 = 1e9;

/// Precision of stored measurements, in steps per unit. Agents report times in microseconds at best.
const STEPS_PER_UNIT: f64 = 1e6;

/// Bit for [`PeerAddress::on_link`] in the JSON form.
const ON_LINK: u8 = 1;

/// Bit for [`PeerAddress::routed`] in the JSON form.
const ROUTED: u8 = 2;

compact! {
    /// Connectivity of a host to the other hosts of its cluster.
    Peers {
        /// The other hosts, sorted by id.
        #[serde(deserialize_with = "exact")]
        hosts: Vec<PeerSummary>,
        /// Addresses that several MAC addresses claim, sorted by address.
        #[serde(deserialize_with = "exact")]
        collisions: Vec<AddressCollision>,
    }
}

/// Connectivity to one other host.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PeerSummary {
    /// The id of the other host.
    pub host: HostId,
    /// The checked addresses of the host, in ascending order.
    #[serde(rename = "ips", default, deserialize_with = "exact", skip_serializing_if = "Vec::is_empty")]
    pub addresses: Vec<PeerAddress>,
    /// Maximum of the average round-trip times to the host's addresses, in milliseconds. `None` if not measured.
    #[serde(rename = "rtt", default, skip_serializing_if = "is_default")]
    pub rtt_ms: Option<f64>,
    /// Maximum packet loss on the way to the host's addresses, in percent. `None` if not measured.
    #[serde(rename = "loss", default, skip_serializing_if = "is_default")]
    pub loss_percent: Option<f64>,
    /// Addresses of the host that large packets do not reach.
    #[serde(default, deserialize_with = "exact", skip_serializing_if = "Vec::is_empty")]
    pub broken_mtu: Vec<BrokenMtu>,
    /// Whether the agent checked large packets.
    #[serde(rename = "mtu", default, skip_serializing_if = "is_default")]
    pub has_mtu: bool,
}
heap_len!(PeerSummary { host, addresses, rtt_ms, loss_percent, broken_mtu, has_mtu });

/// The result of checking one address of another host. In JSON, a list of the address and a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PeerAddress {
    /// An address of the other host.
    pub address: IpAddr,
    /// Whether the address replied in the same network segment, with a MAC address of the host.
    pub on_link: bool,
    /// Whether the address replied over IP.
    pub routed: bool,
}
no_heap!(PeerAddress);

/// An address that large packets do not reach from an interface.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BrokenMtu {
    /// Name of the interface that sent the packets.
    pub nic: Box<str>,
    /// The address that the packets did not reach.
    pub address: IpAddr,
}
heap_len!(BrokenMtu { nic, address });

/// An address that several MAC addresses claim.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AddressCollision {
    /// The address with several MAC addresses.
    pub address: IpAddr,
    /// The MAC addresses, in lower case and sorted.
    #[serde(deserialize_with = "exact")]
    pub macs: Vec<Box<str>>,
}
heap_len!(AddressCollision { address, macs });

impl Serialize for PeerAddress {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let on_link = if self.on_link { ON_LINK } else { 0 };
        let routed = if self.routed { ROUTED } else { 0 };
        (self.address, on_link | routed).serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for PeerAddress {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let (address, bits) = <(IpAddr, u8)>::deserialize(deserializer)?;
        if bits & !(ON_LINK | ROUTED) != 0 {
            return Err(D::Error::custom(format_args!("{bits} is not a kind of connectivity")));
        }
        Ok(Self { address, on_link: bits & ON_LINK != 0, routed: bits & ROUTED != 0 })
    }
}

/// Converts a connectivity report into a summary.
pub(super) fn read_peers(log: &mut ExcessLog, report: &ConnectivityReport<'_>) -> Peers {
    let mut reports: BTreeMap<HostId, Vec<&RemoteHost<'_>>> = BTreeMap::new();
    for remote in report.remote_hosts.iter() {
        if let Ok(host) = remote.host_id.parse() {
            reports.entry(host).or_default().push(remote);
        }
    }
    let hosts = log.list(PEERS, reports, |log, (host, reports)| peer(log, host, &reports));
    let collisions = log.list(COLLISIONS, collisions(report), |log, (address, macs)| AddressCollision {
        address,
        macs: log.list(MACS, macs, |log, mac| log.text(&mac, MAX_MAC)),
    });
    Peers { hosts, collisions }
}

fn peer(log: &mut ExcessLog, host: HostId, reports: &[&RemoteHost<'_>]) -> PeerSummary {
    let mut addresses: BTreeMap<IpAddr, PeerAddress> = BTreeMap::new();
    let (mut rtt_ms, mut loss_percent) = (None, None);
    for link in reports.iter().flat_map(|report| report.l2_connectivity.iter()) {
        if let Some(peer) = peer_address(&mut addresses, &link.remote_ip_address) {
            peer.on_link |= link.successful;
        }
    }
    for ping in reports.iter().flat_map(|report| report.l3_connectivity.iter()) {
        let Some(peer) = peer_address(&mut addresses, &ping.remote_ip_address) else { continue };
        peer.routed |= ping.successful;
        if ping.successful {
            rtt_ms = largest(rtt_ms, measured(ping.average_rtt_ms));
            loss_percent = largest(loss_percent, measured(ping.packet_loss_percentage));
        }
    }
    let mtu = || reports.iter().flat_map(|report| report.mtu_report.iter());
    let broken = mtu().filter(|mtu| !mtu.mtu_successful);
    let broken = broken.filter_map(|mtu| Some((&mtu.outgoing_nic, mtu.remote_ip_address.parse().ok()?)));
    PeerSummary {
        host,
        addresses: log.list(ADDRESSES, addresses.into_values(), |_, address| address),
        rtt_ms,
        loss_percent,
        broken_mtu: log.list(BROKEN_MTU, broken, |log, (nic, address)| BrokenMtu {
            nic: log.text(nic, MAX_NIC_NAME),
            address,
        }),
        has_mtu: mtu().next().is_some(),
    }
}

/// Returns the entry of an address, or `None` if the text is not an IP address.
fn peer_address<'a>(
    addresses: &'a mut BTreeMap<IpAddr, PeerAddress>,
    text: &str,
) -> Option<&'a mut PeerAddress> {
    let address = text.parse().ok()?;
    Some(addresses.entry(address).or_insert(PeerAddress { address, on_link: false, routed: false }))
}

/// Converts a measurement into its stored form. Returns `None` for values that mean "not measured": negative, infinite
/// or NaN.
fn measured(value: f64) -> Option<f64> {
    let is_valid = value.is_finite() && value >= 0.0;
    is_valid.then(|| (value.min(MAX_MEASUREMENT) * STEPS_PER_UNIT).round() / STEPS_PER_UNIT)
}

fn largest(one: Option<f64>, other: Option<f64>) -> Option<f64> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.max(other)),
        (one, other) => one.or(other),
    }
}

/// Returns each IP address for which several MAC addresses replied to the same interface, with these MAC addresses.
fn collisions(report: &ConnectivityReport<'_>) -> BTreeMap<IpAddr, BTreeSet<String>> {
    let mut macs_by_address: BTreeMap<(&str, IpAddr), BTreeSet<String>> = BTreeMap::new();
    for link in report.remote_hosts.iter().flat_map(|remote| remote.l2_connectivity.iter()) {
        let LinkReport { outgoing_nic, remote_ip_address, remote_mac, .. } = link;
        if let (Ok(address), false) = (remote_ip_address.parse(), remote_mac.is_empty()) {
            macs_by_address
                .entry((outgoing_nic, address))
                .or_default()
                .insert(remote_mac.to_ascii_lowercase());
        }
    }
    let mut collisions: BTreeMap<IpAddr, BTreeSet<String>> = BTreeMap::new();
    for ((_, address), macs) in macs_by_address.into_iter().filter(|(_, macs)| macs.len() > 1) {
        collisions.entry(address).or_default().extend(macs);
    }
    collisions
}
