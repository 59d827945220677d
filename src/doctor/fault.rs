//! Why there is no answer.

use std::io;
use std::time::Duration;

use super::report::quoted;

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub(super) enum Fault {
    /// The host has no address, or takes no connections.
    #[error("no connection to {to}: {source}")]
    Connect { to: String, source: io::Error },
    /// The other end speaks no TLS, or another one.
    #[error("no TLS: {reason}")]
    Tls { reason: String },
    /// The certificate is none that we send requests to.
    #[error("not tried: the certificate is not trusted, and requests may hold secrets")]
    Untrusted,
    /// It takes too long.
    #[error("nothing complete within {} s", after.as_secs_f32())]
    Slow { after: Duration },
    /// It took too long too often.
    #[error("not tried: other requests took too long")]
    Abandoned,
    /// The connection was closed in the place of an answer.
    #[error("the connection was closed without an answer")]
    Closed,
    /// The connection was closed in an answer.
    #[error("the connection was closed in the middle of the head")]
    CutHead,
    /// The head does not end.
    #[error("the head of the answer has more than {most} bytes")]
    LongHead { most: usize },
    /// It is no answer.
    #[error("{what} is malformed: {found}")]
    Malformed { what: &'static str, found: String },
    /// The connection broke.
    #[error("the connection broke: {0}")]
    Io(#[from] io::Error),
}

impl Fault {
    pub(super) fn malformed(what: &'static str, found: &str) -> Self {
        Self::Malformed { what, found: quoted(found) }
    }

    /// Whether it says nothing about the server, since nothing was asked.
    pub(super) fn is_untried(&self) -> bool {
        matches!(self, Self::Untrusted | Self::Abandoned)
    }
}
