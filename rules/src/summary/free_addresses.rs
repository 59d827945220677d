//! Unused addresses in the networks of a host, from the agent's reply to `free-network-addresses`.

use std::net::IpAddr;

use assisted::List;
use assisted::reply::FreeNetwork;
use ignition::Cidr;
use serde::{Deserialize, Serialize};

use super::bits;
use super::error::InvalidReply;
use super::excess::{ExcessLog, ExcessPart};
use super::limits::{MAX_FREE_NETWORKS, MAX_HOST_BITS};
use super::memory::heap_len;

/// The unused addresses of one network. The network has at most 1024 addresses, like a /22.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FreeAddresses {
    /// The network, as a network address.
    pub network: Cidr,
    /// One bit for each address of the network, in order, starting with the highest bit of each byte. A set bit marks
    /// an unused address.
    #[serde(with = "bits")]
    pub bits: Vec<u8>,
}
heap_len!(FreeAddresses { network, bits });

impl FreeAddresses {
    /// Creates the set of unused addresses. Addresses outside the network are ignored.
    ///
    /// Returns `None` if the network has more addresses than a /22.
    ///
    /// # Examples
    ///
    /// ```
    /// use ignition::Cidr;
    /// use rules::summary::FreeAddresses;
    ///
    /// let network = Cidr::parse("192.0.2.0/24").ok_or("not a network")?;
    /// let free = FreeAddresses::from_addresses(network, ["192.0.2.7".parse()?]).ok_or("too large")?;
    /// assert!(free.contains("192.0.2.7".parse()?));
    /// assert!(!free.contains("192.0.2.8".parse()?));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn from_addresses(network: Cidr, addresses: impl IntoIterator<Item = IpAddr>) -> Option<Self> {
        let host_bits = host_bits(network);
        if host_bits > MAX_HOST_BITS {
            return None;
        }
        let mut free =
            Self { network: network.without_host_bits(), bits: vec![0; (1_usize << host_bits).div_ceil(8)] };
        free.extend(addresses);
        Some(free)
    }

    /// Returns `true` if the address is in the network and is unused.
    #[must_use]
    pub fn contains(&self, address: IpAddr) -> bool {
        let position = position(self.network, address);
        position.is_some_and(|(byte, bit)| self.bits.get(byte).is_some_and(|bits| bits & bit != 0))
    }

    fn extend(&mut self, addresses: impl IntoIterator<Item = IpAddr>) {
        for (byte, bit) in addresses.into_iter().filter_map(|address| position(self.network, address)) {
            if let Some(bits) = self.bits.get_mut(byte) {
                *bits |= bit;
            }
        }
    }
}

/// Returns the number of host bits of a network address.
fn host_bits(network: Cidr) -> u32 {
    let width = if network.address().is_ipv4() { u32::BITS } else { u128::BITS };
    width.saturating_sub(network.prefix())
}

/// Returns the byte index and the bit mask of an address, or `None` if the address is not in the network.
fn position(network: Cidr, address: IpAddr) -> Option<(usize, u8)> {
    let to_bits = |address| match address {
        IpAddr::V4(address) => u128::from(address.to_bits()),
        IpAddr::V6(address) => address.to_bits(),
    };
    if !network.contains(address) {
        return None;
    }
    let first = to_bits(network.without_host_bits().address());
    let offset = usize::try_from(to_bits(address).checked_sub(first)?).ok()?;
    Some((offset / 8, 0x80 >> (offset % 8)))
}

/// Converts the reply of the agent into a summary.
pub(super) fn read_free_addresses(
    log: &mut ExcessLog,
    report: &List<FreeNetwork<'_>>,
) -> Result<Vec<FreeAddresses>, InvalidReply> {
    let step = log.step();
    if report.is_empty() {
        return Err(InvalidReply::Empty { step });
    }
    let mut networks: Vec<FreeAddresses> = Vec::new();
    let mut count = 0_usize;
    for item in report.iter() {
        let network = Cidr::parse(&item.network).ok_or_else(|| InvalidReply::network(step, &item.network))?;
        let network = network.without_host_bits();
        let addresses = item.free_addresses.iter();
        let addresses: Vec<IpAddr> = addresses
            .map(|text| text.parse().map_err(|_| InvalidReply::address(step, text)))
            .collect::<Result<_, _>>()?;
        if let Some(free) = networks.iter_mut().find(|free| free.network == network) {
            free.extend(addresses);
            continue;
        }
        count = count.saturating_add(1);
        if networks.len() < MAX_FREE_NETWORKS {
            networks.extend(FreeAddresses::from_addresses(network, addresses));
        }
    }
    networks.shrink_to_fit();
    log.record(ExcessPart::Networks, count, networks.len());
    Ok(networks)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn free(network: &str, addresses: &[&str]) -> Option<FreeAddresses> {
        let addresses = addresses.iter().map(|address| address.parse().unwrap());
        FreeAddresses::from_addresses(Cidr::parse(network).unwrap(), addresses)
    }

    #[test]
    fn networks_have_one_bit_for_each_address() {
        for (network, addresses, bits) in [
            ("192.0.2.9/29", &["192.0.2.8", "192.0.2.15", "192.0.2.16", "2001:db8::9"][..], &[0x81][..]),
            ("192.0.2.8/31", &["192.0.2.9"], &[0x40]),
            ("192.0.2.8/32", &["192.0.2.8"], &[0x80]),
            ("192.0.2.16/28", &["192.0.2.24"], &[0, 0x80]),
            ("2001:db8::/125", &["2001:db8::7", "::7"], &[0x01]),
        ] {
            let free = free(network, addresses).unwrap();
            assert_eq!(free.bits, bits, "{network}");
            assert!(free.contains(addresses[0].parse().unwrap()), "{network}");
            assert_eq!(free.network, free.network.without_host_bits());
        }
    }

    #[test]
    fn rejects_networks_with_more_than_1024_addresses() {
        assert_eq!(free("10.0.0.0/22", &["10.0.3.255"]).unwrap().bits.len(), 128);
        assert!(free("10.0.0.0/22", &["10.0.3.255"]).unwrap().contains("10.0.3.255".parse().unwrap()));
        for network in ["10.0.0.0/21", "0.0.0.0/0", "2001:db8::/64", "::/0"] {
            assert_eq!(free(network, &[]), None, "{network}");
        }
    }
}
