//! A response body that counts the bytes passed to the connection.

use std::io;
use std::ops::Range;
use std::pin::Pin;
use std::sync::Weak;
use std::task::{Context, Poll};

use axum::body::{Body, Bytes};
use axum::http::Response;
use hyper::body::{Frame, SizeHint};

use super::boot_trace::TracedTransfer;
use super::download_log::DownloadLog;
use crate::base_files::BaseFile;
use crate::http::content::AnswerBody;
use crate::http::metrics::FileMeter;

/// The recorders of one response, for the boot trace and for the log.
#[derive(Debug, Default)]
pub(super) struct TransferRecords {
    pub(super) trace: Option<TracedTransfer>,
    pub(super) log: Option<DownloadLog>,
}

impl TransferRecords {
    /// Records that the connection waits for the next bytes of the body.
    fn record_wait(&mut self) {
        if let Some(trace) = &mut self.trace {
            trace.record_wait();
        }
    }

    /// Records that the body returned a range of bytes to the connection. `is_over` is `true` for the last range.
    fn record_sent(&mut self, range: Range<u64>, is_over: bool) {
        if let Some(log) = &mut self.log {
            log.record_sent(range.end.saturating_sub(range.start));
        }
        if let Some(trace) = &mut self.trace {
            trace.record_sent(range, is_over);
        }
    }
}

/// Counts a response, and its bytes as the connection takes them.
pub(super) fn count_response(
    response: Response<AnswerBody>,
    records: TransferRecords,
    meter: FileMeter,
) -> Response<Body> {
    meter.count_head(&response);
    response.map(|body| match body {
        AnswerBody::Plan(_) => Body::new(CountedBody { body, records, meter }),
        AnswerBody::Error(body) => body,
        AnswerBody::Empty | AnswerBody::EmptyWithoutLength => Body::new(body),
    })
}

/// A body that counts its bytes as the connection takes them.
pub(crate) struct CountedBody {
    body: AnswerBody,
    records: TransferRecords,
    meter: FileMeter,
}

impl CountedBody {
    /// Counts a response with one range, and its bytes as the connection takes them.
    pub(super) fn from_range(body: AnswerBody, records: TransferRecords, meter: FileMeter) -> Self {
        meter.count_range_head();
        Self { body, records, meter }
    }

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
            this.records.record_wait();
            return Poll::Pending;
        };
        if let Some(Ok(frame)) = &frame {
            this.meter.count_sent(frame.data_ref().map_or(0, |bytes| bytes.len() as u64));
            this.records.record_sent(this.body.last_frame(), this.body.is_end_stream());
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
