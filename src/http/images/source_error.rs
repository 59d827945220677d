//! The error that a source of infra-envs returns for a request that it refuses.

use axum::http::StatusCode;
use chrono::{DateTime, Utc};
use discovery::DiscoveryError;

use inventory::api::ApiError;

/// Why a source of infra-envs refuses a request. The client receives the status and the reason.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(transparent)]
pub struct SourceError(ApiError);

impl SourceError {
    /// Creates an error with any status.
    pub fn new(status: StatusCode, reason: impl Into<String>) -> Self {
        Self(ApiError::new(status, reason))
    }

    /// Creates an error for a missing infra-env, or for a missing file of an infra-env.
    pub fn not_found(reason: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, reason)
    }

    /// Creates an error for a caller without access.
    pub fn unauthorized(reason: impl Into<String>) -> Self {
        Self(ApiError::infra_error(StatusCode::UNAUTHORIZED, reason))
    }

    /// Creates an error for a source that is temporarily unavailable.
    pub fn unavailable(reason: impl Into<String>) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, reason)
    }

    /// Creates an error for a fault of the source. Log the cause instead of including it in `reason`.
    pub fn internal(reason: impl Into<String>) -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, reason)
    }

    /// Sets the time after which a retry can succeed. Sent as `Retry-After`.
    #[must_use]
    pub fn with_retry_at(self, retry_at: DateTime<Utc>) -> Self {
        Self(self.0.with_retry_at(retry_at))
    }

    /// Returns the HTTP status of the response.
    #[must_use]
    pub fn status(&self) -> StatusCode {
        self.0.status()
    }

    /// Returns the reason for the client.
    #[must_use]
    pub fn reason(&self) -> &str {
        self.0.reason()
    }
}

impl From<SourceError> for ApiError {
    fn from(error: SourceError) -> Self {
        error.0
    }
}

impl From<ApiError> for SourceError {
    fn from(error: ApiError) -> Self {
        Self(error)
    }
}

impl From<inventory::Error> for SourceError {
    fn from(error: inventory::Error) -> Self {
        Self(error.into())
    }
}

/// The inputs were validated before, so this error is never the caller's fault.
impl From<DiscoveryError> for SourceError {
    fn from(error: DiscoveryError) -> Self {
        Self::internal(format!("cannot make the image: {error}"))
    }
}
