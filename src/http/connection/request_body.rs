//! Reads and discards the rest of a request body that its handler has not read.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::Bytes;
use axum::http::header;
use http_body_util::BodyExt;
use hyper::Request;
use hyper::body::{Body, Frame, Incoming, SizeHint};
use tokio::runtime::Handle;

use crate::http::zerocopy::ConnectionProgress;

/// Maximum number of bytes to discard. No operation except the upload of logs accepts more than half of this.
const MAX_DISCARDED: usize = 64 << 20;
/// Maximum time for discarding the rest of a body.
const PATIENCE: Duration = Duration::from_secs(30);

/// A request body, read to its end even if its handler stops earlier. Otherwise, a client that is still sending
/// its request would see a broken connection instead of the refusal.
#[derive(Debug)]
pub(super) struct DrainedBody {
    body: Option<Incoming>,
    is_awaited: bool,
    progress: ConnectionProgress,
}

impl DrainedBody {
    pub(super) fn wrap_request(request: Request<Incoming>, progress: ConnectionProgress) -> Request<Self> {
        // A client with `Expect: 100-continue` sends no body before it receives `100 Continue`. If it receives the
        // final response instead, there is no body to discard.
        let is_awaited = !request.headers().contains_key(header::EXPECT);
        request.map(|body| Self { body: Some(body), is_awaited, progress })
    }
}

impl Body for DrainedBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let Some(body) = &mut self.body else { return Poll::Ready(None) };
        let frame = Pin::new(body).poll_frame(context);
        match frame {
            Poll::Pending => self.progress.record_body_wait(),
            Poll::Ready(_) => self.progress.record_request(),
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

impl Drop for DrainedBody {
    fn drop(&mut self) {
        self.progress.end_body_wait();
        let rest = self.body.take().filter(|body| self.is_awaited && !body.is_end_stream());
        if let (Some(rest), Ok(runtime)) = (rest, Handle::try_current()) {
            runtime.spawn(tokio::time::timeout(PATIENCE, discard_body(rest)));
        }
    }
}

async fn discard_body(mut body: Incoming) {
    let mut bytes = 0_usize;
    while let Some(Ok(frame)) = body.frame().await {
        bytes = bytes.saturating_add(frame.data_ref().map_or(0, Bytes::len));
        if bytes > MAX_DISCARDED {
            break;
        }
    }
}
