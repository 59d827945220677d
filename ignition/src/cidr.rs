//! IP networks in CIDR notation.

use std::fmt;
use std::net::IpAddr;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// An IP address with a prefix length, such as `192.0.2.0/24`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Cidr {
    pub(crate) address: IpAddr,
    pub(crate) prefix: u32,
}

impl Cidr {
    /// Creates a network. Returns `None` if the prefix is longer than the address.
    pub(crate) fn new(address: IpAddr, prefix: u32) -> Option<Self> {
        (prefix <= bit_count(address)).then_some(Self { address, prefix })
    }

    /// Parses an address, a slash and a prefix length. Returns `None` if the text has another form.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (address, prefix) = text.split_once('/')?;
        Self::new(address.parse().ok()?, prefix.parse().ok()?)
    }

    /// Returns the address before the slash, including its host bits.
    #[must_use]
    pub fn address(self) -> IpAddr {
        self.address
    }

    /// Returns the prefix length in bits.
    #[must_use]
    pub fn prefix(self) -> u32 {
        self.prefix
    }

    /// Returns `true` if an address is in the network.
    #[must_use]
    pub fn contains(self, address: IpAddr) -> bool {
        let other = Self::new(address, self.prefix);
        other.is_some_and(|other| other.without_host_bits() == self.without_host_bits())
    }

    /// Returns the network with the host bits set to zero.
    #[must_use]
    pub fn without_host_bits(self) -> Self {
        let address = match self.address {
            IpAddr::V4(address) => {
                let mask = u32::MAX.checked_shl(32 - self.prefix).unwrap_or(0);
                IpAddr::V4((address.to_bits() & mask).into())
            }
            IpAddr::V6(address) => {
                let mask = u128::MAX.checked_shl(128 - self.prefix).unwrap_or(0);
                IpAddr::V6((address.to_bits() & mask).into())
            }
        };
        Self { address, ..self }
    }

    /// Returns `true` if one of the networks contains the other.
    #[must_use]
    pub fn overlaps(self, other: Self) -> bool {
        let wide = if self.prefix <= other.prefix { (self, other) } else { (other, self) };
        wide.0.contains(wide.1.address)
    }

    /// Returns `true` if the network consists of this address only.
    pub(crate) fn is_single_address(self) -> bool {
        self.prefix == bit_count(self.address)
    }
}

impl fmt::Display for Cidr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.prefix)
    }
}

/// Serializes the network as text, such as `192.0.2.0/24`.
impl Serialize for Cidr {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Cidr {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text).ok_or_else(|| D::Error::custom(format_args!("{text:?} is not a network")))
    }
}

/// Returns the length of an address in bits.
pub(crate) fn bit_count(address: IpAddr) -> u32 {
    if address.is_ipv4() { 32 } else { 128 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn overlap(one: &str, other: &str) -> bool {
        let [one, other] = [one, other].map(|text| Cidr::parse(text).unwrap());
        assert_eq!(one.overlaps(other), other.overlaps(one));
        one.overlaps(other)
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
}
