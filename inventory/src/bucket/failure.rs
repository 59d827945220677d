//! Errors of object stores, without the body of the response: error bodies can be long and contain credentials.

use std::error::Error;
use std::io;

use axum::http::StatusCode;
use object_store::client::{HttpError, HttpErrorKind};

/// An error response of an object store.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the object store returned status {}{}", status.as_u16(), code.as_ref().map(|code| format!(" ({code})")).unwrap_or_default())]
pub(super) struct ServiceError {
    pub(super) status: StatusCode,
    /// The code in the body, such as `AccessDenied`.
    pub(super) code: Option<String>,
}

impl ServiceError {
    pub(super) fn is_missing_bucket(&self) -> bool {
        self.code.as_deref() == Some("NoSuchBucket")
    }

    /// Returns `true` if the same request may succeed later.
    pub(super) fn is_temporary(&self) -> bool {
        let status = self.status;
        status.is_server_error()
            || matches!(status, StatusCode::TOO_MANY_REQUESTS | StatusCode::REQUEST_TIMEOUT)
    }
}

/// The reason why a request to an object store failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BucketFailure {
    /// The store could not be reached, or did not respond in time.
    #[error("the object store does not respond: {reason}")]
    Unavailable {
        /// Why the store is unavailable.
        reason: String,
    },
    /// The bucket does not exist.
    #[error("the bucket does not exist; create it, or correct its name")]
    MissingBucket,
    /// The store refused the request.
    #[error("{reason}")]
    Refused {
        /// The status of the response.
        status: u16,
        /// The status and the code of the response.
        reason: String,
    },
    /// The response does not have the format of an object store.
    #[error("the object store sent an invalid response")]
    Invalid,
}

impl BucketFailure {
    /// Returns the failure among the causes of an error, or `None` if the error does not concern an object store.
    #[must_use]
    pub fn find(error: &(dyn Error + 'static)) -> Option<Self> {
        let mut is_of_store = false;
        let mut cause = Some(error);
        while let Some(error) = cause {
            if let Some(failure) = error.downcast_ref::<Self>() {
                return Some(failure.clone());
            }
            if let Some(service) = error.downcast_ref::<ServiceError>() {
                return Some(Self::from(service));
            }
            if let Some(http) = error.downcast_ref::<HttpError>() {
                let service = innermost_cause(http).downcast_ref::<ServiceError>();
                return Some(service.map_or_else(|| Self::from(http), Self::from));
            }
            is_of_store |= error.downcast_ref::<object_store::Error>().is_some_and(is_of_bucket);
            // `io::Error::source` skips the error that it wraps.
            let inner = error.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
            let inner = inner.map(|inner| inner as &(dyn Error + 'static));
            cause = inner.or_else(|| error.source());
        }
        is_of_store.then_some(Self::Invalid)
    }
}

fn is_of_bucket(error: &object_store::Error) -> bool {
    match error {
        object_store::Error::Generic { store, .. } => *store == "S3",
        // The causes of all other errors contain no text from the store.
        _ => false,
    }
}

fn innermost_cause<'a>(error: &'a (dyn Error + 'static)) -> &'a (dyn Error + 'static) {
    let mut error = error;
    while let Some(source) = error.source() {
        error = source;
    }
    error
}

impl From<&ServiceError> for BucketFailure {
    fn from(error: &ServiceError) -> Self {
        let reason = error.to_string();
        if error.is_missing_bucket() {
            Self::MissingBucket
        } else if error.is_temporary() {
            Self::Unavailable { reason }
        } else {
            Self::Refused { status: error.status.as_u16(), reason }
        }
    }
}

impl From<&HttpError> for BucketFailure {
    /// Includes the innermost cause in the failure: it comes from this process and contains no URL.
    fn from(error: &HttpError) -> Self {
        match error.kind() {
            HttpErrorKind::Decode | HttpErrorKind::Unknown => Self::Invalid,
            _ => Self::Unavailable { reason: innermost_cause(error).to_string() },
        }
    }
}

/// Replaces an error of an object store with an error without the text of the response. Other errors are returned
/// unchanged.
#[must_use]
pub fn without_response(error: Box<dyn Error + Send + Sync>) -> Box<dyn Error + Send + Sync> {
    match BucketFailure::find(&*error) {
        Some(failure) => failure.into(),
        None => error,
    }
}
