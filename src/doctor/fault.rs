//! Describes why a request to the examined server failed.

use std::io;
use std::time::Duration;

use super::report::quote_for_report;

/// Why a request has no response.
#[derive(Debug, thiserror::Error)]
pub(super) enum RequestFault {
    /// The host name does not resolve, or the host accepts no connection.
    #[error("cannot connect to {to}: {source}")]
    Connect { to: String, source: io::Error },
    /// The TLS handshake failed.
    #[error("TLS handshake failed: {reason}")]
    Tls { reason: String },
    /// The certificate is not trusted, so the request was not sent.
    #[error("not tried: the certificate is not trusted, and requests may contain secrets")]
    Untrusted,
    /// No complete response arrived before the timeout.
    #[error("no complete response within {} s", after.as_secs_f32())]
    Slow { after: Duration },
    /// Earlier requests timed out too often, so the request was not sent.
    #[error("not tried: other requests took too long")]
    Abandoned,
    /// The server closed the connection without a response.
    #[error("the server closed the connection without a response")]
    Closed,
    /// The server closed the connection in the middle of the response head.
    #[error("the server closed the connection within the response head")]
    CutHead,
    /// The response head exceeds the limit.
    #[error("the response head has more than {most} bytes")]
    LongHead { most: usize },
    /// The response is not valid HTTP.
    #[error("malformed {what}: {text}")]
    Malformed { what: &'static str, text: String },
    /// Reading or writing failed.
    #[error("connection failed: {0}")]
    Io(#[from] io::Error),
}

impl RequestFault {
    pub(super) fn malformed(what: &'static str, text: &str) -> Self {
        Self::Malformed { what, text: quote_for_report(text) }
    }

    /// Returns `true` if the request was not sent, so the fault does not show a problem of the server.
    pub(super) fn is_unsent(&self) -> bool {
        matches!(self, Self::Untrusted | Self::Abandoned)
    }
}
