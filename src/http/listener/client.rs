//! Identifies the client of a connection by its address.

use std::fmt;
use std::net::{IpAddr, Ipv6Addr};

/// The IP address of a client. `None` for a client on a Unix socket, which is on this machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct ClientAddress(pub Option<IpAddr>);

impl ClientAddress {
    /// Returns the key for counting the connections of a client. For IPv6, the key is the /64 prefix: a machine can use
    /// any address within its prefix, but it cannot choose the prefix.
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
