//! The client of a connection, identified by its address.

use std::fmt;
use std::net::IpAddr;

/// The client of a connection. `None` for a client without an IP address, which is on this machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Client(pub Option<IpAddr>);

impl fmt::Display for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(address) => write!(f, "{}", address.to_canonical()),
            None => f.write_str("local"),
        }
    }
}
