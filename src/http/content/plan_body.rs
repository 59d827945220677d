//! The body of a response with one or more ranges of a plan, and multipart text between them.
//!
//! If the base image changes while the body is sent, the body ends with an error. hyper then closes the connection, so
//! the client notices that bytes are missing. The server never sends other bytes instead.

use std::io;
use std::ops::Range;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use axum::body::Bytes;
use discovery::representation::BodyPiece;
use hyper::body::{Body, Frame, SizeHint};
use isogen::{Plan, Segment};

use crate::base_files::BaseFile;
use crate::http::zerocopy::{BaseReader, BodyMode, NextBytes, PendingRead, ReadDone};

/// The source of all zero segments. It is short enough for the CPU cache.
static ZEROS: [u8; 64 << 10] = [0; 64 << 10];

fn range_len(range: &Range<u64>) -> u64 {
    range.end.saturating_sub(range.start)
}

/// A response body that sends ranges of a plan and multipart text.
pub(crate) struct PlanBody {
    plan: Arc<Plan>,
    pieces: std::vec::IntoIter<BodyPiece>,
    /// The unsent part of the current range.
    current: Range<u64>,
    left: u64,
    /// The position of the last returned frame in the plan.
    frame: Range<u64>,
    base: BaseReader,
    read: Option<PendingRead>,
}

impl PlanBody {
    /// Creates the body for one range of a plan.
    ///
    /// # Errors
    ///
    /// Returns an error if the base image changed after it was opened.
    pub(crate) fn from_range(
        (plan, base): (Arc<Plan>, Arc<BaseFile>),
        range: Range<u64>,
        mode: BodyMode,
    ) -> io::Result<Self> {
        Self::new((plan, base), (range, Vec::new()), mode)
    }

    /// Creates the body for several pieces: ranges and multipart text.
    ///
    /// # Errors
    ///
    /// Returns an error if the base image changed after it was opened.
    pub(super) fn from_pieces(
        (plan, base): (Arc<Plan>, Arc<BaseFile>),
        pieces: Vec<BodyPiece>,
        mode: BodyMode,
    ) -> io::Result<Self> {
        Self::new((plan, base), (0..0, pieces), mode)
    }

    fn new(
        (plan, base): (Arc<Plan>, Arc<BaseFile>),
        (current, pieces): (Range<u64>, Vec<BodyPiece>),
        mode: BodyMode,
    ) -> io::Result<Self> {
        let base = BaseReader::new(base, mode)?;
        let left = range_len(&current) + pieces.iter().map(BodyPiece::len).sum::<u64>();
        Ok(Self { plan, pieces: pieces.into_iter(), current, left, frame: 0..0, base, read: None })
    }

    pub(super) fn base_file(&self) -> &Arc<BaseFile> {
        self.base.file()
    }

    /// Returns the number of unsent bytes.
    pub(super) fn remaining_len(&self) -> u64 {
        self.left
    }

    /// Returns the part of the plan from the first to the last byte of the body. Call this before any byte is sent.
    pub(super) fn byte_span(&self) -> Option<Range<u64>> {
        let pieces = self.pieces.as_slice().iter().filter_map(BodyPiece::range);
        let ranges =
            || std::iter::once(&self.current).chain(pieces.clone()).filter(|range| !range.is_empty());
        let first = ranges().map(|range| range.start).min()?;
        let end = ranges().map(|range| range.end).max()?;
        Some(first..end)
    }

    /// Returns the position of the last returned frame in the plan. The range is empty if the frame is multipart text.
    pub(super) fn last_frame(&self) -> Range<u64> {
        self.frame.clone()
    }

    fn poll_bytes(&mut self, context: &mut Context<'_>) -> Poll<Option<io::Result<Bytes>>> {
        if self.left == 0 {
            return Poll::Ready(None);
        }
        loop {
            if let Some(read) = &mut self.read {
                let done = ready!(read.poll(context));
                self.read = None;
                match done {
                    Ok(ReadDone::Bytes(bytes)) => return Poll::Ready(Some(Ok(self.advance(bytes)))),
                    Ok(ReadDone::InMemory(span)) => self.base.mark_in_memory(span),
                    Err(error) => return Poll::Ready(Some(Err(error))),
                }
            }
            match self.next_bytes() {
                Ok(NextBytes::Ready(bytes)) => return Poll::Ready(Some(Ok(bytes))),
                Ok(NextBytes::Pending(read)) => self.read = Some(read),
                Err(error) => return Poll::Ready(Some(Err(error))),
            }
        }
    }

    fn next_bytes(&mut self) -> io::Result<NextBytes> {
        while self.current.is_empty() {
            match self.pieces.next() {
                Some(BodyPiece::Range(range)) => self.current = range,
                Some(BodyPiece::Text(text)) => {
                    self.left = self.left.saturating_sub(text.len() as u64);
                    self.frame = 0..0;
                    return Ok(NextBytes::Ready(text));
                }
                None => return Err(io::ErrorKind::UnexpectedEof.into()),
            }
        }
        let segment = self.plan.segments(self.current.clone()).next();
        match segment.ok_or(io::ErrorKind::UnexpectedEof)? {
            Segment::Bytes(bytes) => Ok(NextBytes::Ready(self.advance(bytes))),
            Segment::Zero(len) => {
                // A longer segment is sent in several frames.
                let zeros = usize::try_from(len).ok().and_then(|len| ZEROS.get(..len)).unwrap_or(&ZEROS);
                Ok(NextBytes::Ready(self.advance(Bytes::from_static(zeros))))
            }
            Segment::Base(extent) => match self.base.next_bytes(extent)? {
                NextBytes::Ready(bytes) => Ok(NextBytes::Ready(self.advance(bytes))),
                pending @ NextBytes::Pending(_) => Ok(pending),
            },
        }
    }

    /// Removes `bytes` from the start of the current range, and returns them.
    fn advance(&mut self, bytes: Bytes) -> Bytes {
        let len = bytes.len() as u64;
        let start = self.current.start;
        self.current.start = start.saturating_add(len);
        self.frame = start..self.current.start;
        self.left = self.left.saturating_sub(len);
        bytes
    }
}

impl Body for PlanBody {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        let polled = ready!(self.poll_bytes(context));
        if let Some(Err(error)) = &polled {
            let source = self.plan.source().name();
            let (offset, left) = (self.current.start, self.left);
            tracing::error!(source, offset, left, %error, "download aborted: base image unusable");
            // Prevent `drop` from logging the error again.
            self.left = 0;
        }
        Poll::Ready(polled.map(|bytes| bytes.map(Frame::data)))
    }

    fn is_end_stream(&self) -> bool {
        self.left == 0
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left)
    }
}

impl Drop for PlanBody {
    /// Logs why a base image could not be sent. If the file was truncated during a write, hyper reports only a failed
    /// connection, so this function checks the stamp of the file.
    fn drop(&mut self) {
        if self.left == 0 {
            return;
        }
        let (source, left) = (self.plan.source().name(), self.left);
        match self.base.file().stamp() {
            Err(error) => tracing::error!(source, left, %error, "download aborted: base image unusable"),
            Ok(_) => tracing::debug!(source, left, "client did not read the whole response"),
        }
    }
}
