//! Networks in CIDR notation.

use std::fmt;
use std::net::IpAddr;

/// An IP address with a prefix length, such as `192.0.2.0/24`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cidr {
    pub(crate) address: IpAddr,
    pub(crate) prefix: u32,
}

impl Cidr {
    /// Returns `None` if the prefix is longer than the address.
    pub(crate) fn new(address: IpAddr, prefix: u32) -> Option<Self> {
        (prefix <= bit_count(address)).then_some(Self { address, prefix })
    }

    /// Parses an address and a prefix length with a slash between them. Returns `None` if the text is not valid.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (address, prefix) = text.split_once('/')?;
        Self::new(address.parse().ok()?, prefix.parse().ok()?)
    }

    /// Returns whether an address is in the network.
    pub(crate) fn contains(self, address: IpAddr) -> bool {
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

    /// Returns whether the network consists of this address only.
    pub(crate) fn is_single_address(self) -> bool {
        self.prefix == bit_count(self.address)
    }
}

impl fmt::Display for Cidr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.prefix)
    }
}

/// Returns the number of bits of an address.
pub(crate) fn bit_count(address: IpAddr) -> u32 {
    if address.is_ipv4() { 32 } else { 128 }
}
