//! Reads the id of a request from its headers.

use std::convert::Infallible;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;

use crate::request_id::RequestId;

/// The id is the client's `X-Request-Id`, or a random one.
impl<S: Send + Sync> FromRequestParts<S> for RequestId {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, Infallible> {
        let given = parts.headers.get("x-request-id").and_then(|value| value.to_str().ok());
        // Events store only UUIDs.
        Ok(given.and_then(|text| text.parse().ok()).map_or_else(Self::fresh, Self))
    }
}
