//! The bytes that plans refer to. Any number of threads can read them at any position at the same time.

use std::fmt;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;

use crate::bytes_at::prefix_mut;
use crate::digest::{Digest, HashStates, Hasher};
use crate::error::{Error, Result};
use crate::extent::Extent;

/// Storage that any thread can read at any position, without a cursor.
pub trait ReadAt: fmt::Debug + Send + Sync {
    /// Reads at `offset` into `buf` and returns the number of bytes read, which is 0 only at the end.
    ///
    /// # Errors
    ///
    /// Returns the error of the storage.
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize>;

    /// Returns the file if all bytes are in one file. In-kernel copies and memory mappings need the file.
    fn as_file(&self) -> Option<&File> {
        None
    }
}

impl ReadAt for File {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        FileExt::read_at(self, buf, offset)
    }

    fn as_file(&self) -> Option<&File> {
        Some(self)
    }
}

impl<T: ReadAt + ?Sized> ReadAt for Arc<T> {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        (**self).read_at(buf, offset)
    }

    fn as_file(&self) -> Option<&File> {
        (**self).as_file()
    }
}

impl ReadAt for Bytes {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        // At an offset beyond the end, 0 bytes are read.
        let rest = usize::try_from(offset).ok().and_then(|start| self.get(start..)).unwrap_or(&[]);
        let len = rest.len().min(buf.len());
        buf.split_at_mut(len).0.copy_from_slice(rest.split_at(len).0);
        Ok(len)
    }
}

/// A named, immutable sequence of bytes with a fixed length. Plans refer to its bytes.
#[derive(Debug)]
pub struct Source {
    name: String,
    len: u64,
    reader: Box<dyn ReadAt>,
    digest: OnceLock<Digest>,
    hash_states: HashStates,
}

impl Source {
    /// Opens a file for reading.
    ///
    /// # Errors
    ///
    /// Returns an error if the file cannot be opened, or if it has no length, like a pipe or a directory.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let name = path.display().to_string();
        match File::open(path) {
            Ok(file) => Self::from_file(file, name),
            Err(source) => Err(Error::Open { file: name, source }),
        }
    }

    /// Creates a source from an open file. Errors contain `name`.
    ///
    /// # Errors
    ///
    /// Returns an error if the file has no length, like a pipe or a directory.
    pub fn from_file(file: File, name: impl Into<String>) -> Result<Self> {
        let name = name.into();
        match seekable_len(&file) {
            Ok(len) => Ok(Self::new(name, len, file)),
            Err(source) => Err(Error::Open { file: name, source }),
        }
    }

    /// Creates a source from bytes in memory.
    #[must_use]
    pub fn from_bytes(name: impl Into<String>, bytes: impl Into<Bytes>) -> Self {
        let bytes = bytes.into();
        Self::new(name.into(), bytes.len() as u64, bytes)
    }

    /// Creates a source from any reader of `len` bytes.
    pub fn new(name: String, len: u64, reader: impl ReadAt + 'static) -> Self {
        Self {
            name,
            len,
            reader: Box::new(reader),
            digest: OnceLock::new(),
            hash_states: HashStates::default(),
        }
    }

    /// Returns the name of the source in errors.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the number of bytes, which is fixed at the creation of the source.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Returns `true` if there are no bytes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the file if all bytes are in one file.
    #[must_use]
    pub fn as_file(&self) -> Option<&File> {
        self.reader.as_file()
    }

    /// Fills `buf` with bytes, starting at `offset`.
    ///
    /// # Errors
    ///
    /// Returns an error if the storage fails, or if the source ends before `buf` is full.
    pub fn read_exact_at(&self, mut buf: &mut [u8], mut offset: u64) -> Result<()> {
        let end = offset.checked_add(buf.len() as u64);
        if end.is_none_or(|end| end > self.len) {
            return Err(self.read_error(offset.max(self.len), io::ErrorKind::UnexpectedEof.into()));
        }
        while !buf.is_empty() {
            match self.reader.read_at(buf, offset) {
                Ok(0) => return Err(self.read_error(offset, io::ErrorKind::UnexpectedEof.into())),
                Ok(len) => {
                    let max_len = buf.len();
                    let Some(rest) = buf.get_mut(len..) else {
                        let message = format!("the reader returned {len} bytes instead of at most {max_len}");
                        return Err(self.read_error(offset, io::Error::other(message)));
                    };
                    buf = rest;
                    offset += len as u64;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(self.read_error(offset, error)),
            }
        }
        Ok(())
    }

    /// Reads an extent into memory. The caller must limit the length to the maximum of the structure that it reads.
    ///
    /// # Errors
    ///
    /// Returns an error if the storage fails, or if the extent ends after the end of the source. In the latter case, no
    /// memory is allocated.
    pub fn read_extent(&self, extent: Extent) -> Result<Vec<u8>> {
        let len = usize::try_from(extent.len()).ok().filter(|_| extent.end() <= self.len);
        let Some(len) = len else {
            let expected = format!("an end within {} bytes", self.len);
            return Err(self.malformed(extent.offset(), "extent", expected, extent.end()));
        };
        let mut buf = vec![0; len];
        self.read_exact_at(&mut buf, extent.offset())?;
        Ok(buf)
    }

    /// Returns the SHA-256 digest of all bytes. The first call reads all bytes; later calls return the cached digest.
    ///
    /// # Errors
    ///
    /// Returns an error if the storage fails.
    pub fn digest(&self) -> Result<Digest> {
        if let Some(digest) = self.digest.get() {
            return Ok(*digest);
        }
        let mut hasher = Hasher::new();
        let mut buf = vec![0; 1 << 20];
        let mut offset = 0;
        while offset < self.len {
            let chunk = prefix_mut(&mut buf, self.len - offset);
            self.read_exact_at(chunk, offset)?;
            hasher.update(chunk);
            offset += chunk.len() as u64;
        }
        Ok(*self.digest.get_or_init(|| hasher.finish()))
    }

    /// Sets a SHA-256 digest that the caller has computed before, so that [`digest`](Self::digest) does not read the
    /// bytes. If the digest is already set, the call has no effect.
    pub fn set_digest(&self, digest: Digest) {
        self.digest.get_or_init(|| digest);
    }

    /// Returns the cached hash states of artifacts of this base image.
    pub(crate) fn hash_states(&self) -> &HashStates {
        &self.hash_states
    }

    pub(crate) fn not_found(&self, path: &str) -> Error {
        Error::NotFound { file: self.name.clone(), path: path.to_owned() }
    }

    pub(crate) fn read_error(&self, offset: u64, source: io::Error) -> Error {
        Error::Read { file: self.name.clone(), offset, source }
    }

    pub(crate) fn malformed(
        &self,
        offset: u64,
        what: &'static str,
        expected: impl fmt::Display,
        actual: impl fmt::Display,
    ) -> Error {
        Error::Malformed {
            file: self.name.clone(),
            offset,
            what,
            expected: expected.to_string(),
            found: actual.to_string(),
        }
    }
}

/// Returns the length of a regular file or block device, or an error for a file that has no length.
fn seekable_len(file: &File) -> io::Result<u64> {
    if file.metadata()?.is_dir() {
        return Err(io::ErrorKind::IsADirectory.into());
    }
    rustix::fs::seek(file, rustix::fs::SeekFrom::End(0)).map_err(io::Error::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A source that returns one byte per call.
    #[derive(Debug)]
    struct OneByteSource(Bytes);

    impl ReadAt for OneByteSource {
        fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
            let len = buf.len().min(1);
            self.0.read_at(&mut buf[..len], offset)
        }
    }

    #[test]
    fn short_reads_are_joined() {
        let source = Source::new("odd".into(), 5, OneByteSource(Bytes::from_static(b"abcde")));
        assert_eq!(source.read_extent(Extent::new(1, 3).unwrap()).unwrap(), b"bcd");
        assert_eq!(source.digest().unwrap(), Digest::from_data(b"abcde"));
    }

    #[test]
    fn rejects_extents_past_the_end_before_allocation() {
        let source = Source::from_bytes("small", &b"abc"[..]);
        let error = source.read_extent(Extent::new(1, 1 << 60).unwrap()).unwrap_err();
        assert!(error.to_string().contains("small: byte 1: extent"), "{error}");
    }

    #[test]
    fn source_that_shrank_is_an_error() {
        let source = Source::new("shrunk".into(), 9, Bytes::from_static(b"abc"));
        assert!(matches!(source.digest(), Err(Error::Read { offset: 3, .. })));
    }

    #[test]
    fn reads_beyond_the_declared_length_fail() {
        let source = Source::new("longer".into(), 3, Bytes::from_static(b"abcdef"));
        let mut buf = [0; 2];
        source.read_exact_at(&mut buf, 1).unwrap();
        for (offset, at) in [(2, 3), (3, 3), (u64::MAX - 1, u64::MAX - 1), (u64::MAX, u64::MAX)] {
            let error = source.read_exact_at(&mut buf, offset).unwrap_err();
            assert!(matches!(error, Error::Read { offset, .. } if offset == at), "{error}");
        }
        source.read_exact_at(&mut [], 3).unwrap();
    }

    /// A faulty source that reports more bytes than `buf` can hold.
    #[derive(Debug)]
    struct OverlongSource;

    impl ReadAt for OverlongSource {
        fn read_at(&self, buf: &mut [u8], _: u64) -> io::Result<usize> {
            Ok(buf.len() + 1)
        }
    }

    #[test]
    fn rejects_readers_that_report_too_many_bytes() {
        let error = Source::new("odd".into(), 9, OverlongSource).read_exact_at(&mut [0; 4], 2).unwrap_err();
        assert!(matches!(error, Error::Read { offset: 2, .. }), "{error}");
    }

    #[test]
    fn rejects_directories() {
        assert!(matches!(Source::open("/"), Err(Error::Open { .. })));
    }
}
