//! Who is at the other end of a connection, and what may be sent there and how.

use std::fmt;
use std::net::SocketAddr;

use super::client::Client;

/// The other end of a connection. Each request has that of its own among its extensions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peer {
    /// Its address, if it is not of this machine.
    pub address: Option<SocketAddr>,
    /// How it is connected.
    pub transport: Transport,
    /// What it may ask for.
    pub reach: Reach,
}

/// How bytes get to a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// TCP as it is.
    Tcp,
    /// TLS.
    Tls,
    /// A unix socket.
    Unix,
}

/// What can be had over a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// Everything.
    All,
    /// What a machine needs before it can do TLS; the rest is for listeners that have it.
    FirstBoot,
}

impl Peer {
    /// Whose connection it is.
    #[must_use]
    pub fn client(&self) -> Client {
        Client(self.address.map(|address| address.ip()))
    }
}

impl fmt::Display for Peer {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.address {
            Some(address) => address.fmt(formatter),
            None => formatter.write_str("local"),
        }
    }
}
