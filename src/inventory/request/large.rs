//! Memory for bodies while they come. A client may take minutes to send one, and many may do so at once.
//!
//! Bodies that are read whole and logs that pass through to where files are kept have each their own.

use std::sync::Arc;

use axum::RequestExt;
use axum::extract::Request;
use axum::http::StatusCode;
use http_body_util::{BodyExt, LengthLimitError};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::api_error::ApiError;

/// What every request may have without asking, in bytes: more than nearly all bodies are.
const SMALL: usize = 64 << 10;
/// What all others may have together, beyond that.
const ROOM: usize = 256 << 20;
/// Room is given in pieces of so many bytes.
const PIECE: usize = 64 << 10;

/// Room for large bodies, of all requests together. Clones are the same.
#[derive(Clone, Debug)]
pub(crate) struct LargeBodies(Arc<Semaphore>);

/// What one request has of it. It is given back when this is dropped.
#[derive(Debug)]
pub(crate) struct Room {
    of: LargeBodies,
    pieces: Vec<OwnedSemaphorePermit>,
}

impl Default for LargeBodies {
    fn default() -> Self {
        Self::with_room(ROOM)
    }
}

impl LargeBodies {
    pub(crate) fn with_room(bytes: usize) -> Self {
        Self(Arc::new(Semaphore::new(bytes / PIECE)))
    }

    /// Reads all of a body, of the length that its route allows. Room is given back when it was read: what is made of it is
    /// bounded elsewhere, and does not wait for clients.
    pub(crate) async fn read(&self, request: Request) -> Result<Vec<u8>, ApiError> {
        let mut body = request.with_limited_body().into_body();
        let (mut bytes, mut room) = (Vec::new(), self.room());
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(|error| unreadable(&error))?;
            let Ok(data) = frame.into_data() else { continue };
            room.hold(bytes.len() + data.len())?;
            bytes.extend_from_slice(&data);
        }
        Ok(bytes)
    }

    /// Room for one request, which has nothing of it yet.
    pub(crate) fn room(&self) -> Room {
        Room { of: self.clone(), pieces: Vec::new() }
    }
}

impl Room {
    /// Takes what is missing for so many bytes.
    pub(crate) fn hold(&mut self, len: usize) -> Result<(), ApiError> {
        while len > SMALL + self.pieces.len() * PIECE {
            let piece = Arc::clone(&self.of.0).try_acquire_owned().map_err(|_| {
                let reason = "too many large bodies are being sent at the moment";
                ApiError::at_gate(StatusCode::SERVICE_UNAVAILABLE, reason)
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
            return ApiError::at_gate(StatusCode::PAYLOAD_TOO_LARGE, "the body is longer than may be");
        }
        cause = error.source();
    }
    ApiError::malformed("the body did not come to its end")
}

#[cfg(test)]
mod tests {
    use axum::body::{Body, Bytes};
    use futures_util::stream;

    use super::*;

    #[tokio::test]
    async fn bodies_that_are_sent_slowly_do_not_take_all_memory() {
        let large = LargeBodies::with_room(10 * PIECE);
        let body = |len| Request::new(Body::from(vec![b'x'; len]));
        let mut room = large.room();
        room.hold(SMALL + 6 * PIECE).unwrap();
        assert_eq!(large.read(body(SMALL + 4 * PIECE)).await.unwrap().len(), SMALL + 4 * PIECE);
        let refused = large.read(body(SMALL + 4 * PIECE + 1)).await.unwrap_err();
        assert_eq!(refused.status(), StatusCode::SERVICE_UNAVAILABLE);
        assert_eq!(large.read(body(SMALL)).await.unwrap().len(), SMALL, "small ones go on");
        drop(room);
        assert!(large.read(body(SMALL + 10 * PIECE)).await.is_ok(), "all is given back");
    }

    #[tokio::test]
    async fn a_body_that_breaks_off_is_the_clients_fault() {
        let parts = [Ok(Bytes::from_static(b"{")), Err(std::io::Error::other("gone"))];
        let request = Request::new(Body::from_stream(stream::iter(parts)));
        let refused = LargeBodies::default().read(request).await.unwrap_err();
        assert_eq!(refused.status(), StatusCode::BAD_REQUEST);
    }
}
