//! Who is at the other end of a connection, and what may be sent there and how.

use std::convert::Infallible;
use std::fmt;
use std::net::SocketAddr;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;

use crate::http::{BodyMode, Client};

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

impl Transport {
    /// How base bytes are sent: what is encrypted has to be looked at.
    #[must_use]
    pub fn body_mode(self) -> BodyMode {
        match self {
            Self::Tcp | Self::Unix => BodyMode::Mapped,
            Self::Tls => BodyMode::Read,
        }
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

impl<S: Send + Sync> FromRequestParts<S> for BodyMode {
    type Rejection = Infallible;

    /// As the server says. Who knows what else is behind a request that came some other way.
    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        Ok(parts.extensions.get().copied().unwrap_or(Self::Read))
    }
}
