//! The body of an answer, on its way through a connection.

use std::convert::Infallible;
use std::io::IoSlice;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use axum::body::{Body, Bytes};
use hyper::body::{Body as HttpBody, Buf, Frame, SizeHint};
use tokio::sync::oneshot;

use crate::http::zerocopy::LONG_LEN;
use crate::http::zerocopy::Progress;

/// A body that tells when the last of it was handed over, and that gives a frame when the long one before it is sent: each may be a
/// buffer of this connection alone, and a thousand slow readers have a thousand of them. hyper would take another whenever it has less
/// than 400 KiB left, or 16 frames: short ones, as between ranges, go out together.
pub(super) struct Followed {
    body: Body,
    progress: Progress,
    /// Ready when the last long frame is sent.
    sent: Option<oneshot::Receiver<Infallible>>,
}

impl Followed {
    pub(super) fn new(body: Body, progress: Progress) -> Self {
        Self { body, progress, sent: None }
    }

    fn hand_over(&mut self, bytes: Bytes) -> Handed {
        if bytes.len() < LONG_LEN || self.body.is_end_stream() {
            return Handed { bytes, _unsent: None };
        }
        let (unsent, sent) = oneshot::channel();
        self.sent = Some(sent);
        Handed { bytes, _unsent: Some(unsent) }
    }
}

impl HttpBody for Followed {
    type Data = Handed;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Handed>, axum::Error>>> {
        let this = &mut *self;
        if let Some(sent) = &mut this.sent {
            // Nothing is ever said but that the other side is gone.
            let _ = ready!(Pin::new(sent).poll(context));
            this.sent = None;
        }
        let frame = Pin::new(&mut this.body).poll_frame(context);
        this.progress.goes_on(matches!(frame, Poll::Ready(Some(Ok(_)))) && !this.body.is_end_stream());
        let frame = ready!(frame);
        Poll::Ready(frame.map(|frame| frame.map(|frame| frame.map_data(|bytes| this.hand_over(bytes)))))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl Drop for Followed {
    fn drop(&mut self) {
        self.progress.answered();
    }
}

/// Bytes that the connection has, until it has sent them.
pub(super) struct Handed {
    bytes: Bytes,
    _unsent: Option<oneshot::Sender<Infallible>>,
}

impl Buf for Handed {
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

    fn next(body: &mut Followed) -> Poll<Option<Handed>> {
        let frame = Pin::new(body).poll_frame(&mut Context::from_waker(Waker::noop()));
        frame.map(|frame| frame.map(|frame| frame.unwrap().into_data().unwrap_or_else(|_| unreachable!())))
    }

    fn body() -> Followed {
        let frames = [LONG, LONG].map(|bytes| Ok::<_, io::Error>(Bytes::from_static(bytes)));
        Followed::new(Body::from_stream(stream::iter(frames)), Progress::new())
    }

    #[test]
    fn a_frame_is_given_when_the_long_one_before_it_is_sent() {
        let mut body = body();
        let Poll::Ready(Some(first)) = next(&mut body) else { panic!("no first frame") };
        assert_eq!(first.chunk(), LONG);
        assert!(next(&mut body).is_pending());
        drop(first);
        let Poll::Ready(Some(second)) = next(&mut body) else { panic!("no second frame") };
        assert_eq!(second.chunk(), LONG);
        drop(second);
        assert!(matches!(next(&mut body), Poll::Ready(None)));
    }

    /// What was written has to be flushed as soon as there is no more.
    #[test]
    fn more_follows_as_long_as_nobody_waits_for_it() {
        let frames = ["one", "two"].map(|text| Ok::<_, io::Error>(Bytes::from(text)));
        let endless = Body::from_stream(stream::iter(frames).chain(stream::pending()));
        let progress = Progress::new();
        let mut body = Followed::new(endless, progress.clone());
        for has_more in [true, true, false] {
            assert_eq!(next(&mut body).is_ready(), has_more);
            assert_eq!(progress.has_more(), has_more);
        }
        let mut body = Followed::new(Body::from("all"), progress.clone());
        assert!(next(&mut body).is_ready() && !progress.has_more());
        let mut body = self::body();
        body.progress = progress.clone();
        let first = next(&mut body);
        assert!(next(&mut body).is_pending() && progress.has_more());
        drop((first, body));
        assert!(!progress.has_more());
    }

    #[test]
    fn short_frames_go_out_together() {
        let frames = ["one", "two"].map(|text| Ok::<_, io::Error>(Bytes::from(text)));
        let mut body = Followed::new(Body::from_stream(stream::iter(frames)), Progress::new());
        let frames = [next(&mut body), next(&mut body)];
        assert!(frames.iter().all(|frame| matches!(frame, Poll::Ready(Some(_)))));
    }

    #[test]
    fn the_last_frame_is_followed_by_the_end_at_once() {
        let mut body = Followed::new(Body::from("all"), Progress::new());
        let frame = next(&mut body);
        assert!(matches!(frame, Poll::Ready(Some(_))) && matches!(next(&mut body), Poll::Ready(None)));
    }
}
