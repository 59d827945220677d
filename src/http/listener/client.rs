//! The client of a connection, identified by its address.

use std::fmt;
use std::net::{IpAddr, Ipv6Addr};

/// The client of a connection. `None` for a client without an IP address, which is on this machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct ClientAddress(pub Option<IpAddr>);

impl ClientAddress {
    /// Returns the address by which clients are counted. A machine can use any number of IPv6 addresses within its /64
    /// prefix, which it does not choose itself, so the prefix is the key.
    pub(in crate::http) fn quota_key(self) -> Option<IpAddr> {
        Some(match self.0?.to_canonical() {
            IpAddr::V6(address) => {
                let [a, b, c, d, ..] = address.segments();
                Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0).into()
            }
            address @ IpAddr::V4(_) => address,
        })
    }
}

impl fmt::Display for ClientAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(address) => write!(f, "{}", address.to_canonical()),
            None => f.write_str("local"),
        }
    }
}
