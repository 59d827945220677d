//! The errors of the client, and their classification by kind.

use std::time::Duration;

use serde_json::Value;

use super::body::BoxError;
use super::transport::{Failure, TransportError};

/// The kind of a [`ClientError`]. Programs can match on it to choose their reaction.
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
    /// The service requires a credential, or rejects the credential of the request: status 401.
    Unauthorized,
    /// The credential does not allow the operation: status 403.
    Forbidden,
    /// The resource does not exist: status 404 or 410.
    NotFound,
    /// The state of the resource does not allow the operation: status 409 or 412.
    Conflict,
    /// The request is too large for the service (status 413 or 414), or the response is too large for the client.
    TooLarge,
    /// The client sends too many requests: status 429.
    RateLimited,
    /// The service does not implement the operation: status 405 or 501.
    NotImplemented,
    /// The service, or a proxy in front of it, temporarily cannot perform the operation: status 423, 425, 502, 503 or
    /// 507.
    Unavailable,
    /// The service failed: status 500.
    Internal,
    /// The request took too long, in the client, or in the service or a proxy: status 408 or 504.
    Timeout,
    /// The client cannot connect to the service.
    Connect,
    /// The connection failed during the request.
    Connection,
    /// The TLS handshake failed.
    Tls,
    /// The data to upload could not be read.
    Upload,
    /// The HTTP client or the request cannot be created.
    Setup,
    /// The response does not come from an Assisted Service: a redirect, another status, or an invalid body.
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

/// An error of the client or of the service.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClientError {
    /// The URL of the service is invalid.
    #[error("invalid URL of the service: {reason}")]
    Url {
        /// Description of the invalid part. Does not contain the URL, which may include a password.
        reason: String,
    },
    /// A value for a header contains characters that a header cannot have.
    #[error("invalid characters in the value for header {name}")]
    Header {
        /// Name of the header.
        name: &'static str,
    },
    /// An argument cannot be used as a path segment, because it is empty, `.` or `..`.
    #[error("cannot {operation}: {segment:?} cannot be part of a path")]
    PathSegment {
        /// Operation in the form of the message, such as `get cluster`.
        operation: &'static str,
        /// The rejected argument.
        segment: String,
    },
    /// The HTTP client or a request cannot be created.
    #[error("cannot set up the HTTP client")]
    Setup(#[source] BoxError),
    /// The service responded with an error.
    #[error("cannot {operation}: status {status}: {reason}")]
    Response {
        /// Operation in the form of the message, such as `get cluster`.
        operation: &'static str,
        /// Status of the response.
        status: u16,
        /// Reason from the error document of the service, or the text of the response if it has no such document.
        reason: String,
        /// The service's findings about static network configs.
        findings: Vec<Value>,
        /// Time to wait before a retry, if the response has a `Retry-After` header.
        retry_after: Option<Duration>,
    },
    /// The response has a 2xx status that this operation of the service never returns. It may come from another server,
    /// such as a captive portal.
    #[error("cannot {operation}: unexpected status {status}, expected {expected}")]
    UnexpectedStatus {
        /// Operation in the form of the message, such as `delete cluster`.
        operation: &'static str,
        /// Status of the response.
        status: u16,
        /// The only 2xx status that this operation of the service returns.
        expected: u16,
    },
    /// The client could not connect to the service. It sent no request.
    #[error("cannot {operation}: no connection to the service")]
    Connect {
        /// Operation in the form of the message, such as `get cluster`.
        operation: &'static str,
        /// Error of the transport.
        source: BoxError,
    },
    /// The TLS handshake failed, so the client sent no request. The client does not trust the server's certificate, or
    /// client and server have no TLS settings in common.
    #[error("cannot {operation}: TLS handshake failed")]
    Tls {
        /// Operation in the form of the message, such as `get cluster`.
        operation: &'static str,
        /// Error of the transport.
        source: BoxError,
    },
    /// The data to upload could not be read. The service received only a part of it.
    #[error("cannot {operation}: cannot read the data to upload")]
    Upload {
        /// Operation in the form of the message, such as `upload host logs`.
        operation: &'static str,
        /// Error of the body that the caller passed.
        source: BoxError,
    },
    /// The request timed out. The service may have performed the operation.
    #[error("cannot {operation}: request timed out")]
    Timeout {
        /// Operation in the form of the message, such as `get cluster`.
        operation: &'static str,
        /// Error of the transport.
        source: BoxError,
    },
    /// The connection failed during the request or the response. The service may have performed the operation.
    #[error("cannot {operation}: connection failed")]
    Connection {
        /// Operation in the form of the message, such as `get cluster`.
        operation: &'static str,
        /// Error of the transport.
        source: BoxError,
    },
    /// The response is longer than the client accepts.
    #[error("cannot {operation}: response too large (limit {limit} bytes)")]
    TooLarge {
        /// Operation in the form of the message, such as `get cluster`.
        operation: &'static str,
        /// Maximum length of a response, in bytes.
        limit: usize,
    },
    /// The host did not meet the condition before the timeout.
    #[error("cannot wait for host: the condition is not met after {} s", timeout.as_secs_f64())]
    WaitTimeout {
        /// The timeout that the caller passed.
        timeout: Duration,
        /// The last temporary error. `None` if the last completed request succeeded.
        source: Option<Box<Self>>,
    },
    /// The response is not JSON of the expected type.
    #[error("cannot {operation}: invalid response")]
    Decode {
        /// Operation in the form of the message, such as `get cluster`.
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

    /// Returns the status of the service's error response, if the error is one.
    #[must_use]
    pub fn status(&self) -> Option<u16> {
        match self {
            Self::Response { status, .. } => Some(*status),
            _ => None,
        }
    }

    /// Returns the reason in the service's error response, if the error is one.
    #[must_use]
    pub fn reason(&self) -> Option<&str> {
        match self {
            Self::Response { reason, .. } => Some(reason),
            _ => None,
        }
    }

    /// Returns the service's findings about static network configs. Only Kindling sends findings.
    #[must_use]
    pub fn findings(&self) -> &[Value] {
        match self {
            Self::Response { findings, .. } => findings,
            _ => &[],
        }
    }

    /// Returns the time to wait before a retry, if the response has a `Retry-After` header.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Response { retry_after, .. } => *retry_after,
            _ => None,
        }
    }

    /// Returns `true` if the same request can succeed later without a change. This is the case if no response arrived,
    /// or if the status is 408, 423, 425, 429, 500, 502, 503, 504 or 507. A failed TLS handshake is not retryable.
    ///
    /// The service may have performed the operation, except after [`ClientError::Connect`]. A repeated POST then
    /// creates another object. An agent must not retry a registration that the service refused with 401, 403, 404 or
    /// 409.
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
