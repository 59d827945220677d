//! The IPv4 networks of simulated hosts.

use std::fmt;
use std::net::Ipv4Addr;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// An IPv4 network of hosts, with a prefix length from 16 to 27.
///
/// The first 11 addresses are reserved: the network address, the gateway (`.1`), and nine addresses for virtual IPs.
///
/// # Examples
///
/// ```
/// use agent::simulated::Ipv4Segment;
///
/// let segment: Ipv4Segment = "192.168.111.0/24".parse()?;
/// assert_eq!(segment.to_string(), "192.168.111.0/24");
/// assert!("192.168.111.1/24".parse::<Ipv4Segment>().is_err());
/// # Ok::<(), agent::simulated::SegmentError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ipv4Segment {
    first: u32,
    prefix: u8,
}

impl Default for Ipv4Segment {
    fn default() -> Self {
        Self { first: Ipv4Addr::new(192, 168, 111, 0).to_bits(), prefix: 24 }
    }
}

/// The error for a text that is not a network with a supported prefix length.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected an IPv4 network with a prefix length from 16 to 27, such as 192.168.111.0/24, got {0:?}")]
pub struct SegmentError(String);

impl Ipv4Segment {
    /// Number of addresses before the first host.
    const RESERVED: u32 = 11;

    /// Returns the prefix length of the network.
    #[must_use]
    pub fn prefix(self) -> u8 {
        self.prefix
    }

    pub(super) fn len(self) -> u32 {
        1 << (32 - u32::from(self.prefix))
    }

    /// Returns the number of hosts in a segment: all addresses except the reserved ones and the broadcast address.
    pub(super) fn hosts(self) -> u32 {
        self.len() - Self::RESERVED - 1
    }

    /// Returns the segment that is `number` segments after this one.
    pub(super) fn segment(self, number: u32) -> Option<Self> {
        let first = number.checked_mul(self.len()).and_then(|offset| self.first.checked_add(offset))?;
        first.checked_add(self.len() - 1)?;
        Some(Self { first, ..self })
    }

    /// Returns the address at an offset in this segment. The offset must be less than the number of addresses.
    pub(super) fn address(self, offset: u32) -> Ipv4Addr {
        Ipv4Addr::from_bits(self.first.saturating_add(offset))
    }

    pub(super) fn host_address(self, number: u32) -> Ipv4Addr {
        self.address(Self::RESERVED + number)
    }

    pub(super) fn gateway(self) -> Ipv4Addr {
        self.address(1)
    }

    pub(super) fn contains(self, address: Ipv4Addr) -> bool {
        address.to_bits().checked_sub(self.first).is_some_and(|offset| offset < self.len())
    }

    /// Returns `true` for an address that this or a later segment reserves for virtual IPs.
    pub(super) fn is_vip(self, address: Ipv4Addr) -> bool {
        let offset = address.to_bits().checked_sub(self.first).map(|offset| offset % self.len());
        offset.is_some_and(|offset| (2..Self::RESERVED).contains(&offset))
    }

    /// Returns the number of the segment whose gateway has this address. This segment has number 0.
    pub(super) fn gateway_number(self, address: Ipv4Addr) -> Option<u32> {
        let offset = address.to_bits().checked_sub(self.first)?;
        (offset % self.len() == 1).then_some(offset / self.len())
    }

    /// Returns the number of the host with this address. Host numbers begin in this segment and continue in the
    /// following segments.
    pub(super) fn host_number(self, address: Ipv4Addr) -> Option<u32> {
        let offset = address.to_bits().checked_sub(self.first)?;
        let (segment, offset) = (offset / self.len(), offset % self.len());
        let host = offset.checked_sub(Self::RESERVED).filter(|host| *host < self.hosts())?;
        segment.checked_mul(self.hosts())?.checked_add(host)
    }
}

impl fmt::Display for Ipv4Segment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", Ipv4Addr::from_bits(self.first), self.prefix)
    }
}

impl FromStr for Ipv4Segment {
    type Err = SegmentError;

    fn from_str(text: &str) -> Result<Self, SegmentError> {
        let invalid = || SegmentError(text.to_owned());
        let (address, prefix) = text.split_once('/').ok_or_else(invalid)?;
        let first = address.parse::<Ipv4Addr>().map_err(|_| invalid())?.to_bits();
        let prefix = prefix.parse().ok().filter(|prefix| (16..=27).contains(prefix)).ok_or_else(invalid)?;
        let segment = Self { first, prefix };
        if first % segment.len() == 0 { Ok(segment) } else { Err(invalid()) }
    }
}

impl Serialize for Ipv4Segment {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Ipv4Segment {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn further_hosts_are_in_the_next_segments() {
        let network: Ipv4Segment = "10.0.0.0/27".parse().unwrap();
        assert_eq!((network.len(), network.hosts()), (32, 20));
        for number in [0, 1, 19, 20, 21, 399, 400] {
            let segment = network.segment(number / 20).unwrap();
            let address = segment.host_address(number % 20);
            assert!(segment.contains(address));
            assert_eq!(network.host_number(address), Some(number), "{address}");
        }
        assert_eq!(network.segment(1).unwrap().host_address(0), Ipv4Addr::new(10, 0, 0, 43));
        for reserved in ["10.0.0.1", "10.0.0.10", "10.0.0.31", "10.0.0.32", "9.255.255.255"] {
            assert_eq!(network.host_number(reserved.parse().unwrap()), None, "{reserved}");
        }
        assert_eq!(network.segment(u32::MAX), None);
    }

    #[test]
    fn virtual_addresses_are_before_the_hosts_of_a_segment() {
        let network: Ipv4Segment = "10.0.0.0/27".parse().unwrap();
        let is_vip = |address: &str| network.is_vip(address.parse().unwrap());
        for address in ["10.0.0.2", "10.0.0.10", "10.0.0.34"] {
            assert!(is_vip(address), "{address}");
        }
        for address in ["9.255.255.254", "10.0.0.0", "10.0.0.1", "10.0.0.11", "10.0.0.31"] {
            assert!(!is_vip(address), "{address}");
        }
    }

    #[test]
    fn rejects_invalid_segments() {
        for text in
            ["", "10.0.0.0", "10.0.0.0/8", "10.0.0.0/28", "10.0.0.16/27", "fd00::/24", "10.0.0.0/+24x"]
        {
            assert!(text.parse::<Ipv4Segment>().is_err(), "{text}");
        }
    }
}
