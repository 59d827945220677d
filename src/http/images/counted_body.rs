//! A body that counts the bytes that the connection takes.

use std::io;
use std::pin::Pin;
use std::sync::Weak;
use std::task::{Context, Poll};

use axum::body::{Body, Bytes};
use axum::http::Response;
use hyper::body::{Frame, SizeHint};

use super::trace::Transfer;
use crate::http::content::AnswerBody;
use crate::http::metrics::Meter;
use crate::http::zerocopy::BaseFile;

/// Counts an answer, and its bytes when the connection takes them.
pub(super) fn count(response: Response<AnswerBody>, trace: Option<Transfer>, meter: Meter) -> Response<Body> {
    meter.answered(&response);
    response.map(|body| match body {
        AnswerBody::Plan(_) => Body::new(CountedBody { body, trace, meter }),
        AnswerBody::Error(body) => body,
        AnswerBody::Empty | AnswerBody::EmptyWithoutLength => Body::new(body),
    })
}

/// A body whose bytes are counted when the connection takes them.
pub(crate) struct CountedBody {
    body: AnswerBody,
    trace: Option<Transfer>,
    meter: Meter,
}

impl CountedBody {
    /// Counts an answer with one range, and its bytes when the connection takes them.
    pub(super) fn of_range(body: AnswerBody, trace: Option<Transfer>, meter: Meter) -> Self {
        meter.answered_range();
        Self { body, trace, meter }
    }

    /// Returns the base image whose pages the socket may send.
    pub(in crate::http) fn base_file(&self) -> Option<Weak<BaseFile>> {
        self.body.base_file()
    }
}

impl hyper::body::Body for CountedBody {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        let this = &mut *self;
        let Poll::Ready(frame) = Pin::new(&mut this.body).poll_frame(context) else {
            if let Some(trace) = &mut this.trace {
                trace.waits();
            }
            return Poll::Pending;
        };
        if let Some(Ok(frame)) = &frame {
            this.meter.sent(frame.data_ref().map_or(0, |bytes| bytes.len() as u64));
            if let Some(trace) = &mut this.trace {
                trace.sent(this.body.frame(), this.body.is_end_stream());
            }
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
