//! Limits on memory for bodies while clients send them. A client may take minutes to send one, and many may do so at
//! once.
//!
//! Bodies that are read whole and logs that are streamed to the file store have separate limits.

use std::sync::Arc;

use axum::RequestExt;
use axum::body::HttpBody as _;
use axum::extract::Request;
use axum::http::StatusCode;
use http_body_util::{BodyExt, LengthLimitError};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::api::ApiError;

/// Bytes of each request that do not count against the limit. Nearly all bodies are shorter.
const SMALL: usize = 64 << 10;
/// The limit of all requests together, beyond `SMALL` bytes each.
const ROOM: usize = 256 << 20;
/// Memory is reserved in pieces of this many bytes.
const PIECE: usize = 64 << 10;

/// The memory limit for large bodies of all requests. Clones share it.
#[derive(Clone, Debug)]
pub(crate) struct LargeBodies(Arc<Semaphore>);

/// The reserved memory of one request. Dropping it releases the memory.
#[derive(Debug)]
pub(crate) struct ReservedMemory {
    of: LargeBodies,
    pieces: Vec<OwnedSemaphorePermit>,
}

impl Default for LargeBodies {
    fn default() -> Self {
        Self::with_max_bytes(ROOM)
    }
}

impl LargeBodies {
    pub(crate) fn with_max_bytes(bytes: usize) -> Self {
        Self(Arc::new(Semaphore::new(bytes / PIECE)))
    }

    /// Reads a body up to the limit of its route. The reservation ends with the read: memory for the parsed value is
    /// limited elsewhere and is not held while a client sends.
    pub(crate) async fn read(&self, request: Request) -> Result<Vec<u8>, ApiError> {
        let mut body = request.with_limited_body().into_body();
        let declared = usize::try_from(body.size_hint().lower()).map_or(SMALL, |len| len.min(SMALL));
        let (mut bytes, mut room) = (Vec::with_capacity(declared), self.empty_reservation());
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(|error| unreadable(&error))?;
            let Ok(data) = frame.into_data() else { continue };
            room.extend_to(bytes.len() + data.len())?;
            bytes.extend_from_slice(&data);
        }
        Ok(bytes)
    }

    /// Returns an empty reservation for one request.
    pub(crate) fn empty_reservation(&self) -> ReservedMemory {
        ReservedMemory { of: self.clone(), pieces: Vec::new() }
    }
}

impl ReservedMemory {
    /// Extends the reservation to `len` bytes.
    pub(crate) fn extend_to(&mut self, len: usize) -> Result<(), ApiError> {
        while len > SMALL + self.pieces.len() * PIECE {
            let piece = Arc::clone(&self.of.0).try_acquire_owned().map_err(|_| {
                let reason = "too many large bodies are being sent at the moment";
                ApiError::infra_error(StatusCode::SERVICE_UNAVAILABLE, reason)
            })?;
            self.pieces.push(piece);
        }
        Ok(())
    }
}

fn unreadable(error: &axum::Error) -> ApiError {
    let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(error) = cause {
        if error.is::<LengthLimitError>() {
            return ApiError::infra_error(StatusCode::PAYLOAD_TOO_LARGE, "request body too large");
        }
        cause = error.source();
    }
    ApiError::malformed("request body is incomplete")
}

#[cfg(test)]
mod tests {
    use axum::body::{Body, Bytes};
    use futures_util::stream;

    use super::*;

    #[tokio::test]
    async fn slow_bodies_have_a_memory_limit() {
        let large = LargeBodies::with_max_bytes(10 * PIECE);
        let body = |len| Request::new(Body::from(vec![b'x'; len]));
        let mut room = large.empty_reservation();
        room.extend_to(SMALL + 6 * PIECE).unwrap();
        assert_eq!(large.read(body(SMALL + 4 * PIECE)).await.unwrap().len(), SMALL + 4 * PIECE);
        let refused = large.read(body(SMALL + 4 * PIECE + 1)).await.unwrap_err();
        assert_eq!(refused.status(), StatusCode::SERVICE_UNAVAILABLE);
        assert_eq!(large.read(body(SMALL)).await.unwrap().len(), SMALL, "small bodies are still read");
        drop(room);
        assert!(large.read(body(SMALL + 10 * PIECE)).await.is_ok(), "all is given back");
    }

    #[tokio::test]
    async fn incomplete_body_is_a_client_error() {
        let parts = [Ok(Bytes::from_static(b"{")), Err(std::io::Error::other("gone"))];
        let request = Request::new(Body::from_stream(stream::iter(parts)));
        let refused = LargeBodies::default().read(request).await.unwrap_err();
        assert_eq!(refused.status(), StatusCode::BAD_REQUEST);
    }
}
