//! The other side of a connection: its address, its transport, and the requests that it may send.

use std::fmt;
use std::net::SocketAddr;

use super::client::ClientAddress;

/// The other side of a connection. The server adds this value to the extensions of each request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peer {
    /// The address. `None` for a client on a Unix socket.
    pub address: Option<SocketAddr>,
    /// How the connection transports bytes.
    pub transport: PeerTransport,
    /// Which requests the server accepts on the connection.
    pub reach: AllowedRequests,
}

/// The transport of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PeerTransport {
    /// Plain TCP.
    Tcp,
    /// TLS over TCP or over a Unix socket.
    Tls,
    /// A Unix socket without TLS.
    Unix,
}

/// The requests that a server accepts on a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AllowedRequests {
    /// All requests.
    All,
    /// Only requests of a machine that cannot use TLS yet, such as downloads of boot files. Other requests need a
    /// listener with TLS.
    FirstBoot,
}

impl Peer {
    /// Returns the client, for quotas and logs.
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
