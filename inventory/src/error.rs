//! The error that an operation of the inventory returns: its kind, and the reason for the client.

use std::fmt;

use ignition::network::check::NetworkFinding;
use rules::values::InvalidValue;

/// An error of an operation.
///
/// Clients receive the reason. Details not meant for clients, such as a database error or a path, are logged where the
/// error occurs.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct Error {
    kind: ErrorKind,
    /// Whether the request itself is refused, before an operation begins. The response then has another body format.
    is_of_request: bool,
    reason: String,
    findings: Vec<NetworkFinding>,
}

/// The kind of an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The resource does not exist.
    NotFound,
    /// The state of the resource does not allow the operation.
    Conflict,
    /// A value is invalid.
    Invalid,
    /// The caller has no valid token.
    Unauthorized,
    /// The token does not allow the operation.
    Forbidden,
    /// The request exceeds a limit of the service.
    TooLarge,
    /// The service cannot perform the operation at the moment. A retry can succeed.
    Unavailable,
    /// A disk is full.
    InsufficientStorage,
    /// An invariant of the service is broken.
    Internal,
    /// The service does not implement the operation.
    Unimplemented,
}

impl Error {
    /// Returns an error of the given kind.
    pub fn new(kind: ErrorKind, reason: impl Into<String>) -> Self {
        Self { kind, is_of_request: false, reason: reason.into(), findings: Vec::new() }
    }

    /// Returns the error for an invalid value.
    pub fn invalid(reason: impl Into<String>) -> Self {
        Self::new(ErrorKind::Invalid, reason)
    }

    /// Returns the error for a resource that does not exist.
    pub fn not_found(reason: impl Into<String>) -> Self {
        Self::new(ErrorKind::NotFound, reason)
    }

    /// Returns the error for a record that does not exist, with the text of the Assisted Installer.
    pub(crate) fn record_not_found() -> Self {
        Self::not_found("record not found")
    }

    /// Returns the error for a resource whose state does not allow the operation.
    pub fn conflict(reason: impl Into<String>) -> Self {
        Self::new(ErrorKind::Conflict, reason)
    }

    /// Returns the error for a request that exceeds a limit of the service.
    pub fn too_large(reason: impl Into<String>) -> Self {
        Self::new(ErrorKind::TooLarge, reason)
    }

    /// Returns the error for an operation that cannot be performed at the moment.
    pub fn unavailable(reason: impl Into<String>) -> Self {
        Self::new(ErrorKind::Unavailable, reason)
    }

    /// Returns the error for a caller without a valid token.
    pub fn unauthorized(reason: impl Into<String>) -> Self {
        Self::new(ErrorKind::Unauthorized, reason).of_request()
    }

    /// Returns the error for an operation that the service does not implement.
    pub fn unimplemented(reason: impl Into<String>) -> Self {
        Self::new(ErrorKind::Unimplemented, reason)
    }

    /// Returns the error for an invalid value in a request, refused before an operation begins.
    pub fn malformed(reason: impl Into<String>) -> Self {
        Self::invalid(reason).of_request()
    }

    /// Returns an internal error. The cause belongs in the log, not in the reason.
    pub fn internal(reason: impl Into<String>) -> Self {
        Self::new(ErrorKind::Internal, reason)
    }

    /// Logs a broken invariant of the service and returns an internal error. `what` names the invariant and the record,
    /// and contains no secrets. The client learns only that the service failed.
    pub fn broken(what: impl fmt::Display) -> Self {
        tracing::error!(%what, "internal error");
        Self::internal("internal error while processing the request; see the service's log")
    }

    /// Returns the error for a full disk. `what` names the data stored on that disk.
    pub fn insufficient_storage(what: &str) -> Self {
        Self::new(ErrorKind::InsufficientStorage, format!("no space left on the disk of {what}"))
    }

    /// Marks the error as a refusal of the request itself, before an operation begins.
    #[must_use]
    pub fn of_request(self) -> Self {
        Self { is_of_request: true, ..self }
    }

    /// Adds findings about static network configs.
    #[must_use]
    pub fn with_findings(self, findings: Vec<NetworkFinding>) -> Self {
        Self { findings, ..self }
    }

    /// Returns the kind.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// Returns `true` if the request itself is refused, before an operation begins.
    #[must_use]
    pub fn is_of_request(&self) -> bool {
        self.is_of_request
    }

    /// Returns the reason that the client receives.
    #[must_use]
    pub fn reason(&self) -> &str {
        &self.reason
    }

    /// Returns the findings about static network configs.
    #[must_use]
    pub fn findings(&self) -> &[NetworkFinding] {
        &self.findings
    }
}

impl From<InvalidValue> for Error {
    fn from(error: InvalidValue) -> Self {
        Self::invalid(error.to_string())
    }
}
