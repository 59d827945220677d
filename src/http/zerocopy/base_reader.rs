//! Reads the base image for one response body. Connection threads never wait for a disk.
//!
//! If writes go directly to the kernel, the bytes are slices of the mapped file. Otherwise, they are read into
//! [buffers](super::buffers). In both cases, they are in memory before the body returns them (see [`Residency`]).
//!
//! If the file changes while the body is sent, the reader returns an error. A leased file cannot change. The reader
//! compares the [`FileStamp`] of any other file at the start of the response, and after each read into buffers.
//!
//! If another file has replaced the base image's file, the body waits until the old file is hashed again.

use std::io;
use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use isogen::Extent;

use super::body_mode::BodyMode;
use super::buffers::read_span;
use super::read_ahead::PendingRead;
use crate::base_files::{BaseFile, Residency};
use isogen::FileStamp;

/// The unit for reading bytes into memory. With larger units, clients wait longer for bytes that are on disk.
const FRAME_LEN: u64 = 1 << 20;
/// Maximum length of a slice of the mapping for one write. Several frames in memory are combined up to
/// this length. With writes of one frame each, downloads of several clients take an eighth more CPU time.
const MAPPED_LEN: u64 = 4 << 20;
/// Maximum number of bytes after a frame on disk for the kernel to read ahead.
const ANNOUNCED_LEN: u64 = 2 * FRAME_LEN;

pub(in crate::http) struct BaseReader {
    file: Arc<BaseFile>,
    access: BytesAccess,
    /// The stamp of the file at the start of the response. `None` if the file itself checks its stamp or is leased.
    stamp: Option<Box<FileStamp>>,
    /// Whether a frame was returned after `stamp` was read.
    has_begun: bool,
    /// The last bytes for which a probe or a read has shown that they are in memory.
    in_memory: Range<u64>,
}

enum BytesAccess {
    Mapped(Bytes),
    Read,
    /// Every read runs on a blocking thread, because the source has no file whose pages could be probed.
    ReadBlocking,
}

/// The next bytes of an extent, or the read that must finish first.
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
        let stamp = match file.stamp() {
            Err(error) if !file.needs_rehash() => return Err(error),
            Ok(stamp) if !file.is_leased() && !file.is_stamp_required() => Some(Box::new(stamp)),
            _ => None,
        };
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
        let max_len = match self.access {
            BytesAccess::Mapped(_) => MAPPED_LEN,
            BytesAccess::Read => FRAME_LEN,
            BytesAccess::ReadBlocking => {
                return Ok(NextBytes::Pending(PendingRead::start_span(Arc::clone(&self.file), extent)));
            }
        };
        if matches!(self.access, BytesAccess::Mapped(_)) && std::mem::replace(&mut self.has_begun, true) {
            self.require_unchanged()?;
        }
        let resident = if self.in_memory.contains(&extent.offset()) {
            shorten_extent(extent, self.in_memory.end.saturating_sub(extent.offset()))
        } else {
            let Some(resident) = resident_start(&self.file, extent, max_len)? else {
                let frame = first_frame(extent);
                let rest = extent.len() - frame.len();
                let next = Extent::new(frame.end(), rest.min(ANNOUNCED_LEN)).filter(|next| !next.is_empty());
                return Ok(NextBytes::Pending(PendingRead::start_read_ahead(
                    Arc::clone(&self.file),
                    frame,
                    next,
                )));
            };
            self.mark_in_memory(resident);
            resident
        };
        match &self.access {
            BytesAccess::Mapped(mapped) => slice_mapping(mapped, resident).map(NextBytes::Ready),
            BytesAccess::Read | BytesAccess::ReadBlocking => {
                let bytes = read_span(self.file.source(), resident)?;
                match self.require_unchanged() {
                    Ok(()) => Ok(NextBytes::Ready(bytes)),
                    Err(_) if self.file.needs_rehash() => {
                        Ok(NextBytes::Pending(PendingRead::start_rehash(Arc::clone(&self.file), resident)))
                    }
                    Err(error) => Err(error),
                }
            }
        }
    }

    /// Marks an extent as in memory, so that it is not probed again. Some file systems never report pages in memory.
    #[inline]
    pub(in crate::http) fn mark_in_memory(&mut self, extent: Extent) {
        self.in_memory = extent.offset()..extent.end();
    }

    /// Returns an error if the file has changed since the start of the response. For a file without a required stamp,
    /// which was never hashed, removing its last name does not count as a change.
    #[inline]
    fn require_unchanged(&mut self) -> io::Result<()> {
        let now = self.file.stamp()?;
        let Some(stamp) = self.stamp.as_deref_mut().filter(|stamp| **stamp != now) else { return Ok(()) };
        if !stamp.has_lost_last_name(&now) {
            let name = self.file.source().name();
            return Err(io::Error::other(format!("{name} was changed while it was sent")));
        }
        *stamp = now;
        Ok(())
    }
}

/// Returns the first frame of an extent. The reader probes and reads one frame at a time. The frames of all bodies end
/// at the same offsets, so that the bodies share the results of probes.
fn first_frame(extent: Extent) -> Extent {
    shorten_extent(extent, FRAME_LEN - extent.offset() % FRAME_LEN)
}

/// Returns the frames at the start of an extent that are in memory, up to the frame that reaches `max_len`. Returns
/// `None` if the first frame is not in memory.
fn resident_start(file: &BaseFile, extent: Extent, max_len: u64) -> io::Result<Option<Extent>> {
    let mut resident = None;
    let mut frame = first_frame(extent);
    while file.residency(frame)? == Residency::InMemory {
        let len = frame.end() - extent.offset();
        resident = Some(shorten_extent(extent, len));
        match Extent::new(frame.end(), extent.len() - len) {
            Some(rest) if len < max_len && !rest.is_empty() => frame = first_frame(rest),
            _ => break,
        }
    }
    Ok(resident)
}

/// Returns the first `len` bytes of an extent. `Extent::new` cannot fail here. If it did, the whole extent would only
/// be a longer frame with the same bytes.
fn shorten_extent(extent: Extent, len: u64) -> Extent {
    Extent::new(extent.offset(), extent.len().min(len)).unwrap_or(extent)
}

/// Returns a slice of the mapping. The length of the mapping is the length of the file when it was mapped.
fn slice_mapping(mapped: &Bytes, extent: Extent) -> io::Result<Bytes> {
    let bounds = [extent.offset(), extent.end()].map(|at| usize::try_from(at).unwrap_or(usize::MAX));
    let [start, end] = bounds;
    if end > mapped.len() {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(mapped.slice(start..end))
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File};
    use std::future::poll_fn;
    use std::io::Write;
    use std::os::unix::fs::FileExt;

    use isogen::Source;
    use tempfile::{NamedTempFile, TempPath};

    use super::super::read_ahead::ReadDone;
    use super::*;

    const LEN: u64 = 3 * FRAME_LEN;

    /// Returns a hashed file that cannot be leased, and a reader that has read its first frame.
    async fn begin_to_read() -> (TempPath, BaseReader) {
        let mut file = NamedTempFile::new().unwrap();
        file.write_all(&vec![7; usize::try_from(LEN).unwrap()]).unwrap();
        let path = file.into_temp_path();
        let base = BaseFile::new(Arc::new(Source::open(&path).unwrap()));
        base.source().digest().unwrap();
        base.require_stamp(base.stamp().unwrap());
        let mut reader = BaseReader::new(Arc::new(base), BodyMode::Read).unwrap();
        assert!(read_frame(&mut reader, 0).await.unwrap().iter().all(|byte| *byte == 7));
        (path, reader)
    }

    async fn read_frame(reader: &mut BaseReader, offset: u64) -> io::Result<Bytes> {
        loop {
            let mut read = match reader.next_bytes(Extent::new(offset, FRAME_LEN).unwrap())? {
                NextBytes::Ready(bytes) => return Ok(bytes),
                NextBytes::Pending(read) => read,
            };
            match poll_fn(|context| read.poll(context)).await? {
                ReadDone::Bytes(bytes) => return Ok(bytes),
                ReadDone::InMemory(span) => reader.mark_in_memory(span),
            }
        }
    }

    #[tokio::test]
    async fn replaced_file_is_read_to_its_end() {
        let (path, mut reader) = begin_to_read().await;
        fs::remove_file(&path).unwrap();
        assert!(read_frame(&mut reader, FRAME_LEN).await.unwrap().iter().all(|byte| *byte == 7));
        let mut later = BaseReader::new(Arc::clone(reader.file()), BodyMode::Read).unwrap();
        assert!(read_frame(&mut later, 2 * FRAME_LEN).await.is_ok());
    }

    /// The write changes neither the length nor the `mtime`.
    #[tokio::test]
    async fn file_written_before_its_removal_is_not_read() {
        let (path, mut reader) = begin_to_read().await;
        let writer = File::options().write(true).open(&path).unwrap();
        let modified = writer.metadata().unwrap().modified().unwrap();
        writer.write_all_at(b"other", FRAME_LEN).unwrap();
        writer.set_modified(modified).unwrap();
        fs::remove_file(&path).unwrap();
        let mut later = BaseReader::new(Arc::clone(reader.file()), BodyMode::Read).unwrap();
        for reader in [&mut reader, &mut later] {
            assert!(read_frame(reader, FRAME_LEN).await.is_err());
        }
        assert!(BaseReader::new(Arc::clone(reader.file()), BodyMode::Read).is_err());
    }
}
