//! The bytes of a base image for one body, without waiting for a disk on the thread that serves connections.
//!
//! For connections whose writes go straight to the kernel, they are slices of the mapped file. Otherwise they are read
//! into [buffers](super::buffers). In both cases they are in memory before a body returns them (see
//! [`residency`](super::residency)).
//!
//! If the file changes while a body is sent, the reader returns an error. While the file is leased, it cannot change.
//! Otherwise its stamp is compared when the answer begins and, for bytes that are read, after each read.

use std::io;
use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use isogen::Extent;

use super::base_file::BaseFile;
use super::body_mode::BodyMode;
use super::buffers::read_span;
use super::file_stamp::FileStamp;
use super::read_ahead::PendingRead;
use super::residency::Residency;

/// The unit in which bytes are brought into memory. With larger units, clients wait longer for bytes that are on disk.
const FRAME_LEN: u64 = 1 << 20;
/// Mapped frames that are in memory are returned together up to this length, for the kernel to take in one write. With
/// writes of one frame, streams of several clients take an eighth more processor time.
const MAPPED_LEN: u64 = 4 << 20;
/// The most bytes of a base image that is being downloaded to wait for at a time.
const DOWNLOADED_LEN: u64 = 32 << 10;
/// The number of bytes after a frame on disk that the kernel is asked to read ahead.
const ANNOUNCED_LEN: u64 = 2 * FRAME_LEN;

/// Reads a base image for one body.
pub(in crate::http) struct BaseReader {
    file: Arc<BaseFile>,
    access: BytesAccess,
    /// The stamp of the file when the answer began; `None` while it is leased.
    stamp: Option<Box<FileStamp>>,
    /// Whether a frame was returned since the stamp was taken.
    has_begun: bool,
    /// The bytes that were last found in memory.
    in_memory: Range<u64>,
}

/// How the bytes are accessed.
enum BytesAccess {
    Mapped(Bytes),
    Read,
    /// The source has no file whose pages could be probed.
    ReadBlocking,
}

/// The next bytes of an extent.
pub(in crate::http) enum NextBytes {
    Ready(Bytes),
    Pending(PendingRead),
}

impl BaseReader {
    /// # Errors
    ///
    /// Returns an error if the file has changed since it was opened.
    #[inline]
    pub(in crate::http) fn new(file: Arc<BaseFile>, mode: BodyMode) -> io::Result<Self> {
        let stamp = file.stamp()?;
        let stamp = (!file.is_leased()).then(|| Box::new(stamp));
        let access = match (mode, file.source().as_file()) {
            (_, None) => BytesAccess::ReadBlocking,
            (BodyMode::Read, _) => BytesAccess::Read,
            (BodyMode::Mapped, _) => file.mapped_bytes().map_or(BytesAccess::Read, BytesAccess::Mapped),
        };
        Ok(Self { file, access, stamp, has_begun: false, in_memory: 0..0 })
    }

    #[inline]
    pub(in crate::http) fn file(&self) -> &Arc<BaseFile> {
        &self.file
    }

    /// Returns the first bytes of an extent, or the read to wait for.
    ///
    /// # Errors
    ///
    /// Returns an error if the file was truncated or changed.
    #[inline]
    pub(in crate::http) fn next_bytes(&mut self, extent: Extent) -> io::Result<NextBytes> {
        let most = match self.access {
            BytesAccess::Mapped(_) => MAPPED_LEN,
            BytesAccess::Read => FRAME_LEN,
            BytesAccess::ReadBlocking => {
                let read =
                    PendingRead::start_span(Arc::clone(&self.file), shorten_extent(extent, DOWNLOADED_LEN));
                return Ok(NextBytes::Pending(read));
            }
        };
        if matches!(self.access, BytesAccess::Mapped(_)) && std::mem::replace(&mut self.has_begun, true) {
            self.require_unchanged()?;
        }
        let known = if self.in_memory.contains(&extent.offset()) {
            shorten_extent(extent, self.in_memory.end.saturating_sub(extent.offset()))
        } else {
            let Some(found) = resident_start(&self.file, extent, most)? else {
                let frame = first_frame(extent);
                let rest = extent.len() - frame.len();
                let next = Extent::new(frame.end(), rest.min(ANNOUNCED_LEN)).filter(|next| !next.is_empty());
                return Ok(NextBytes::Pending(PendingRead::start_read_ahead(
                    Arc::clone(&self.file),
                    frame,
                    next,
                )));
            };
            self.mark_in_memory(found);
            found
        };
        match &self.access {
            BytesAccess::Mapped(mapped) => slice_mapping(mapped, known).map(NextBytes::Ready),
            BytesAccess::Read | BytesAccess::ReadBlocking => {
                let bytes = read_span(self.file.source(), known)?;
                self.require_unchanged()?;
                Ok(NextBytes::Ready(bytes))
            }
        }
    }

    /// Marks an extent as in memory. It is not probed again: some file systems never report it.
    #[inline]
    pub(in crate::http) fn mark_in_memory(&mut self, extent: Extent) {
        self.in_memory = extent.offset()..extent.end();
    }

    /// Returns an error if the file was changed since the answer began.
    #[inline]
    fn require_unchanged(&self) -> io::Result<()> {
        let now = self.file.stamp()?;
        if self.stamp.as_ref().is_none_or(|stamp| stamp.has_same_bytes(&now)) {
            return Ok(());
        }
        Err(io::Error::other(format!("{} was changed while it was sent", self.file.source().name())))
    }
}

/// The part of an extent that is probed and brought into memory at once. Frames of all bodies end at the same offsets,
/// so that bodies share what is known about them.
fn first_frame(extent: Extent) -> Extent {
    shorten_extent(extent, FRAME_LEN - extent.offset() % FRAME_LEN)
}

/// Returns the frames at the beginning of an extent that are in memory, until they have `most` bytes. `None` if the
/// first one is not.
fn resident_start(file: &BaseFile, extent: Extent, most: u64) -> io::Result<Option<Extent>> {
    let mut found = None;
    let mut frame = first_frame(extent);
    while file.residency(frame)? == Residency::InMemory {
        let len = frame.end() - extent.offset();
        found = Some(shorten_extent(extent, len));
        match Extent::new(frame.end(), extent.len() - len) {
            Some(rest) if len < most && !rest.is_empty() => frame = first_frame(rest),
            _ => break,
        }
    }
    Ok(found)
}

/// Returns the beginning of an extent. A shorter extent at the same offset always exists; the whole one would have the
/// same bytes, in a longer frame.
fn shorten_extent(extent: Extent, len: u64) -> Extent {
    Extent::new(extent.offset(), extent.len().min(len)).unwrap_or(extent)
}

/// Returns a slice of the mapping, which has the length that the file had when it was mapped.
fn slice_mapping(mapped: &Bytes, extent: Extent) -> io::Result<Bytes> {
    let bounds = [extent.offset(), extent.end()].map(|at| usize::try_from(at).unwrap_or(usize::MAX));
    let [start, end] = bounds;
    if end > mapped.len() {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(mapped.slice(start..end))
}
