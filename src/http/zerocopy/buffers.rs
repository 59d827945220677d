//! Buffers for bytes that are read and not mapped.

use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};

use axum::body::Bytes;
use isogen::{Extent, Source};

/// The length of a buffer: two records of TLS.
const BUFFER_LEN: usize = 32 << 10;
/// How many of them there are at most, in use or kept for the next one who needs one (4 MiB), by all downloads together.
const MAX_BUFFERS: usize = 128;
/// The length of one that there is beyond those, for as long as it is used: a record, which is gone as soon as it is encrypted. A
/// client that takes nothing would hold the second half of a longer one.
const SHORT_LEN: usize = 16 << 10;
/// From this length on a span is worth a buffer of the pool. A shorter one has memory of its own length, for whoever holds several of
/// them.
pub(in crate::http) const LONG_LEN: usize = 1 << 10;

static POOL: Pool = Pool(Mutex::new(Buffers { free: Vec::new(), count: 0 }));

/// Buffers for all downloads.
struct Pool(Mutex<Buffers>);

struct Buffers {
    /// Those that nobody uses at the moment.
    free: Vec<Box<[u8]>>,
    /// How many there are, with those in use.
    count: usize,
}

/// A buffer in use, which goes back into its pool when it is no longer.
struct Buffer<'a> {
    bytes: Box<[u8]>,
    len: usize,
    pool: &'a Pool,
}

/// Reads the beginning of a span: as much as a buffer holds. Waits for the disk where it is not in memory.
pub(in crate::http) fn read_span(source: &Source, span: Extent) -> io::Result<Bytes> {
    let len = usize::try_from(span.len()).unwrap_or(usize::MAX);
    let mut buffer = POOL.take(len);
    let len = len.min(buffer.bytes.len());
    source
        .read_exact_at(buffer.bytes.get_mut(..len).unwrap_or_default(), span.offset())
        .map_err(io::Error::other)?;
    buffer.len = len;
    Ok(Bytes::from_owner(buffer))
}

impl Pool {
    fn take(&self, len: usize) -> Buffer<'_> {
        let kept = if len < LONG_LEN { Err(len) } else { self.lock().take() };
        let bytes = kept.unwrap_or_else(|len| vec![0; len].into());
        Buffer { bytes, len: 0, pool: self }
    }

    fn lock(&self) -> MutexGuard<'_, Buffers> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Buffers {
    /// One that is free, or else how long a new one is to be.
    fn take(&mut self) -> Result<Box<[u8]>, usize> {
        if let Some(bytes) = self.free.pop() {
            return Ok(bytes);
        }
        if self.count == MAX_BUFFERS {
            return Err(SHORT_LEN);
        }
        self.count += 1;
        Err(BUFFER_LEN)
    }
}

impl AsRef<[u8]> for Buffer<'_> {
    fn as_ref(&self) -> &[u8] {
        self.bytes.get(..self.len).unwrap_or_default()
    }
}

impl Drop for Buffer<'_> {
    fn drop(&mut self) {
        if self.bytes.len() == BUFFER_LEN {
            self.pool.lock().free.push(std::mem::take(&mut self.bytes));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_come_back_and_there_are_not_too_many() {
        let pool = Pool(Mutex::new(Buffers { free: Vec::new(), count: 0 }));
        let lengths =
            |buffers: &[Buffer<'_>]| buffers.iter().map(|buffer| buffer.bytes.len()).collect::<Vec<_>>();
        let mut buffers: Vec<_> = (0..MAX_BUFFERS + 2).map(|_| pool.take(LONG_LEN)).collect();
        assert_eq!(lengths(&buffers), [vec![BUFFER_LEN; MAX_BUFFERS], vec![SHORT_LEN; 2]].concat());
        // The short ones are gone with their use, a long one is the next.
        buffers.truncate(MAX_BUFFERS);
        assert!(pool.lock().free.is_empty());
        buffers.truncate(MAX_BUFFERS - 1);
        buffers.extend([pool.take(LONG_LEN), pool.take(LONG_LEN)]);
        assert_eq!(lengths(&buffers), [vec![BUFFER_LEN; MAX_BUFFERS], vec![SHORT_LEN]].concat());
        drop(buffers);
        assert_eq!(pool.lock().free.len(), MAX_BUFFERS);
        assert_eq!(pool.take(LONG_LEN - 1).bytes.len(), LONG_LEN - 1);
        assert_eq!(pool.lock().free.len(), MAX_BUFFERS);
    }

    #[test]
    fn what_was_in_a_buffer_before_is_not_seen() {
        let source = Source::from_bytes("base", &b"0123456789"[..]);
        let read = |offset, len| read_span(&source, Extent::new(offset, len).unwrap()).unwrap();
        assert_eq!(read(0, 10), "0123456789");
        assert_eq!(read(8, 2), "89");
    }

    #[test]
    fn of_a_long_span_the_beginning_is_read() {
        let base: Vec<u8> = (0..BUFFER_LEN + 1).map(|at| at.to_le_bytes()[0]).collect();
        let source = Source::from_bytes("base", base.clone());
        let read = read_span(&source, Extent::new(1, BUFFER_LEN as u64).unwrap()).unwrap();
        assert!([BUFFER_LEN, SHORT_LEN].contains(&read.len()));
        assert!(base[1..].starts_with(&read));
    }

    #[test]
    fn a_base_that_ends_early_is_an_error() {
        let source = Source::new("base".into(), 20, Bytes::from_static(b"0123456789"));
        assert!(read_span(&source, Extent::new(5, 10).unwrap()).is_err());
    }
}
