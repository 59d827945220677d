//! The body of an answer, streamed out of a plan.
//!
//! Base bytes are slices of the mapped base: they go into hyper's vectored write as they are, and only the kernel looks at
//! them. Where they are encrypted on the way, or where a base cannot be mapped, they are read into buffers of a pool. In
//! both cases they are in memory before they are asked for on the runtime (see [`Read`]).
//!
//! A base that changes under a body ends that body with an error. hyper then closes the connection, and the client sees
//! that bytes are missing: nothing is ever made up in their place. While the base is [leased](isogen::Source::protect), it cannot change.
//! Otherwise its stamp is compared when the answer begins and, for bytes that are read, after each read. A server that gives the kernel
//! pages of the file instead of copies must prevent changes of those on their way.

use std::io;
use std::ops::Range;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use axum::body::Bytes;
use hyper::body::{Body, Frame, SizeHint};
use isogen::{Extent, FileStamp, Plan, Residency, Segment, Source};

use crate::http::zerocopy::{BodyMode, Done, Read, read_span};

/// The unit in which bytes are brought into memory: larger ones make clients wait longer for cold ones.
const FRAME_LEN: u64 = 1 << 20;
/// Mapped frames that are in memory are given away together until there are so many bytes, for the kernel to take in one write.
/// With writes of one frame, streams of several clients take an eighth more of the processor.
const MAPPED_LEN: u64 = 4 << 20;
/// How much of what is still coming is waited for at a time.
const AWAITED_LEN: u64 = 32 << 10;
/// How far behind a cold frame the kernel is told to read.
const ANNOUNCED_LEN: u64 = 2 * FRAME_LEN;
/// Zeros, for all segments of them. Short enough to stay in a cache of the processor.
static ZEROS: [u8; 64 << 10] = [0; 64 << 10];

/// Something to send.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Piece {
    /// A range of the plan.
    Range(Range<u64>),
    /// Text between ranges.
    Text(Bytes),
}

impl Piece {
    /// The range of the plan, if it is one.
    pub(super) fn range(&self) -> Option<&Range<u64>> {
        match self {
            Self::Range(range) => Some(range),
            Self::Text(_) => None,
        }
    }

    /// The number of bytes.
    pub(super) fn len(&self) -> u64 {
        match self {
            Self::Range(range) => len(range),
            Self::Text(text) => text.len() as u64,
        }
    }
}

fn len(range: &Range<u64>) -> u64 {
    range.end.saturating_sub(range.start)
}

/// A body of pieces of a plan.
pub(crate) struct PlanBody {
    plan: Arc<Plan>,
    pieces: std::vec::IntoIter<Piece>,
    /// The rest of the range that is being sent.
    current: Range<u64>,
    /// What is not sent yet, of all.
    left: u64,
    /// What the last frame was, of the plan.
    frame: Range<u64>,
    base: Base,
    read: Option<Read>,
}

/// How the base is read for a body.
struct Base {
    way: Way,
    /// The stamp of the file when the answer began; none while it is leased.
    stamp: Option<Box<FileStamp>>,
    /// Whether a frame was sent since the stamp was taken.
    is_begun: bool,
    /// What was found to be in memory last, for all that is read out of it.
    in_memory: Range<u64>,
}

enum Way {
    Mapped(Bytes),
    Read,
    /// There is no file, and nobody knows how long a read takes.
    ReadBeside,
}

/// The next step of a body.
enum Next {
    Bytes(Bytes),
    Wait(Read),
}

impl PlanBody {
    /// A body of one range.
    ///
    /// # Errors
    ///
    /// Fails where the base is not what it was when it was opened.
    pub(crate) fn of_range(plan: Arc<Plan>, range: Range<u64>, mode: BodyMode) -> io::Result<Self> {
        Self::of(plan, (range, Vec::new()), mode)
    }

    /// A body of these pieces.
    ///
    /// # Errors
    ///
    /// Fails where the base is not what it was when it was opened.
    pub(super) fn new(plan: Arc<Plan>, pieces: Vec<Piece>, mode: BodyMode) -> io::Result<Self> {
        Self::of(plan, (0..0, pieces), mode)
    }

    fn of(plan: Arc<Plan>, (current, pieces): (Range<u64>, Vec<Piece>), mode: BodyMode) -> io::Result<Self> {
        let source = plan.source();
        let stamp = source.stamp()?;
        let stamp = (!source.is_leased()).then(|| Box::new(stamp));
        let way = match (mode, source.as_file()) {
            (_, None) => Way::ReadBeside,
            (BodyMode::Read, _) => Way::Read,
            (BodyMode::Mapped, _) => source.mapped().map_or(Way::Read, Way::Mapped),
        };
        let left = len(&current) + pieces.iter().map(Piece::len).sum::<u64>();
        let base = Base { way, stamp, is_begun: false, in_memory: 0..0 };
        Ok(Self { plan, pieces: pieces.into_iter(), current, left, frame: 0..0, base, read: None })
    }

    /// How many bytes are not sent yet.
    pub(super) fn left(&self) -> u64 {
        self.left
    }

    /// The bytes of the plan that it sends, from the first to the last, before any of them are sent.
    pub(super) fn span(&self) -> Option<Range<u64>> {
        let pieces = self.pieces.as_slice().iter().filter_map(Piece::range);
        let ranges =
            || std::iter::once(&self.current).chain(pieces.clone()).filter(|range| !range.is_empty());
        let first = ranges().map(|range| range.start).min()?;
        let end = ranges().map(|range| range.end).max()?;
        Some(first..end)
    }

    /// The bytes of the plan that the last frame had: none, where it was text between ranges.
    pub(super) fn frame(&self) -> Range<u64> {
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
                    Ok(Done::Bytes(bytes)) => return Poll::Ready(Some(Ok(self.sent(bytes)))),
                    // Not asked again: some file systems do not tell, ever.
                    Ok(Done::InMemory(span)) => self.base.in_memory = span.offset()..span.end(),
                    Err(error) => return Poll::Ready(Some(Err(error))),
                }
            }
            match self.next() {
                Ok(Next::Bytes(bytes)) => return Poll::Ready(Some(Ok(bytes))),
                Ok(Next::Wait(read)) => self.read = Some(read),
                Err(error) => return Poll::Ready(Some(Err(error))),
            }
        }
    }

    fn next(&mut self) -> io::Result<Next> {
        while self.current.is_empty() {
            match self.pieces.next() {
                Some(Piece::Range(range)) => self.current = range,
                Some(Piece::Text(text)) => {
                    self.left = self.left.saturating_sub(text.len() as u64);
                    self.frame = 0..0;
                    return Ok(Next::Bytes(text));
                }
                None => return Err(io::ErrorKind::UnexpectedEof.into()),
            }
        }
        let segment = self.plan.segments(self.current.clone()).next();
        match segment.ok_or(io::ErrorKind::UnexpectedEof)? {
            Segment::Bytes(bytes) => Ok(Next::Bytes(self.sent(bytes))),
            Segment::Zero(len) => {
                let len = usize::try_from(len).map_or(ZEROS.len(), |len| len.min(ZEROS.len()));
                let zeros = ZEROS.get(..len).unwrap_or_default();
                Ok(Next::Bytes(self.sent(Bytes::from_static(zeros))))
            }
            Segment::Base(extent) => match self.base.next(self.plan.source(), extent)? {
                Next::Bytes(bytes) => Ok(Next::Bytes(self.sent(bytes))),
                wait @ Next::Wait(_) => Ok(wait),
            },
        }
    }

    /// Counts bytes of the current range.
    fn sent(&mut self, bytes: Bytes) -> Bytes {
        let len = bytes.len() as u64;
        let start = self.current.start;
        self.current.start = start.saturating_add(len);
        self.frame = start..self.current.start;
        self.left = self.left.saturating_sub(len);
        bytes
    }
}

impl Base {
    /// The first bytes of an extent, or what has to be waited for before there are any.
    fn next(&mut self, source: &Arc<Source>, extent: Extent) -> io::Result<Next> {
        let most = match self.way {
            Way::Mapped(_) => MAPPED_LEN,
            Way::Read => FRAME_LEN,
            Way::ReadBeside => return Ok(Next::Wait(Read::of(Arc::clone(source), cut(extent, AWAITED_LEN)))),
        };
        if matches!(self.way, Way::Mapped(_)) && std::mem::replace(&mut self.is_begun, true) {
            self.require_unchanged(source)?;
        }
        let known = if self.in_memory.contains(&extent.offset()) {
            cut(extent, self.in_memory.end.saturating_sub(extent.offset()))
        } else {
            let Some(found) = beginning_in_memory(source, extent, most)? else {
                let frame = first_frame(extent);
                let rest = extent.len() - frame.len();
                let next = Extent::new(frame.end(), rest.min(ANNOUNCED_LEN)).filter(|next| !next.is_empty());
                return Ok(Next::Wait(Read::ahead(Arc::clone(source), frame, next)));
            };
            self.in_memory = found.offset()..found.end();
            found
        };
        match &self.way {
            Way::Mapped(mapped) => slice(mapped, known).map(Next::Bytes),
            Way::Read | Way::ReadBeside => {
                let bytes = read_span(source, known)?;
                self.require_unchanged(source)?;
                Ok(Next::Bytes(bytes))
            }
        }
    }

    /// Returns an error if the base was changed since the answer began.
    fn require_unchanged(&self, source: &Source) -> io::Result<()> {
        let now = source.stamp()?;
        if self.stamp.as_ref().is_none_or(|stamp| stamp.holds(&now)) {
            return Ok(());
        }
        Err(io::Error::other(format!("{} was changed while it was sent", source.name())))
    }
}

/// What of an extent is looked at and brought into memory at once. Frames end where those of others do, so that they share what
/// is known about them.
fn first_frame(extent: Extent) -> Extent {
    cut(extent, FRAME_LEN - extent.offset() % FRAME_LEN)
}

/// The frames at the beginning of an extent that are in memory, until they are so many bytes: `None` where the first one is not.
fn beginning_in_memory(source: &Source, extent: Extent, most: u64) -> io::Result<Option<Extent>> {
    let mut found = None;
    let mut frame = first_frame(extent);
    while source.residency(frame)? == Residency::InMemory {
        let len = frame.end() - extent.offset();
        found = Some(cut(extent, len));
        match Extent::new(frame.end(), extent.len() - len) {
            Some(rest) if len < most && !rest.is_empty() => frame = first_frame(rest),
            _ => break,
        }
    }
    Ok(found)
}

/// The beginning of an extent.
fn cut(extent: Extent, len: u64) -> Extent {
    Extent::new(extent.offset(), extent.len().min(len)).unwrap_or(extent)
}

/// A slice of the mapped base, which was mapped with the length that the file had then.
fn slice(mapped: &Bytes, extent: Extent) -> io::Result<Bytes> {
    let bounds = [extent.offset(), extent.end()].map(|at| usize::try_from(at).unwrap_or(usize::MAX));
    let [start, end] = bounds;
    if end > mapped.len() {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(mapped.slice(start..end))
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
            tracing::error!(source, offset, left, %error, "an image could not be sent to its end");
            // The log has it once.
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
    /// The kernel is the first to see a base that became shorter under a write. hyper says so of the connection only.
    fn drop(&mut self) {
        if self.left == 0 {
            return;
        }
        let source = self.plan.source();
        match source.stamp() {
            Err(error) => {
                tracing::error!(source = source.name(), left = self.left, %error, "an image could not be sent to its end");
            }
            Ok(_) => tracing::debug!(
                source = source.name(),
                left = self.left,
                "an image was not wanted to its end"
            ),
        }
    }
}
