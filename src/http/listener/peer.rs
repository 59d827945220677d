//! The other end of a connection: its address, its transport, and the requests that it may send.

use std::fmt;
use std::net::SocketAddr;

use super::client::ClientAddress;

/// The other end of a connection. The server adds it to the extensions of each request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peer {
    /// The address; `None` for a client on a Unix socket.
    pub address: Option<SocketAddr>,
    /// The transport of the connection.
    pub transport: PeerTransport,
    /// The requests that the connection may send.
    pub reach: AllowedRequests,
}

/// The transport of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PeerTransport {
    /// Plain TCP.
    Tcp,
    /// TLS.
    Tls,
    /// A unix socket.
    Unix,
}

/// The requests that a connection may send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AllowedRequests {
    /// All requests.
    All,
    /// Only those that a machine sends before it can use TLS. All others need a listener with TLS.
    FirstBoot,
}

impl Peer {
    /// Returns the client of the connection.
    #[must_use]
    pub fn client(&self) -> ClientAddress {
        ClientAddress(self.address.map(|address| address.ip()))
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
