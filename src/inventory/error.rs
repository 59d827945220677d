//! What a client hears when a request is refused.

use axum::body::Body;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use chrono::{DateTime, Utc};
use ignition::network::check::Finding;
use serde::Serialize;
use utoipa::ToSchema;

use super::store::StoreError;

/// A request that is refused: with which status, in which of the API's two shapes, and why.
///
/// The reason goes to the client. What is ours alone (a database that does not answer, say) goes to the log, where it
/// happens.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{status}: {reason}")]
pub struct Refusal {
    status: StatusCode,
    shape: Shape,
    reason: String,
    findings: Vec<Finding>,
    /// When it is of use to ask again, where that is known.
    retry_at: Option<DateTime<Utc>>,
}

/// After how many seconds it is of use to ask again a service that has no time, unless that is known better.
const RETRY_AFTER: i64 = 5;

/// Which part of the service refuses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shape {
    /// An operation: code, kind and reason.
    Operation,
    /// What comes before the operation: the router, authentication, and the reader of parameters.
    Gate,
}

/// An error of an operation.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = error)]
pub struct OperationError {
    /// The status, as text.
    code: String,
    /// Always empty.
    href: &'static str,
    /// The status, as a number.
    id: u16,
    /// Always `Error`.
    kind: &'static str,
    /// What is wrong.
    reason: String,
    /// Where networks of machines are wrong, one by one.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(value_type = Vec<Object>, required = false)]
    findings: Vec<Finding>,
}

/// An error of the router, of authentication or of the reader of parameters.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = infra_error)]
pub struct GateError {
    /// The status.
    code: u16,
    /// What is wrong.
    message: String,
}

impl Refusal {
    /// An operation says no.
    pub fn new(status: StatusCode, reason: impl Into<String>) -> Self {
        Self { status, shape: Shape::Operation, reason: reason.into(), findings: Vec::new(), retry_at: None }
    }

    /// A value that cannot be.
    pub fn bad(reason: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, reason)
    }

    /// What is asked for is not there.
    pub fn not_found(reason: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, reason)
    }

    /// What is asked for cannot be in the present state.
    pub fn conflict(reason: impl Into<String>) -> Self {
        Self::new(StatusCode::CONFLICT, reason)
    }

    /// The service is at fault; the log says how.
    pub fn internal(reason: impl Into<String>) -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, reason)
    }

    /// A disk has no room for what the request writes. `what` names what is on that disk.
    pub fn insufficient_storage(what: &str) -> Self {
        Self::new(StatusCode::INSUFFICIENT_STORAGE, format!("no space left on the disk of {what}"))
    }

    /// The request does not come as far as an operation.
    pub fn at_gate(status: StatusCode, message: impl Into<String>) -> Self {
        Self { status, shape: Shape::Gate, reason: message.into(), findings: Vec::new(), retry_at: None }
    }

    /// A parameter or a body that cannot be read.
    pub fn malformed(message: impl Into<String>) -> Self {
        Self::at_gate(StatusCode::BAD_REQUEST, message)
    }

    /// With what is wrong with networks of machines, one by one.
    #[must_use]
    pub fn with_findings(self, findings: Vec<Finding>) -> Self {
        Self { findings, ..self }
    }

    /// With the time at which it is of use to ask again.
    #[must_use]
    pub fn until(self, retry_at: DateTime<Utc>) -> Self {
        Self { retry_at: Some(retry_at), ..self }
    }

    /// The status.
    #[must_use]
    pub fn status(&self) -> StatusCode {
        self.status
    }

    /// What is wrong.
    #[must_use]
    pub fn reason(&self) -> &str {
        &self.reason
    }
}

impl From<StoreError> for Refusal {
    fn from(error: StoreError) -> Self {
        tracing::error!(error = &error as &dyn std::error::Error, "the database failed");
        match error {
            StoreError::Contended => Self::new(
                StatusCode::SERVICE_UNAVAILABLE,
                "the record is being changed by too many others at once; try again",
            ),
            StoreError::Silent { .. } | StoreError::Unreachable { .. } | StoreError::Closed => {
                Self::new(StatusCode::SERVICE_UNAVAILABLE, "the database does not answer; try again")
            }
            StoreError::Full { .. } => Self::insufficient_storage("the database"),
            _ => Self::internal("the database failed"),
        }
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let code = self.status.as_u16();
        let is_unknown = self.status == StatusCode::UNAUTHORIZED;
        let is_later = self.status == StatusCode::SERVICE_UNAVAILABLE;
        let retry_after = self.retry_at.map_or(RETRY_AFTER, |at| (at - Utc::now()).num_seconds().max(1));
        let mut response = match self.shape {
            Shape::Operation => json(
                self.status,
                &OperationError {
                    code: code.to_string(),
                    href: "",
                    id: code,
                    kind: "Error",
                    reason: self.reason,
                    findings: self.findings,
                },
            ),
            Shape::Gate => json(self.status, &GateError { code, message: self.reason }),
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

/// A body as this API writes them: compact, with a newline at its end.
pub(crate) fn json(status: StatusCode, body: &impl Serialize) -> Response {
    let Ok(mut bytes) = to_json(body) else {
        return StatusCode::INTERNAL_SERVER_ERROR.into_response();
    };
    bytes.push(b'\n');
    let mut response = json_body(Body::from(bytes));
    *response.status_mut() = status;
    response
}

/// A value as JSON.
pub(crate) fn to_json(value: &impl Serialize) -> Result<Vec<u8>, Refusal> {
    serde_json::to_vec(value).map_err(|error| {
        tracing::error!(%error, "a reply cannot be written as JSON");
        Refusal::internal("the service failed; its log says how")
    })
}

/// An answer whose body is JSON.
pub(crate) fn json_body(body: Body) -> Response {
    let mut response = Response::new(body);
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

/// A reply with a body.
#[derive(Debug)]
pub(crate) struct Reply<T>(pub(crate) StatusCode, pub(crate) T);

impl<T: Serialize> IntoResponse for Reply<T> {
    fn into_response(self) -> Response {
        json(self.0, &self.1)
    }
}

/// A refusal in either shape.
#[derive(Debug, Serialize, ToSchema)]
#[serde(untagged)]
#[schema(as = refusal)]
#[expect(dead_code, reason = "the type describes answers; it is never made")]
pub(crate) enum EitherError {
    /// Of an operation.
    Operation(OperationError),
    /// Of what comes before it.
    Gate(GateError),
}

/// What any operation may answer when it refuses, for the document of the API.
#[derive(Debug, utoipa::IntoResponses)]
#[expect(dead_code, reason = "the type describes answers; it is never made")]
pub(crate) enum Refusals {
    /// Something in the request cannot be.
    #[response(status = 400)]
    BadRequest(EitherError),
    /// No token is good.
    #[response(status = 401)]
    Unauthenticated(GateError),
    /// The token is good, and not for this.
    #[response(status = 403)]
    Forbidden(EitherError),
    /// What the path names is not there.
    #[response(status = 404)]
    NotFound(EitherError),
    /// What is there is in no state for it.
    #[response(status = 409)]
    Conflict(OperationError),
    /// The request would exceed a limit of the service.
    #[response(status = 413)]
    TooLarge(EitherError),
    /// The service is at fault.
    #[response(status = 500)]
    Internal(OperationError),
    /// The service cannot do it now; the same request may be sent again.
    #[response(status = 503)]
    Unavailable(OperationError),
    /// A disk of the service is full.
    #[response(status = 507)]
    InsufficientStorage(OperationError),
}
