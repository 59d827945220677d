//! The body of a request that nobody wants to the end.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::Bytes;
use axum::http::header;
use http_body_util::BodyExt;
use hyper::Request;
use hyper::body::{Body, Frame, Incoming, SizeHint};
use tokio::runtime::Handle;

use crate::http::zerocopy::Progress;

/// The most bytes that are thrown away: twice what any operation but the upload of logs takes.
const MAX_THROWN_AWAY: usize = 64 << 20;
/// How long that may take.
const PATIENCE: Duration = Duration::from_secs(30);

/// A body that is read to its end also when its reader has enough. A client that is still sending when it is refused would
/// not see the refusal otherwise, but a broken connection.
#[derive(Debug)]
pub(super) struct Finished {
    body: Option<Incoming>,
    is_awaited: bool,
    progress: Progress,
}

impl Finished {
    /// Wraps the body of a request.
    pub(super) fn of(request: Request<Incoming>, progress: Progress) -> Request<Self> {
        // Whoever waits for a word before the body has nothing under way, and takes the answer for that word.
        let is_awaited = !request.headers().contains_key(header::EXPECT);
        request.map(|body| Self { body: Some(body), is_awaited, progress })
    }
}

impl Body for Finished {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let Some(body) = &mut self.body else { return Poll::Ready(None) };
        let frame = Pin::new(body).poll_frame(context);
        match frame {
            Poll::Pending => self.progress.waits_for_body(),
            Poll::Ready(_) => self.progress.asked(),
        }
        frame
    }

    fn is_end_stream(&self) -> bool {
        self.body.as_ref().is_none_or(Body::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        self.body.as_ref().map(Body::size_hint).unwrap_or_default()
    }
}

impl Drop for Finished {
    fn drop(&mut self) {
        self.progress.has_enough();
        let rest = self.body.take().filter(|body| self.is_awaited && !body.is_end_stream());
        if let (Some(rest), Ok(runtime)) = (rest, Handle::try_current()) {
            runtime.spawn(tokio::time::timeout(PATIENCE, throw_away(rest)));
        }
    }
}

async fn throw_away(mut body: Incoming) {
    let mut bytes = 0_usize;
    while let Some(Ok(frame)) = body.frame().await {
        bytes = bytes.saturating_add(frame.data_ref().map_or(0, Bytes::len));
        if bytes > MAX_THROWN_AWAY {
            break;
        }
    }
}
