//! How a body gets the bytes of the base image.

use std::convert::Infallible;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;

use crate::http::listener::PeerTransport;

/// How a body gets the bytes of the base image.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum BodyMode {
    /// As slices of the mapped base image, for connections whose writes go straight to the kernel. If code in this
    /// process looks at such bytes and the file was truncated, the process ends with a signal.
    #[default]
    Mapped,
    /// Read into buffers, for connections whose bytes are encrypted or otherwise read by this process.
    Read,
}

impl BodyMode {
    /// Returns the mode for a transport: encryption has to read the bytes.
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

    /// Returns the mode that the server set for the connection. Defaults to [`Self::Read`] for a request from another
    /// server, which may inspect the bytes.
    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        Ok(parts.extensions.get().copied().unwrap_or(Self::Read))
    }
}
