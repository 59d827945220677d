//! Selects how a response body reads the base image.

use std::convert::Infallible;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;

use crate::http::listener::PeerTransport;

/// How a response body reads the base image.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum BodyMode {
    /// As slices of the mapped base image, for connections that pass the bytes directly to the kernel. If code of this
    /// process reads such bytes after the file was truncated, a signal ends the process.
    #[default]
    Mapped,
    /// Into buffers, for connections whose bytes this process reads, for example to encrypt them.
    Read,
}

impl BodyMode {
    /// Returns the mode for a transport. TLS has to read the bytes.
    #[must_use]
    pub fn for_transport(transport: PeerTransport) -> Self {
        match transport {
            PeerTransport::Tcp | PeerTransport::Unix => Self::Mapped,
            PeerTransport::Tls => Self::Read,
        }
    }
}

impl<S: Send + Sync> FromRequestParts<S> for BodyMode {
    type Rejection = Infallible;

    /// Returns the mode that the server has set for the connection. Defaults to [`Self::Read`] if another HTTP server
    /// passed the request, because it may read the bytes.
    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        Ok(parts.extensions.get().copied().unwrap_or(Self::Read))
    }
}
