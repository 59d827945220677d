//! A file system image inside `rootfs.img`, read in place. Reads never leave the image, and errors name the offset in
//! the file.
//!
//! Sums of offsets in a damaged file system may exceed 64 bits. Readers use saturating additions: no image has bytes at
//! `u64::MAX`, so the read returns an error.

use std::fmt;
use std::sync::Arc;

use super::codec::Codec;
use crate::bytes_at::array_at;
use crate::error::{Error, OrInternal, Result};
use crate::extent::Extent;
use crate::plan::Plan;
use crate::source::Source;

/// A byte range of `rootfs.img`. Offsets count from the start of the range, but errors name offsets in the file.
#[derive(Debug, Clone)]
pub(super) struct RootfsWindow {
    source: Arc<Source>,
    extent: Extent,
}

impl RootfsWindow {
    /// Creates a window of a whole file. Errors name the file `file`.
    pub(super) fn new(file: String, plan: Plan) -> Self {
        let extent = Extent::from_start(plan.len());
        Self { source: Arc::new(Source::new(file, plan.len(), plan)), extent }
    }

    /// Returns the window of `inner`, or `None` if `inner` is not inside this window.
    pub(super) fn subwindow(&self, inner: Extent) -> Option<Self> {
        Some(Self { source: Arc::clone(&self.source), extent: self.extent.subextent(inner)? })
    }

    /// Returns the name of the file, for errors.
    pub(super) fn file(&self) -> String {
        self.source.name().to_owned()
    }

    pub(super) fn len(&self) -> u64 {
        self.extent.len()
    }

    /// Reads `len` bytes. The caller must limit `len` to the maximum of the structure that it reads.
    pub(super) fn read(&self, offset: u64, len: usize, what: &'static str) -> Result<Vec<u8>> {
        let mut buf = Vec::new();
        self.append(&mut buf, offset, len, what)?;
        Ok(buf)
    }

    pub(super) fn read_array<const N: usize>(&self, offset: u64, what: &'static str) -> Result<[u8; N]> {
        array_at(&self.read(offset, N, what)?, 0).or_internal("short structure of a root file system", offset)
    }

    /// Reads `len` bytes and appends them to `buf`.
    pub(super) fn append(
        &self,
        buf: &mut Vec<u8>,
        offset: u64,
        len: usize,
        what: &'static str,
    ) -> Result<()> {
        let inner = Extent::new(offset, len as u64).and_then(|inner| self.extent.subextent(inner));
        let Some(inner) = inner else {
            let expected = format!("{len} bytes before the end, at {}", self.extent.end());
            return Err(self.malformed(offset, what, expected, "fewer"));
        };
        let start = buf.len();
        buf.resize(start.checked_add(len).or_internal("length beyond memory", offset)?, 0);
        self.source.read_exact_at(buf.split_at_mut(start).1, inner.offset())
    }

    /// Reads `len` bytes, or fewer if the window ends before.
    pub(super) fn read_up_to(&self, offset: u64, len: usize, what: &'static str) -> Result<Vec<u8>> {
        let rest = self.len().saturating_sub(offset);
        self.read(offset, usize::try_from(rest).map_or(len, |rest| rest.min(len)), what)
    }

    /// Converts an offset in the window to an offset in the file.
    fn position(&self, offset: u64) -> u64 {
        self.extent.offset().saturating_add(offset)
    }

    /// Returns the error for a structure that violates its format.
    pub(super) fn malformed(
        &self,
        offset: u64,
        what: &'static str,
        expected: impl fmt::Display,
        actual: impl fmt::Display,
    ) -> Error {
        self.source.malformed(self.position(offset), what, expected, actual)
    }

    /// Returns `codec`, or an error if this build does not support it. `offset` is the position of the field with the
    /// codec.
    pub(super) fn require_support(&self, offset: u64, codec: Codec) -> Result<Codec> {
        match codec.missing_compression() {
            None => Ok(codec),
            Some(compression) => Err(Error::UnsupportedCompression {
                file: self.file(),
                offset: self.position(offset),
                what: "root file system",
                compression,
            }),
        }
    }

    /// Returns the error for a valid feature that this crate does not support.
    pub(super) fn unsupported(&self, offset: u64, what: &'static str, actual: impl fmt::Display) -> Error {
        Error::Unsupported {
            file: self.file(),
            offset: self.position(offset),
            what,
            found: actual.to_string(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn window() -> RootfsWindow {
        let plan = Plan::from_source(Arc::new(Source::from_bytes("base", &b"0123456789"[..])));
        RootfsWindow::new("rootfs.img".into(), plan).subwindow(Extent::new(2, 5).unwrap()).unwrap()
    }

    #[test]
    fn reads_stay_inside_the_window() {
        assert_eq!(window().read(1, 4, "it").unwrap(), b"3456");
        assert_eq!(window().read_up_to(3, 100, "it").unwrap(), b"56");
        assert!(window().read_up_to(100, 100, "it").is_err());
        assert!(window().subwindow(Extent::new(1, 5).unwrap()).is_none());
    }

    #[test]
    fn error_offset_counts_from_the_start_of_the_file() {
        let error = window().read(4, 2, "superblock").unwrap_err().to_string();
        assert_eq!(
            error,
            "rootfs.img: byte 6: superblock: expected 2 bytes before the end, at 7, found fewer"
        );
        assert!(window().read(u64::MAX, 2, "it").is_err());
    }
}
