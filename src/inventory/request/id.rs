//! The id of a request.

use std::convert::Infallible;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use uuid::Uuid;

/// The id that the caller gave its request, or a fresh one: what happens in answer to it is kept with this id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RequestId(pub(crate) Uuid);

impl<S: Send + Sync> FromRequestParts<S> for RequestId {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, Infallible> {
        let given = parts.headers.get("x-request-id").and_then(|value| value.to_str().ok());
        // What is no UUID has no place in the events.
        Ok(Self(given.and_then(|text| text.parse().ok()).unwrap_or_else(Uuid::new_v4)))
    }
}
