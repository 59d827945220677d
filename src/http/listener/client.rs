//! Who is at the other end of a connection.

use std::fmt;
use std::net::IpAddr;

/// Who is at the other end of a connection, as far as its address tells.
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
