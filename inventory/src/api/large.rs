//! Limits on the memory for bodies while clients send them. A client may take minutes to send a body, and many clients
//! may send bodies at the same time.
//!
//! Bodies read as a whole and logs streamed to the file store have separate limits. The memory for parsing a body is
//! reserved later: see [`WorkRoom`](super::WorkRoom).

use std::sync::Arc;

use axum::RequestExt;
use axum::body::HttpBody as _;
use axum::extract::Request;
use http_body_util::{BodyExt, LengthLimitError};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::memory_limit::AvailableMemory;
use crate::error::{Error, ErrorKind};

/// Maximum length of a body that needs no reservation, in bytes. Nearly all bodies are shorter.
pub(super) const SMALL: usize = 64 << 10;
/// Maximum number of reserved bytes of all requests. The first `SMALL` bytes of each body do not count.
const ROOM: usize = 256 << 20;
/// Divisor for the available memory. The limit is at most the quotient.
const PART: u64 = 8;
/// Number of bytes reserved in one step.
pub(super) const PIECE: usize = 64 << 10;
/// Error reason if the connection breaks before the end of a body.
const INCOMPLETE: &str = "request body is incomplete";

/// The memory limit for the large bodies of all requests. Clones share it.
#[derive(Clone, Debug)]
pub(crate) struct LargeBodies(Arc<Semaphore>);

/// The reserved memory of one request. Dropping it releases the memory.
#[derive(Debug)]
pub(crate) struct ReservedMemory {
    of: LargeBodies,
    pieces: Vec<OwnedSemaphorePermit>,
}

/// A completely received body, with its reserved memory.
#[derive(Debug)]
pub(super) struct ReceivedBody {
    pub(super) bytes: Vec<u8>,
    /// The counted JSON values. The values of a small body are not counted.
    pub(super) content: JsonContent,
    _memory: ReservedMemory,
}

/// The numbers of values and objects in a JSON text. Each number may be one too low. Strings are counted as if they
/// were JSON, because they may contain JSON.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct JsonContent {
    pub(super) values: usize,
    pub(super) objects: usize,
    /// Number of bytes counted so far.
    counted: usize,
}

impl JsonContent {
    /// Counts the bytes that follow the bytes counted so far.
    fn count_to_end(&mut self, text: &[u8]) {
        let new = text.get(self.counted..).unwrap_or_default();
        let count = |of: fn(&u8) -> bool| new.iter().filter(|byte| of(byte)).count();
        self.values = self.values.saturating_add(count(|byte| matches!(byte, b',' | b'[' | b'{')));
        self.objects = self.objects.saturating_add(count(|byte| *byte == b'{'));
        self.counted = text.len();
    }
}

impl LargeBodies {
    /// Creates the limit, based on the memory available to this process.
    pub(crate) fn within(memory: AvailableMemory) -> Self {
        Self::with_max_bytes(memory.limit(ROOM, PART))
    }

    pub(crate) fn with_max_bytes(bytes: usize) -> Self {
        Self(Arc::new(Semaphore::new(bytes / PIECE)))
    }

    /// Reads a body up to the size limit of its route.
    pub(super) async fn read(&self, request: Request) -> Result<ReceivedBody, Error> {
        let mut body = request.with_limited_body().into_body();
        let declared = usize::try_from(body.size_hint().lower()).map_or(SMALL, |len| len.min(SMALL));
        let (mut bytes, mut memory) = (Vec::with_capacity(declared), self.empty_reservation());
        let mut content = JsonContent::default();
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(|error| unreadable(&error))?;
            let Ok(data) = frame.into_data() else { continue };
            memory.extend_to(bytes.len().saturating_add(data.len()))?;
            // With a limited address space, an allocation that cannot report its failure would end the process.
            bytes.try_reserve(data.len()).map_err(|_| too_many())?;
            bytes.extend_from_slice(&data);
            if bytes.len() > SMALL {
                content.count_to_end(&bytes);
            }
        }
        Ok(ReceivedBody { bytes, content, _memory: memory })
    }

    /// Returns `true` if the connection broke before the whole body was received.
    pub(crate) fn is_incomplete_body(error: &Error) -> bool {
        error.kind() == ErrorKind::Invalid && error.reason() == INCOMPLETE
    }

    /// Returns an empty reservation for one request.
    pub(crate) fn empty_reservation(&self) -> ReservedMemory {
        ReservedMemory { of: self.clone(), pieces: Vec::new() }
    }
}

impl ReceivedBody {
    #[cfg(test)]
    pub(super) async fn from_bytes(bytes: impl Into<axum::body::Body>) -> Self {
        LargeBodies::with_max_bytes(ROOM).read(Request::new(bytes.into())).await.unwrap()
    }

    /// Returns `true` if the body takes noticeable time and memory to parse. Most bodies are shorter.
    pub(super) fn is_large(&self) -> bool {
        self.bytes.len() > SMALL
    }
}

impl ReservedMemory {
    /// Extends the reservation to `len` bytes.
    pub(crate) fn extend_to(&mut self, len: usize) -> Result<(), Error> {
        while len > SMALL + self.pieces.len() * PIECE {
            let piece = Arc::clone(&self.of.0).try_acquire_owned().map_err(|_| too_many())?;
            self.pieces.push(piece);
        }
        Ok(())
    }
}

fn too_many() -> Error {
    let reason = "too many large bodies are being sent at the moment";
    Error::unavailable(reason).of_request()
}

fn unreadable(error: &axum::Error) -> Error {
    let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(error) = cause {
        if error.is::<LengthLimitError>() {
            return Error::too_large("request body too large").of_request();
        }
        cause = error.source();
    }
    Error::malformed(INCOMPLETE)
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
        let read = large.read(body(SMALL + 4 * PIECE)).await.unwrap();
        assert_eq!(read.bytes.len(), SMALL + 4 * PIECE);
        let refused = large.read(body(SMALL + 1)).await.unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Unavailable);
        drop(read);
        let refused = large.read(body(SMALL + 4 * PIECE + 1)).await.unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Unavailable);
        assert_eq!(large.read(body(SMALL)).await.unwrap().bytes.len(), SMALL, "small bodies are still read");
        drop(room);
        assert!(large.read(body(SMALL + 10 * PIECE)).await.is_ok(), "all memory is released");
    }

    #[tokio::test]
    async fn incomplete_body_is_a_client_error() {
        let parts = [Ok(Bytes::from_static(b"{")), Err(std::io::Error::other("gone"))];
        let request = Request::new(Body::from_stream(stream::iter(parts)));
        let refused = LargeBodies::with_max_bytes(ROOM).read(request).await.unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Invalid);
        assert!(LargeBodies::is_incomplete_body(&refused));
        assert!(!LargeBodies::is_incomplete_body(&Error::malformed("not JSON")));
    }

    #[tokio::test]
    async fn content_of_large_bodies_is_counted_across_frames() {
        let text = format!(r#"{{"a":[{{}},1],"b":"{}"}}"#, "x".repeat(SMALL));
        let parts =
            text.as_bytes().chunks(5).map(|part| Ok::<_, std::io::Error>(Bytes::copy_from_slice(part)));
        let body = ReceivedBody::from_bytes(Body::from_stream(stream::iter(parts.collect::<Vec<_>>()))).await;
        let expected = JsonContent { values: 5, objects: 2, counted: text.len() };
        assert_eq!((body.bytes.as_slice(), body.content), (text.as_bytes(), expected));
    }
}
