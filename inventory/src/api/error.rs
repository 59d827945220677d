//! Error responses of the API: status, JSON body and headers.
//!
//! The Assisted Installer API has two error bodies: one for errors of operations, and one for errors before an
//! operation (router, authentication, parsing of parameters).

use std::fmt;

use assisted::error::{EitherError, InfraError, OperationError};
use axum::body::Body;
use axum::http::{HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use chrono::{DateTime, TimeDelta, Utc};
use ignition::network::check::NetworkFinding;
use serde::Serialize;

use crate::clock::{Clock as _, SystemClock};
use crate::error::{Error, ErrorKind};
use crate::json::{to_json, to_json_value};

/// An error response.
///
/// The client receives the reason. Details not meant for clients, such as a database error or a path, are logged where
/// the error occurs.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{status}: {reason}")]
pub struct ApiError {
    status: StatusCode,
    shape: Shape,
    reason: String,
    findings: Vec<NetworkFinding>,
    /// Earliest time at which a retry can succeed, if known.
    retry_at: Option<DateTime<Utc>>,
}

/// Seconds in `Retry-After` of a 503 response if the error contains no time.
const RETRY_AFTER: i64 = 5;

/// The format of an error body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shape {
    /// The body of an operation's error: code, kind and reason.
    Operation,
    /// The body of an error before an operation: code and message.
    Infra,
}

impl ApiError {
    /// Creates an error of an operation.
    pub fn new(status: StatusCode, reason: impl Into<String>) -> Self {
        Self { status, shape: Shape::Operation, reason: reason.into(), findings: Vec::new(), retry_at: None }
    }

    /// Creates an error of an operation with status 400: a value is invalid.
    pub fn bad(reason: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, reason)
    }

    /// Creates an error of an operation with status 404: the resource does not exist.
    pub fn not_found(reason: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, reason)
    }

    /// Creates an error with status 500. The cause belongs in the log, not in the reason.
    pub fn internal(reason: impl Into<String>) -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, reason)
    }

    /// Logs a broken invariant of the service and returns an error with status 500. `what` names the invariant and the
    /// record, and contains no secrets. The client learns only that the service failed.
    pub fn broken(what: impl fmt::Display) -> Self {
        tracing::error!(%what, "internal error");
        Self::internal("internal error while processing the request; see the service's log")
    }

    /// Creates an error of a step before an operation: router, authentication or parsing of parameters.
    pub fn infra_error(status: StatusCode, message: impl Into<String>) -> Self {
        Self { status, shape: Shape::Infra, reason: message.into(), findings: Vec::new(), retry_at: None }
    }

    /// Creates an error with status 400: a parameter or a body cannot be parsed.
    pub fn malformed(message: impl Into<String>) -> Self {
        Self::infra_error(StatusCode::BAD_REQUEST, message)
    }

    /// Sets the time for `Retry-After`.
    #[must_use]
    pub fn with_retry_at(self, retry_at: DateTime<Utc>) -> Self {
        Self { retry_at: Some(retry_at), ..self }
    }

    /// Returns the kind of the error, which follows from the status.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        kind(self.status)
    }

    /// Returns the HTTP status.
    #[must_use]
    pub fn status(&self) -> StatusCode {
        self.status
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

    /// Returns the earliest time at which a retry can succeed, if known.
    #[must_use]
    pub fn retry_at(&self) -> Option<DateTime<Utc>> {
        self.retry_at
    }
}

impl From<Error> for ApiError {
    fn from(error: Error) -> Self {
        let is_of_request = error.is_of_request();
        Self {
            status: status(error.kind()),
            shape: if is_of_request { Shape::Infra } else { Shape::Operation },
            reason: error.reason().to_owned(),
            findings: error.findings().to_vec(),
            retry_at: None,
        }
    }
}

/// Returns the HTTP status of a kind of error.
fn status(kind: ErrorKind) -> StatusCode {
    match kind {
        ErrorKind::NotFound => StatusCode::NOT_FOUND,
        ErrorKind::Conflict => StatusCode::CONFLICT,
        ErrorKind::Invalid => StatusCode::BAD_REQUEST,
        ErrorKind::Unauthorized => StatusCode::UNAUTHORIZED,
        ErrorKind::Forbidden => StatusCode::FORBIDDEN,
        ErrorKind::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
        ErrorKind::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
        ErrorKind::InsufficientStorage => StatusCode::INSUFFICIENT_STORAGE,
        ErrorKind::Internal => StatusCode::INTERNAL_SERVER_ERROR,
        ErrorKind::Unimplemented => StatusCode::NOT_IMPLEMENTED,
    }
}

/// Returns the kind of an error with this status. Several statuses have the same kind.
fn kind(status: StatusCode) -> ErrorKind {
    match status {
        StatusCode::NOT_FOUND | StatusCode::GONE => ErrorKind::NotFound,
        StatusCode::CONFLICT | StatusCode::PRECONDITION_FAILED => ErrorKind::Conflict,
        StatusCode::UNAUTHORIZED => ErrorKind::Unauthorized,
        StatusCode::FORBIDDEN => ErrorKind::Forbidden,
        StatusCode::PAYLOAD_TOO_LARGE => ErrorKind::TooLarge,
        StatusCode::NOT_IMPLEMENTED => ErrorKind::Unimplemented,
        StatusCode::INSUFFICIENT_STORAGE => ErrorKind::InsufficientStorage,
        StatusCode::SERVICE_UNAVAILABLE
        | StatusCode::TOO_MANY_REQUESTS
        | StatusCode::REQUEST_TIMEOUT
        | StatusCode::BAD_GATEWAY
        | StatusCode::GATEWAY_TIMEOUT => ErrorKind::Unavailable,
        status if status.is_client_error() => ErrorKind::Invalid,
        _ => ErrorKind::Internal,
    }
}

impl IntoResponse for Error {
    fn into_response(self) -> Response {
        ApiError::from(self).into_response()
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let code = self.status.as_u16();
        let is_unknown = self.status == StatusCode::UNAUTHORIZED;
        let is_later = self.status == StatusCode::SERVICE_UNAVAILABLE;
        let retry_after = self.retry_at.map_or(RETRY_AFTER, |at| whole_seconds(at - SystemClock.now()));
        let mut response = match self.shape {
            Shape::Operation => operation_error(self.status, self.reason, &self.findings),
            Shape::Infra => json(self.status, &InfraError { code, message: self.reason }),
        };
        if is_unknown {
            response.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        if is_later {
            response.headers_mut().insert(header::RETRY_AFTER, retry_after.into());
        }
        response
    }
}

/// Returns the response to an error of an operation.
fn operation_error(status: StatusCode, reason: String, findings: &[NetworkFinding]) -> Response {
    let findings = findings.iter().map(|finding| to_json_value("a finding", finding));
    let Ok(findings) = findings.collect::<Result<_, _>>() else {
        return StatusCode::INTERNAL_SERVER_ERROR.into_response();
    };
    json(status, &OperationError { findings, ..OperationError::new(status.as_u16(), reason) })
}

/// Returns a duration in whole seconds, rounded up, and at least 1.
fn whole_seconds(time: TimeDelta) -> i64 {
    let has_fraction = time.subsec_nanos() > 0;
    (time.num_seconds() + i64::from(has_fraction)).max(1)
}

/// Returns a response with a JSON body: compact, with a final newline, as the Go service writes it.
pub fn json(status: StatusCode, body: &impl Serialize) -> Response {
    let Ok(mut bytes) = to_json(body) else {
        return StatusCode::INTERNAL_SERVER_ERROR.into_response();
    };
    bytes.push(b'\n');
    let mut response = json_body(Body::from(bytes));
    *response.status_mut() = status;
    response
}

/// Converts a text created by this program into a header value.
///
/// # Errors
///
/// Returns an error if the text has characters that a header cannot contain.
pub fn header_value(text: &str) -> Result<HeaderValue, ApiError> {
    HeaderValue::from_str(text)
        .map_err(|error| ApiError::broken(format_args!("header value {text:?} cannot be sent: {error}")))
}

/// Returns a response with a JSON body.
pub(crate) fn json_body(body: Body) -> Response {
    let mut response = Response::new(body);
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

/// A response with a status and a JSON body.
#[derive(Debug)]
pub struct Reply<T>(pub StatusCode, pub T);

impl<T: Serialize> IntoResponse for Reply<T> {
    fn into_response(self) -> Response {
        json(self.0, &self.1)
    }
}

/// The errors that any operation may return, for the OpenAPI document.
#[derive(Debug, utoipa::IntoResponses)]
pub enum ApiErrors {
    /// A value in the request is invalid.
    #[response(status = 400)]
    BadRequest(EitherError),
    /// The request has no valid token.
    #[response(status = 401)]
    Unauthenticated(InfraError),
    /// The token does not allow the operation.
    #[response(status = 403)]
    Forbidden(EitherError),
    /// The resource does not exist.
    #[response(status = 404)]
    NotFound(EitherError),
    /// The state of the resource does not allow the operation.
    #[response(status = 409)]
    Conflict(OperationError),
    /// The request would exceed a limit of the service.
    #[response(status = 413)]
    TooLarge(EitherError),
    /// The service failed; its log has the cause.
    #[response(status = 500)]
    Internal(OperationError),
    /// The service is temporarily unavailable; retry after the time in `Retry-After`.
    #[response(status = 503)]
    Unavailable(OperationError),
    /// A disk of the service is full.
    #[response(status = 507)]
    InsufficientStorage(OperationError),
}

/// Refuses all methods except GET and HEAD.
pub async fn only_reads(method: Method) -> ApiError {
    ApiError::infra_error(
        StatusCode::METHOD_NOT_ALLOWED,
        format!("method {method} is not allowed, but [GET,HEAD] are"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn response_to_an_error_has_its_kind() {
        for expected in [
            ErrorKind::NotFound,
            ErrorKind::Conflict,
            ErrorKind::Invalid,
            ErrorKind::Unauthorized,
            ErrorKind::Forbidden,
            ErrorKind::TooLarge,
            ErrorKind::Unavailable,
            ErrorKind::InsufficientStorage,
            ErrorKind::Internal,
            ErrorKind::Unimplemented,
        ] {
            let error = ApiError::from(Error::new(expected, "x"));
            assert_eq!((error.kind(), error.retry_at()), (expected, None));
            assert_eq!(error.status(), status(expected));
        }
        for (status, expected) in [(405, ErrorKind::Invalid), (429, ErrorKind::Unavailable)] {
            assert_eq!(ApiError::new(StatusCode::from_u16(status).unwrap(), "x").kind(), expected);
        }
    }

    #[test]
    fn whole_seconds_are_rounded_up() {
        for (milliseconds, expected) in [
            (-1500, 1),
            (-1, 1),
            (0, 1),
            (1, 1),
            (1000, 1),
            (1001, 2),
            (9999, 10),
            (10_000, 10),
            (10_001, 11),
        ] {
            let time = TimeDelta::milliseconds(milliseconds);
            assert_eq!(whole_seconds(time), expected, "{milliseconds} ms");
        }
    }
}
