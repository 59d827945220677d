//! A body that counts the bytes that the connection takes.

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

/// The records of an answer: in the boot trace and in the log.
#[derive(Debug, Default)]
pub(super) struct TransferRecords {
    pub(super) trace: Option<TracedTransfer>,
    pub(super) log: Option<DownloadLog>,
}

impl TransferRecords {
    /// Records that the connection has to wait for the next bytes.
    fn record_wait(&mut self) {
        if let Some(trace) = &mut self.trace {
            trace.record_wait();
        }
    }

    /// Records that bytes were handed to the connection, and whether they were the last ones.
    fn record_sent(&mut self, range: Range<u64>, is_over: bool) {
        if let Some(log) = &mut self.log {
            log.record_sent(range.end.saturating_sub(range.start));
        }
        if let Some(trace) = &mut self.trace {
            trace.record_sent(range, is_over);
        }
    }
}

/// Counts an answer, and its bytes when the connection takes them.
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

/// A body whose bytes are counted when the connection takes them.
pub(crate) struct CountedBody {
    body: AnswerBody,
    records: TransferRecords,
    meter: FileMeter,
}

impl CountedBody {
    /// Counts an answer with one range, and its bytes when the connection takes them.
    pub(super) fn from_range(body: AnswerBody, records: TransferRecords, meter: FileMeter) -> Self {
        meter.count_range_head();
        Self { body, records, meter }
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
