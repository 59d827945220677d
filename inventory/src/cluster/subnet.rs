//! IP networks in CIDR notation.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

pub use assisted::Subnet;

/// Returns the network of an address in CIDR notation, for example `192.0.2.0/24` for `192.0.2.7/24`. Returns `None`
/// for link-local addresses.
pub(crate) fn network_around(address: &str) -> Option<Subnet> {
    let range = AddressRange::around(address)?;
    let address = match range.address() {
        IpAddr::V6(address) if address.is_unicast_link_local() => return None,
        address => address,
    };
    Some(Subnet(format!("{address}/{}", range.prefix)))
}

/// Returns the number of address bits after the prefix. Returns `None` if the network is invalid.
pub(super) fn host_bits(subnet: &Subnet) -> Option<u32> {
    let range = AddressRange::parse(&subnet.0)?;
    let width: u32 = if range.is_v6 { 128 } else { 32 };
    width.checked_sub(range.prefix)
}

/// Returns `true` if the network is an IPv6 network.
pub(super) fn is_v6(subnet: &Subnet) -> bool {
    subnet.0.contains(':')
}

/// A parsed IP network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct AddressRange {
    is_v6: bool,
    /// The first address, aligned to the highest bit for both IP families.
    first: u128,
    pub(super) prefix: u32,
}

impl AddressRange {
    /// Parses a network in CIDR notation. All bits after the prefix must be zero.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (address, _) = text.split_once('/')?;
        let range = Self::around(text)?;
        (address.parse() == Ok(range.address())).then_some(range)
    }

    /// Parses an address in CIDR notation and returns its network.
    fn around(text: &str) -> Option<Self> {
        let (address, prefix) = text.split_once('/')?;
        let (address, prefix): (IpAddr, u32) = (address.parse().ok()?, prefix.parse().ok()?);
        let (first, width) = match address {
            IpAddr::V4(address) => (u128::from(address.to_bits()) << 96, 32),
            IpAddr::V6(address) => (address.to_bits(), 128),
        };
        let range = Self { is_v6: address.is_ipv6(), first, prefix };
        (prefix <= width).then_some(Self { first: first & range.mask(), ..range })
    }

    fn address(&self) -> IpAddr {
        if self.is_v6 {
            return IpAddr::V6(Ipv6Addr::from_bits(self.first));
        }
        let [a, b, c, d, ..] = self.first.to_be_bytes();
        IpAddr::V4(Ipv4Addr::new(a, b, c, d))
    }

    fn mask(&self) -> u128 {
        // The mask of an empty prefix is 0. Shifting by all bits would overflow.
        u128::MAX.checked_shl(128_u32.saturating_sub(self.prefix)).unwrap_or(0)
    }

    pub(super) fn overlaps(&self, other: &Self) -> bool {
        let mask = self.mask() & other.mask();
        self.is_v6 == other.is_v6 && self.first & mask == other.first & mask
    }

    pub(super) fn width(&self) -> i64 {
        if self.is_v6 { 128 } else { 32 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn overlap(one: &str, other: &str) -> bool {
        let [one, other] = [one, other].map(|text| AddressRange::parse(text).unwrap());
        assert_eq!(one.overlaps(&other), other.overlaps(&one));
        one.overlaps(&other)
    }

    #[test]
    fn networks_overlap_if_one_contains_the_other() {
        assert!(overlap("10.0.0.0/8", "10.128.0.0/14"));
        assert!(overlap("0.0.0.0/0", "192.168.1.0/24"));
        assert!(overlap("fd01::/48", "fd01::/64"));
        assert!(!overlap("10.128.0.0/14", "10.132.0.0/14"));
        assert!(!overlap("0.0.0.0/0", "::/0"));
        assert!(!overlap("fd01::/48", "fd02::/48"));
    }

    #[test]
    fn subnet_around_address_is_its_network() {
        for (address, network) in [
            ("192.0.2.77/24", Some("192.0.2.0/24")),
            ("10.200.3.4/9", Some("10.128.0.0/9")),
            ("1.2.3.4/0", Some("0.0.0.0/0")),
            ("2001:db8::5/64", Some("2001:db8::/64")),
            ("2001:db8::5/128", Some("2001:db8::5/128")),
            ("fe80::1/64", None),
            ("192.0.2.77", None),
            ("192.0.2.77/33", None),
            ("", None),
        ] {
            assert_eq!(network_around(address), network.map(|text| Subnet(text.to_owned())), "{address}");
        }
    }

    #[test]
    fn rejects_networks_with_bits_after_the_prefix() {
        for good in ["10.0.0.0/8", "0.0.0.0/0", "::/0", "1.2.3.4/32", "fd02::1/128"] {
            assert!(AddressRange::parse(good).is_some(), "{good}");
        }
        for bad in ["10.0.0.1/8", "1.2.3.4/33", "fd02::1/127", "300.0.0.0/8", "10.0.0.0", "/8", "::/129"] {
            assert!(AddressRange::parse(bad).is_none(), "{bad}");
        }
    }
}
