//! The reasons why a virtual IP address is invalid.

use std::net::IpAddr;

use ignition::Cidr;
use serde::{Deserialize, Serialize};

/// Number of addresses in a network that hosts cannot use: the network address, the broadcast address and two virtual
/// IP addresses.
const RESERVED_ADDRESSES: u128 = 4;

/// The reason why a virtual IP address is invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum VipProblem {
    /// The cluster has no machine network at the position of the address.
    NoNetwork {
        /// The virtual IP address.
        vip: IpAddr,
    },
    /// The address is not in its machine network.
    Outside {
        /// The virtual IP address.
        vip: IpAddr,
        /// Machine network at the position of the address.
        network: Cidr,
    },
    /// The address is the broadcast address of its machine network.
    Broadcast {
        /// The virtual IP address.
        vip: IpAddr,
        /// Machine network at the position of the address.
        network: Cidr,
    },
    /// Another machine uses the address.
    InUse {
        /// The virtual IP address.
        vip: IpAddr,
        /// Machine network at the position of the address.
        network: Cidr,
        /// Whether the network has too few addresses for all hosts.
        is_network_too_small: bool,
    },
    /// No host has verified the address yet.
    Unverified {
        /// The virtual IP address.
        vip: IpAddr,
    },
}

impl VipProblem {
    /// Returns the problem of an address that is outside the network or is its broadcast address. Returns `None` for
    /// other addresses.
    pub(super) fn in_network(vip: IpAddr, network: Cidr) -> Option<Self> {
        if !network.contains(vip) {
            return Some(Self::Outside { vip, network });
        }
        is_broadcast(vip, network).then_some(Self::Broadcast { vip, network })
    }

    /// Returns the problem of an address used by another machine.
    pub(super) fn in_use(vip: IpAddr, network: Cidr, host_count: usize) -> Self {
        Self::InUse { vip, network, is_network_too_small: is_too_small(network, host_count) }
    }

    /// Returns the message for users. `label` names the address, such as `api vips`.
    pub(super) fn text(&self, label: &str) -> String {
        match self {
            Self::NoNetwork { vip } => {
                format!("{label} <{vip}> cannot be set if Machine Network CIDR is empty")
            }
            Self::Outside { vip, network } => {
                format!("{label} <{vip}> does not belong to machine-network-cidr <{network}>")
            }
            Self::Broadcast { vip, network } => {
                format!("{label} <{vip}> is the broadcast address of machine-network-cidr <{network}>")
            }
            Self::InUse { vip, network, is_network_too_small } => {
                let advice = if *is_network_too_small {
                    ". The machine network range is too small for the cluster. Please redefine the network."
                } else {
                    ""
                };
                format!("{label} <{vip}> is already in use in cidr {network}{advice}")
            }
            Self::Unverified { vip } => format!("{label} <{vip}> are not verified yet."),
        }
    }

    #[allow(clippy::unwrap_used, reason = "the texts are constants, and tests make all samples")]
    pub(super) fn samples() -> Vec<Self> {
        let ip = |text: &str| text.parse().unwrap();
        let (vip, network) = (ip("192.0.2.5"), Cidr::parse("192.0.2.0/24").unwrap());
        vec![
            Self::NoNetwork { vip },
            Self::Outside { vip: ip("198.51.100.5"), network },
            Self::Broadcast { vip: ip("192.0.2.255"), network },
            Self::InUse { vip, network, is_network_too_small: false },
            Self::InUse { vip, network: Cidr::parse("192.0.2.0/29").unwrap(), is_network_too_small: true },
            Self::Unverified { vip },
        ]
    }
}

/// Returns `true` for the broadcast address of an IPv4 network. IPv6 networks have none.
fn is_broadcast(vip: IpAddr, network: Cidr) -> bool {
    let IpAddr::V4(vip) = vip else { return false };
    let host_mask = u32::MAX.checked_shr(network.prefix()).unwrap_or(0);
    vip.to_bits() & host_mask == host_mask
}

/// Returns `true` if the network has too few addresses for the hosts and the virtual IP addresses.
fn is_too_small(network: Cidr, host_count: usize) -> bool {
    let width = if network.address().is_ipv4() { u32::BITS } else { u128::BITS };
    // If the number of addresses does not fit into `u128`, the largest value is used.
    let host_bits = width.saturating_sub(network.prefix());
    let addresses = 1_u128.checked_shl(host_bits).unwrap_or(u128::MAX);
    match u128::try_from(host_count) {
        Ok(1) => addresses < 2,
        Ok(hosts) => addresses < hosts.saturating_add(RESERVED_ADDRESSES),
        Err(_) => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cidr(text: &str) -> Cidr {
        Cidr::parse(text).unwrap()
    }

    #[test]
    fn only_ipv4_networks_have_a_broadcast_address() {
        let is_broadcast = |vip: &str, network| is_broadcast(vip.parse().unwrap(), cidr(network));
        assert!(is_broadcast("192.0.2.255", "192.0.2.0/24"));
        assert!(is_broadcast("192.0.2.7", "192.0.2.0/29"));
        assert!(!is_broadcast("192.0.2.255", "192.0.0.0/16"));
        assert!(!is_broadcast("192.0.2.254", "192.0.2.0/24"));
        assert!(!is_broadcast("2001:db8::ffff", "2001:db8::/112"));
    }

    #[test]
    fn network_without_an_address_for_each_host_is_too_small() {
        assert!(!is_too_small(cidr("192.0.2.0/29"), 4));
        assert!(is_too_small(cidr("192.0.2.0/29"), 5));
        assert!(!is_too_small(cidr("192.0.2.0/31"), 1));
        assert!(is_too_small(cidr("192.0.2.0/32"), 1));
        assert!(!is_too_small(cidr("2001:db8::/64"), 5));
        assert!(!is_too_small(cidr("::/0"), 5));
    }
}
