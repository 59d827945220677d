//! Reports a connection's progress in sending a response body, and limits the frames in memory.

use std::convert::Infallible;
use std::io::IoSlice;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use axum::body::{Body, Bytes};
use hyper::body::{Body as HttpBody, Buf, Frame, SizeHint};
use tokio::sync::oneshot;

use crate::http::zerocopy::ConnectionProgress;
use crate::http::zerocopy::LONG_LEN;

/// A response body that records when hyper has received its last frame. It also returns no further frame to hyper while
/// a long frame is unsent.
///
/// Each long frame may be a separate buffer, so a thousand slow clients can hold a thousand buffers. Without the wait,
/// each client could hold several buffers, because hyper accepts frames until it holds 400 KiB or 16 frames. Short
/// frames, such as the text between ranges, are sent together.
pub(super) struct TrackedBody {
    body: Body,
    progress: ConnectionProgress,
    /// Completes when the previous long frame was sent.
    sent: Option<oneshot::Receiver<Infallible>>,
}

impl TrackedBody {
    pub(super) fn new(body: Body, progress: ConnectionProgress) -> Self {
        Self { body, progress, sent: None }
    }

    fn track_frame(&mut self, bytes: Bytes) -> UnsentBytes {
        if bytes.len() < LONG_LEN || self.body.is_end_stream() {
            return UnsentBytes { bytes, _unsent: None };
        }
        let (sender, receiver) = oneshot::channel();
        self.sent = Some(receiver);
        UnsentBytes { bytes, _unsent: Some(sender) }
    }
}

impl HttpBody for TrackedBody {
    type Data = UnsentBytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<UnsentBytes>, axum::Error>>> {
        let this = &mut *self;
        if let Some(receiver) = &mut this.sent {
            // The sender never sends a value. An error means that the frame was sent and dropped.
            let _ = ready!(Pin::new(receiver).poll(context));
            this.sent = None;
        }
        let frame = Pin::new(&mut this.body).poll_frame(context);
        this.progress
            .record_frame_poll(matches!(frame, Poll::Ready(Some(Ok(_)))) && !this.body.is_end_stream());
        let frame = ready!(frame);
        Poll::Ready(frame.map(|frame| frame.map(|frame| frame.map_data(|bytes| this.track_frame(bytes)))))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl Drop for TrackedBody {
    fn drop(&mut self) {
        self.progress.record_response_end();
        self.progress.wake_connection();
    }
}

/// Bytes of a frame. The connection drops them when they are sent.
pub(super) struct UnsentBytes {
    bytes: Bytes,
    _unsent: Option<oneshot::Sender<Infallible>>,
}

impl Buf for UnsentBytes {
    fn remaining(&self) -> usize {
        self.bytes.remaining()
    }

    fn chunk(&self) -> &[u8] {
        self.bytes.chunk()
    }

    fn chunks_vectored<'a>(&'a self, slices: &mut [IoSlice<'a>]) -> usize {
        self.bytes.chunks_vectored(slices)
    }

    fn advance(&mut self, len: usize) {
        self.bytes.advance(len);
    }
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::task::Waker;

    use futures_util::{StreamExt, stream};

    use super::*;

    const LONG: &[u8] = &[7; LONG_LEN];

    fn poll_next(body: &mut TrackedBody) -> Poll<Option<UnsentBytes>> {
        let frame = Pin::new(body).poll_frame(&mut Context::from_waker(Waker::noop()));
        frame.map(|frame| frame.map(|frame| frame.unwrap().into_data().unwrap_or_else(|_| unreachable!())))
    }

    fn tracked_body() -> TrackedBody {
        let frames = [LONG, LONG].map(|bytes| Ok::<_, io::Error>(Bytes::from_static(bytes)));
        TrackedBody::new(Body::from_stream(stream::iter(frames)), ConnectionProgress::new())
    }

    #[test]
    fn next_frame_waits_until_a_long_frame_is_sent() {
        let mut body = tracked_body();
        let Poll::Ready(Some(first)) = poll_next(&mut body) else { panic!("no first frame") };
        assert_eq!(first.chunk(), LONG);
        assert!(poll_next(&mut body).is_pending());
        drop(first);
        let Poll::Ready(Some(second)) = poll_next(&mut body) else { panic!("no second frame") };
        assert_eq!(second.chunk(), LONG);
        drop(second);
        assert!(matches!(poll_next(&mut body), Poll::Ready(None)));
    }

    /// hyper must flush written bytes when no further frame is ready.
    #[test]
    fn has_more_is_false_while_the_next_frame_is_pending() {
        let frames = ["one", "two"].map(|text| Ok::<_, io::Error>(Bytes::from(text)));
        let endless = Body::from_stream(stream::iter(frames).chain(stream::pending()));
        let progress = ConnectionProgress::new();
        let mut body = TrackedBody::new(endless, progress.clone());
        for has_more in [true, true, false] {
            assert_eq!(poll_next(&mut body).is_ready(), has_more);
            assert_eq!(progress.has_more(), has_more);
        }
        let mut body = TrackedBody::new(Body::from("all"), progress.clone());
        assert!(poll_next(&mut body).is_ready() && !progress.has_more());
        let mut body = self::tracked_body();
        body.progress = progress.clone();
        let first = poll_next(&mut body);
        assert!(poll_next(&mut body).is_pending() && progress.has_more());
        drop((first, body));
        assert!(!progress.has_more());
    }

    #[test]
    fn short_frames_are_sent_together() {
        let frames = ["one", "two"].map(|text| Ok::<_, io::Error>(Bytes::from(text)));
        let mut body = TrackedBody::new(Body::from_stream(stream::iter(frames)), ConnectionProgress::new());
        let frames = [poll_next(&mut body), poll_next(&mut body)];
        assert!(frames.iter().all(|frame| matches!(frame, Poll::Ready(Some(_)))));
    }

    #[test]
    fn last_frame_does_not_delay_the_end() {
        let mut body = TrackedBody::new(Body::from("all"), ConnectionProgress::new());
        let frame = poll_next(&mut body);
        assert!(matches!(frame, Poll::Ready(Some(_))) && matches!(poll_next(&mut body), Poll::Ready(None)));
    }
}
