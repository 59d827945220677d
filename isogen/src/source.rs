//! Where base bytes come from: positioned reads, no cursor, any number of readers at once.

use std::fmt;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;

use crate::digest::{Digest, HashStates, Hasher};
use crate::error::{Error, Result};
use crate::extent::Extent;

/// Bytes that can be read at any position, by any thread, without a cursor.
pub trait ReadAt: fmt::Debug + Send + Sync {
    /// Reads at `offset` into `buf` and returns the number of bytes; 0 only at the end.
    ///
    /// # Errors
    ///
    /// Returns the error of the storage, and [`WouldBlock`](io::ErrorKind::WouldBlock) for bytes that are not available yet.
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize>;

    /// Returns the file, if the bytes are those of one file: in-kernel copies and mappings need it.
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
        let rest = usize::try_from(offset).ok().and_then(|start| self.get(start..)).unwrap_or_default();
        let len = rest.len().min(buf.len());
        if let (Some(to), Some(from)) = (buf.get_mut(..len), rest.get(..len)) {
            to.copy_from_slice(from);
        }
        Ok(len)
    }
}

/// A named, immutable run of bytes of known length: what plans refer to.
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
    /// Fails where the file cannot be opened or is something without a length, such as a pipe or a directory.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let name = path.display().to_string();
        match File::open(path) {
            Ok(file) => Self::from_file(file, name),
            Err(source) => Err(Error::Open { file: name, source }),
        }
    }

    /// Takes a file that is already open, under the name that messages shall call it.
    ///
    /// # Errors
    ///
    /// Fails where the file has no length, as a pipe or a directory.
    pub fn from_file(file: File, name: impl Into<String>) -> Result<Self> {
        let name = name.into();
        match seekable_len(&file) {
            Ok(len) => Ok(Self::new(name, len, file)),
            Err(source) => Err(Error::Open { file: name, source }),
        }
    }

    /// Takes bytes in memory.
    #[must_use]
    pub fn from_bytes(name: impl Into<String>, bytes: impl Into<Bytes>) -> Self {
        let bytes = bytes.into();
        Self::new(name.into(), bytes.len() as u64, bytes)
    }

    /// Takes any reader of `len` bytes.
    pub fn new(name: String, len: u64, reader: impl ReadAt + 'static) -> Self {
        Self {
            name,
            len,
            reader: Box::new(reader),
            digest: OnceLock::new(),
            hash_states: HashStates::default(),
        }
    }

    /// The name that messages call it.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The number of bytes, fixed when it was opened.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Tells whether there are no bytes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The file behind it, where there is one.
    #[must_use]
    pub fn as_file(&self) -> Option<&File> {
        self.reader.as_file()
    }

    /// Fills `buf` from `offset`.
    ///
    /// # Errors
    ///
    /// Fails where the storage does, or where the bytes end before `buf` is full.
    pub fn read_exact_at(&self, mut buf: &mut [u8], mut offset: u64) -> Result<()> {
        let end = offset.checked_add(buf.len() as u64);
        if end.is_none_or(|end| end > self.len) {
            return Err(self.read_error(offset.max(self.len), io::ErrorKind::UnexpectedEof.into()));
        }
        while !buf.is_empty() {
            match self.reader.read_at(buf, offset) {
                Ok(0) => return Err(self.read_error(offset, io::ErrorKind::UnexpectedEof.into())),
                Ok(len) => {
                    let wanted = buf.len();
                    let Some(rest) = buf.get_mut(len..) else {
                        let lied = format!("the reader was asked for {wanted} bytes and tells of {len}");
                        return Err(self.read_error(offset, io::Error::other(lied)));
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

    /// Reads an extent into memory. The caller bounds its length by what the structure may have.
    ///
    /// # Errors
    ///
    /// Fails where the extent passes the end, before anything is allocated, or where the storage fails.
    pub fn read_extent(&self, extent: Extent) -> Result<Vec<u8>> {
        let len = usize::try_from(extent.len()).ok().filter(|_| extent.end() <= self.len);
        let Some(len) = len else {
            return Err(self.malformed(
                extent.offset(),
                "extent",
                format!("an end within {} bytes", self.len),
                extent.end(),
            ));
        };
        let mut buf = vec![0; len];
        self.read_exact_at(&mut buf, extent.offset())?;
        Ok(buf)
    }

    /// The SHA-256 of all bytes: read once, then remembered.
    ///
    /// # Errors
    ///
    /// Fails where the storage does.
    pub fn digest(&self) -> Result<Digest> {
        if let Some(digest) = self.digest.get() {
            return Ok(*digest);
        }
        let mut hasher = Hasher::new();
        let mut buf = vec![0; 1 << 20];
        let mut offset = 0;
        while offset < self.len {
            let len = usize::try_from(self.len - offset).map_or(buf.len(), |rest| rest.min(buf.len()));
            let chunk = buf.get_mut(..len).unwrap_or_default();
            self.read_exact_at(chunk, offset)?;
            hasher.update(chunk);
            offset += len as u64;
        }
        Ok(*self.digest.get_or_init(|| hasher.finish()))
    }

    /// Tells the SHA-256 that is known from elsewhere, so that [`digest`](Self::digest) need not read the bytes.
    /// The first value stays.
    pub fn set_digest(&self, digest: Digest) {
        self.digest.get_or_init(|| digest);
    }

    /// What is saved of hashing artifacts of this base.
    pub(crate) fn hash_states(&self) -> &HashStates {
        &self.hash_states
    }

    pub(crate) fn read_error(&self, offset: u64, source: io::Error) -> Error {
        Error::Read { file: self.name.clone(), offset, source }
    }

    pub(crate) fn malformed(
        &self,
        offset: u64,
        what: &'static str,
        expected: impl fmt::Display,
        found: impl fmt::Display,
    ) -> Error {
        Error::Malformed {
            file: self.name.clone(),
            offset,
            what,
            expected: expected.to_string(),
            found: found.to_string(),
        }
    }
}

/// The length of a regular file or block device; an error that says so for everything else.
fn seekable_len(file: &File) -> io::Result<u64> {
    if file.metadata()?.is_dir() {
        return Err(io::ErrorKind::IsADirectory.into());
    }
    rustix::fs::seek(file, rustix::fs::SeekFrom::End(0)).map_err(io::Error::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Gives one byte a call, as a slow or odd storage may.
    #[derive(Debug)]
    struct OneByte(Bytes);

    impl ReadAt for OneByte {
        fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
            let len = buf.len().min(1);
            self.0.read_at(&mut buf[..len], offset)
        }
    }

    #[test]
    fn short_reads_are_put_together() {
        let source = Source::new("odd".into(), 5, OneByte(Bytes::from_static(b"abcde")));
        assert_eq!(source.read_extent(Extent::new(1, 3).unwrap()).unwrap(), b"bcd");
        assert_eq!(source.digest().unwrap(), Digest::of(b"abcde"));
    }

    #[test]
    fn an_extent_past_the_end_is_refused_before_allocation() {
        let source = Source::from_bytes("small", &b"abc"[..]);
        let error = source.read_extent(Extent::new(1, 1 << 60).unwrap()).unwrap_err();
        assert!(error.to_string().contains("small: byte 1: extent"), "{error}");
    }

    #[test]
    fn a_source_that_shrank_is_an_error() {
        let source = Source::new("shrunk".into(), 9, Bytes::from_static(b"abc"));
        assert!(matches!(source.digest(), Err(Error::Read { offset: 3, .. })));
    }

    #[test]
    fn nothing_is_read_past_the_length() {
        let source = Source::new("longer".into(), 3, Bytes::from_static(b"abcdef"));
        let mut buf = [0; 2];
        source.read_exact_at(&mut buf, 1).unwrap();
        for (offset, at) in [(2, 3), (3, 3), (u64::MAX - 1, u64::MAX - 1), (u64::MAX, u64::MAX)] {
            let error = source.read_exact_at(&mut buf, offset).unwrap_err();
            assert!(matches!(error, Error::Read { offset, .. } if offset == at), "{error}");
        }
        source.read_exact_at(&mut [], 3).unwrap();
    }

    /// Tells of more bytes than there is room for.
    #[derive(Debug)]
    struct Boaster;

    impl ReadAt for Boaster {
        fn read_at(&self, buf: &mut [u8], _: u64) -> io::Result<usize> {
            Ok(buf.len() + 1)
        }
    }

    #[test]
    fn a_reader_that_tells_of_too_many_bytes_is_not_believed() {
        let error = Source::new("odd".into(), 9, Boaster).read_exact_at(&mut [0; 4], 2).unwrap_err();
        assert!(matches!(error, Error::Read { offset: 2, .. }), "{error}");
    }

    #[test]
    fn a_directory_is_not_a_source() {
        assert!(matches!(Source::open("/"), Err(Error::Open { .. })));
    }
}
