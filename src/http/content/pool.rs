//! Buffers for bytes that are read and not mapped.

use std::io;
use std::sync::{Mutex, PoisonError};

use axum::body::Bytes;
use isogen::{Extent, Source};

/// The length of a buffer: two records of TLS.
pub(super) const BUFFER_LEN: u64 = 32 << 10;
/// How many buffers are kept for the next one who needs one (4 MiB), by all downloads together.
const MAX_KEPT: usize = 128;

static POOL: Pool = Pool(Mutex::new(Vec::new()));

/// Buffers that nobody uses at the moment.
struct Pool(Mutex<Vec<Box<[u8]>>>);

/// A buffer in use, which goes back into its pool when it is no longer.
struct Buffer<'a> {
    bytes: Box<[u8]>,
    len: usize,
    pool: &'a Pool,
}

/// Reads a span of at most [`BUFFER_LEN`] bytes. Waits for the disk where they are not in memory.
pub(super) fn read(source: &Source, span: Extent) -> io::Result<Bytes> {
    let len = usize::try_from(span.len()).unwrap_or(usize::MAX);
    let mut buffer = POOL.take();
    let bytes = buffer.bytes.get_mut(..len).ok_or(io::ErrorKind::InvalidInput)?;
    source.read_exact_at(bytes, span.offset()).map_err(io::Error::other)?;
    buffer.len = len;
    Ok(Bytes::from_owner(buffer))
}

impl Pool {
    fn take(&self) -> Buffer<'_> {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let bytes = kept.unwrap_or_else(|| vec![0; usize::try_from(BUFFER_LEN).unwrap_or_default()].into());
        Buffer { bytes, len: 0, pool: self }
    }
}

impl AsRef<[u8]> for Buffer<'_> {
    fn as_ref(&self) -> &[u8] {
        self.bytes.get(..self.len).unwrap_or_default()
    }
}

impl Drop for Buffer<'_> {
    fn drop(&mut self) {
        let mut kept = self.pool.0.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() < MAX_KEPT {
            kept.push(std::mem::take(&mut self.bytes));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_come_back_and_not_too_many() {
        let pool = Pool(Mutex::new(Vec::new()));
        let buffers: Vec<_> = (0..MAX_KEPT + 5).map(|_| pool.take()).collect();
        assert!(pool.0.lock().unwrap().is_empty());
        drop(buffers);
        assert_eq!(pool.0.lock().unwrap().len(), MAX_KEPT);
        drop(pool.take());
        assert_eq!(pool.0.lock().unwrap().len(), MAX_KEPT);
    }

    #[test]
    fn what_was_in_a_buffer_before_is_not_seen() {
        let source = Source::from_bytes("base", &b"0123456789"[..]);
        let read = |offset, len| read(&source, Extent::new(offset, len).unwrap()).unwrap();
        assert_eq!(read(0, 10), "0123456789");
        assert_eq!(read(8, 2), "89");
    }

    #[test]
    fn a_base_that_ends_early_is_an_error() {
        let source = Source::new("base".into(), 20, Bytes::from_static(b"0123456789"));
        assert!(read(&source, Extent::new(5, 10).unwrap()).is_err());
        assert!(read(&source, Extent::new(0, BUFFER_LEN + 1).unwrap()).is_err());
    }
}
