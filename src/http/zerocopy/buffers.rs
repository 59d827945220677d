//! A pool of buffers for bytes of base images that are not mapped.

use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};

use axum::body::Bytes;
use isogen::{Extent, Source};

/// The length of a pooled buffer: two TLS records.
const BUFFER_LEN: usize = 32 << 10;
/// Maximum number of pooled buffers (4 MiB in total), in use or free. All downloads share them.
const MAX_BUFFERS: usize = 128;
/// The length of a buffer allocated while all pooled ones are in use, and freed after use. It holds one TLS record, so
/// it is free again after one encryption. A client that reads nothing would keep the second half of a longer buffer in
/// memory.
const SHORT_LEN: usize = 16 << 10;
/// Minimum length of a span for a pooled buffer. A shorter span gets memory of exactly its length, because a body may
/// hold several of them.
pub(in crate::http) const LONG_LEN: usize = 1 << 10;

static POOL: BufferPool = BufferPool(Mutex::new(FreeBuffers { free: Vec::new(), count: 0 }));

/// The pool for all downloads.
struct BufferPool(Mutex<FreeBuffers>);

struct FreeBuffers {
    free: Vec<Box<[u8]>>,
    /// The number of pooled buffers, in use or free.
    count: usize,
}

/// A buffer in use. Dropping it returns a pooled buffer to its pool.
struct PooledBuffer<'a> {
    bytes: Box<[u8]>,
    pool: &'a BufferPool,
}

/// Reads the first bytes of a span, up to the length of a buffer. Waits for the disk if they are not in memory.
pub(in crate::http) fn read_span(source: &Source, span: Extent) -> io::Result<Bytes> {
    // A length that does not fit into a `usize` is longer than any buffer.
    let span_len = usize::try_from(span.len()).unwrap_or(usize::MAX);
    let mut buffer = POOL.take_buffer(span_len);
    let part = match buffer.bytes.get_mut(..span_len) {
        Some(part) => part,
        None => &mut buffer.bytes,
    };
    let len = part.len();
    source.read_exact_at(part, span.offset()).map_err(io::Error::other)?;
    // Return only the bytes of this span: a pooled buffer may still have bytes of an earlier span after them.
    let mut bytes = Bytes::from_owner(buffer);
    bytes.truncate(len);
    Ok(bytes)
}

impl BufferPool {
    fn take_buffer(&self, len: usize) -> PooledBuffer<'_> {
        let pooled = if len < LONG_LEN { Err(len) } else { self.lock().take_free() };
        let bytes = pooled.unwrap_or_else(|len| vec![0; len].into());
        PooledBuffer { bytes, pool: self }
    }

    fn lock(&self) -> MutexGuard<'_, FreeBuffers> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl FreeBuffers {
    /// Returns a free buffer, or the length of a new one to allocate.
    fn take_free(&mut self) -> Result<Box<[u8]>, usize> {
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

impl AsRef<[u8]> for PooledBuffer<'_> {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for PooledBuffer<'_> {
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
    fn buffers_are_reused_and_limited() {
        let pool = BufferPool(Mutex::new(FreeBuffers { free: Vec::new(), count: 0 }));
        let lengths = |buffers: &[PooledBuffer<'_>]| {
            buffers.iter().map(|buffer| buffer.bytes.len()).collect::<Vec<_>>()
        };
        let mut buffers: Vec<_> = (0..MAX_BUFFERS + 2).map(|_| pool.take_buffer(LONG_LEN)).collect();
        assert_eq!(lengths(&buffers), [vec![BUFFER_LEN; MAX_BUFFERS], vec![SHORT_LEN; 2]].concat());
        // Short buffers are freed after use, and pooled ones are reused.
        buffers.truncate(MAX_BUFFERS);
        assert!(pool.lock().free.is_empty());
        buffers.truncate(MAX_BUFFERS - 1);
        buffers.extend([pool.take_buffer(LONG_LEN), pool.take_buffer(LONG_LEN)]);
        assert_eq!(lengths(&buffers), [vec![BUFFER_LEN; MAX_BUFFERS], vec![SHORT_LEN]].concat());
        drop(buffers);
        assert_eq!(pool.lock().free.len(), MAX_BUFFERS);
        assert_eq!(pool.take_buffer(LONG_LEN - 1).bytes.len(), LONG_LEN - 1);
        assert_eq!(pool.lock().free.len(), MAX_BUFFERS);
    }

    #[test]
    fn reused_buffer_hides_its_old_bytes() {
        let source = Source::from_bytes("base", &b"0123456789"[..]);
        let read = |offset, len| read_span(&source, Extent::new(offset, len).unwrap()).unwrap();
        assert_eq!(read(0, 10), "0123456789");
        assert_eq!(read(8, 2), "89");
    }

    #[test]
    fn read_of_a_long_span_is_limited_to_a_buffer() {
        let base: Vec<u8> = (0..BUFFER_LEN + 1).map(|at| at.to_le_bytes()[0]).collect();
        let source = Source::from_bytes("base", base.clone());
        let read = read_span(&source, Extent::new(1, BUFFER_LEN as u64).unwrap()).unwrap();
        assert!([BUFFER_LEN, SHORT_LEN].contains(&read.len()));
        assert!(base[1..].starts_with(&read));
    }

    #[test]
    fn rejects_a_truncated_base() {
        let source = Source::new("base".into(), 20, Bytes::from_static(b"0123456789"));
        assert!(read_span(&source, Extent::new(5, 10).unwrap()).is_err());
    }
}
