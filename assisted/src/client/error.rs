//! Errors of the client.

use std::time::Duration;

use serde_json::Value;

use super::body::BoxError;
use super::transport::{Failure, TransportError};

/// The kind of a [`ClientError`], for programs that react to it.
///
/// # Examples
///
/// ```no_run
/// # use assisted::client::{ApiClient, ClientError};
/// # use assisted::InfraEnvId;
/// use assisted::client::ClientErrorKind;
///
/// # async fn example(client: ApiClient, id: InfraEnvId) -> Result<(), ClientError> {
/// match client.delete_infra_env(id).await {
///     Err(error) if error.kind() == ClientErrorKind::NotFound => Ok(()),
///     result => result,
/// }
/// # }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ClientErrorKind {
    /// The client or the service refuses a value of the request: status 400 or 422, or an invalid URL, header or path.
    Invalid,
    /// The service requires a credential, or does not accept the request's credential: status 401.
    Unauthorized,
    /// The credential does not allow the operation: status 403.
    Forbidden,
    /// The resource does not exist: status 404 or 410.
    NotFound,
    /// The state of the resource does not allow the operation: status 409 or 412.
    Conflict,
    /// The request is too large for the service (status 413 or 414), or the response for the client.
    TooLarge,
    /// The client sends too many requests: status 429.
    RateLimited,
    /// The service does not have the operation: status 405 or 501.
    NotImplemented,
    /// The service, or a proxy in front of it, cannot do the operation now: status 423, 425, 502, 503 or 507.
    Unavailable,
    /// The service failed: status 500.
    Internal,
    /// The request took too long, in the client, or in the service or a proxy: status 408 or 504.
    Timeout,
    /// There is no connection to the service.
    Connect,
    /// The connection failed during the request.
    Connection,
    /// The TLS handshake failed.
    Tls,
    /// The data to upload could not be read.
    Upload,
    /// The HTTP client cannot be set up, or the request cannot be made.
    Setup,
    /// The response is not a response of an Assisted Service: a redirect, another status, or another body.
    UnexpectedResponse,
}

impl ClientErrorKind {
    fn from_status(status: u16) -> Self {
        match status {
            400 | 422 => Self::Invalid,
            401 => Self::Unauthorized,
            403 => Self::Forbidden,
            404 | 410 => Self::NotFound,
            405 | 501 => Self::NotImplemented,
            408 | 504 => Self::Timeout,
            409 | 412 => Self::Conflict,
            413 | 414 => Self::TooLarge,
            423 | 425 | 502 | 503 | 507 => Self::Unavailable,
            429 => Self::RateLimited,
            500 => Self::Internal,
            _ => Self::UnexpectedResponse,
        }
    }
}

/// An error of an operation.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClientError {
    /// The URL of the service is invalid.
    #[error("invalid URL of the service: {reason}")]
    Url {
        /// The reason.
        reason: String,
    },
    /// A value for a header contains characters that a header cannot have.
    #[error("invalid characters in the value for header {name}")]
    Header {
        /// Name of the header.
        name: &'static str,
    },
    /// An argument cannot be a segment of a path.
    #[error("cannot {operation}: {segment:?} cannot be part of a path")]
    PathSegment {
        /// The operation.
        operation: &'static str,
        /// The argument.
        segment: String,
    },
    /// The HTTP client cannot be set up, or a request cannot be made.
    #[error("cannot set up the HTTP client")]
    Setup(#[source] BoxError),
    /// The service responded with an error.
    #[error("cannot {operation}: status {status}: {reason}")]
    Response {
        /// The operation.
        operation: &'static str,
        /// Status of the response.
        status: u16,
        /// The service's reason, from either body of errors; else the text of the response.
        reason: String,
        /// The service's findings about static network configs.
        findings: Vec<Value>,
        /// Time until a retry can succeed, if the service says so.
        retry_after: Option<Duration>,
    },
    /// The response has a 2xx status that this operation of the service never returns. Another server, such as the
    /// login page of a network, may have sent it.
    #[error("cannot {operation}: unexpected status {status}, expected {expected}")]
    UnexpectedStatus {
        /// The operation.
        operation: &'static str,
        /// Status of the response.
        status: u16,
        /// Status of successful responses of this operation.
        expected: u16,
    },
    /// The request could not be sent: no connection to the service.
    #[error("cannot {operation}: no connection to the service")]
    Connect {
        /// The operation.
        operation: &'static str,
        /// The cause.
        source: BoxError,
    },
    /// The request could not be sent: the server's certificate is not trusted, or client and server found no common TLS
    /// settings.
    #[error("cannot {operation}: TLS handshake failed")]
    Tls {
        /// The operation.
        operation: &'static str,
        /// The cause.
        source: BoxError,
    },
    /// The data to upload could not be read. The service received only a part of it.
    #[error("cannot {operation}: cannot read the data to upload")]
    Upload {
        /// The operation.
        operation: &'static str,
        /// The cause.
        source: BoxError,
    },
    /// The time for the request and its response is over. The service may have done the operation.
    #[error("cannot {operation}: request timed out")]
    Timeout {
        /// The operation.
        operation: &'static str,
        /// The cause.
        source: BoxError,
    },
    /// The connection failed during the request or the response. The service may have done the operation.
    #[error("cannot {operation}: connection failed")]
    Connection {
        /// The operation.
        operation: &'static str,
        /// The cause.
        source: BoxError,
    },
    /// The response is too large.
    #[error("cannot {operation}: response too large (limit {limit} bytes)")]
    TooLarge {
        /// The operation.
        operation: &'static str,
        /// The limit.
        limit: usize,
    },
    /// A host did not fulfil a condition in time.
    #[error("cannot wait for host: the condition is not met after {} s", timeout.as_secs_f64())]
    WaitTimeout {
        /// The time.
        timeout: Duration,
        /// The last error, if the service does not respond.
        source: Option<Box<Self>>,
    },
    /// The response is not JSON of the expected type.
    #[error("cannot {operation}: invalid response")]
    Decode {
        /// The operation.
        operation: &'static str,
        /// The error of the JSON parser.
        source: serde_json::Error,
    },
}

impl ClientError {
    pub(super) fn transport(operation: &'static str, error: TransportError) -> Self {
        let source = error.source;
        match error.failure {
            Failure::Setup => Self::Setup(source),
            Failure::Connect => Self::Connect { operation, source },
            Failure::Tls => Self::Tls { operation, source },
            Failure::Timeout => Self::Timeout { operation, source },
            Failure::Connection => Self::Connection { operation, source },
        }
    }

    /// Returns the kind of the error.
    #[must_use]
    pub fn kind(&self) -> ClientErrorKind {
        match self {
            Self::Url { .. } | Self::Header { .. } | Self::PathSegment { .. } => ClientErrorKind::Invalid,
            Self::Setup(_) => ClientErrorKind::Setup,
            Self::Response { status, .. } => ClientErrorKind::from_status(*status),
            Self::UnexpectedStatus { .. } | Self::Decode { .. } => ClientErrorKind::UnexpectedResponse,
            Self::Connect { .. } => ClientErrorKind::Connect,
            Self::Tls { .. } => ClientErrorKind::Tls,
            Self::Upload { .. } => ClientErrorKind::Upload,
            Self::Timeout { .. } | Self::WaitTimeout { .. } => ClientErrorKind::Timeout,
            Self::Connection { .. } => ClientErrorKind::Connection,
            Self::TooLarge { .. } => ClientErrorKind::TooLarge,
        }
    }

    /// Returns the status of the service's response, if it responded with an error.
    #[must_use]
    pub fn status(&self) -> Option<u16> {
        match self {
            Self::Response { status, .. } => Some(*status),
            _ => None,
        }
    }

    /// Returns the service's reason, if it responded with an error.
    #[must_use]
    pub fn reason(&self) -> Option<&str> {
        match self {
            Self::Response { reason, .. } => Some(reason),
            _ => None,
        }
    }

    /// Returns the service's findings about static network configs. Only Kindling sends them.
    #[must_use]
    pub fn findings(&self) -> &[Value] {
        match self {
            Self::Response { findings, .. } => findings,
            _ => &[],
        }
    }

    /// Returns the time until a retry can succeed, if the service says so.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Response { retry_after, .. } => *retry_after,
            _ => None,
        }
    }

    /// Returns `true` if the same request can succeed later without a change: there was no connection or no response,
    /// or the status is 408, 423, 425, 429, 500, 502, 503, 504 or 507. A failed TLS handshake needs a change.
    ///
    /// Except after [`ClientError::Connect`], the service may have done the operation. A repeated POST then creates
    /// another object. An agent whose registration is refused with 401, 403, 404 or 409 must not retry.
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::Connect { .. } | Self::Timeout { .. } | Self::Connection { .. } => true,
            Self::Response { status, .. } => {
                matches!(*status, 408 | 423 | 425 | 429 | 500 | 502 | 503 | 504 | 507)
            }
            Self::Url { .. }
            | Self::Header { .. }
            | Self::PathSegment { .. }
            | Self::Setup(_)
            | Self::UnexpectedStatus { .. }
            | Self::Tls { .. }
            | Self::Upload { .. }
            | Self::TooLarge { .. }
            | Self::WaitTimeout { .. }
            | Self::Decode { .. } => false,
        }
    }
}
