//! The id of a request.

use std::convert::Infallible;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use uuid::Uuid;

/// The id of a request: the client's `X-Request-Id`, or a random id. Events that the request causes contain it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RequestId(pub(crate) Uuid);

impl<S: Send + Sync> FromRequestParts<S> for RequestId {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, Infallible> {
        let given = parts.headers.get("x-request-id").and_then(|value| value.to_str().ok());
        // Events store only UUIDs.
        Ok(Self(given.and_then(|text| text.parse().ok()).unwrap_or_else(Uuid::new_v4)))
    }
}
