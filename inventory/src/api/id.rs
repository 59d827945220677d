//! Reads the request id from the headers of a request.

use std::convert::Infallible;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;

use crate::request_id::RequestId;

/// The id is the value of the client's `X-Request-Id`, or a random id.
impl<S: Send + Sync> FromRequestParts<S> for RequestId {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, Infallible> {
        let header = parts.headers.get("x-request-id").and_then(|value| value.to_str().ok());
        // Events can store only UUIDs.
        Ok(header.and_then(|text| text.parse().ok()).map_or_else(Self::fresh, Self))
    }
}
