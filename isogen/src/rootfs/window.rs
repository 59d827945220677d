//! The bytes of a file system, read in place: positioned reads that never leave it, and errors that name the place.

use std::fmt;

use crate::error::{Error, Result};
use crate::extent::Extent;
use crate::plan::Plan;

/// A stretch of `rootfs.img`. Offsets count from its first byte; those in messages from the first byte of the file.
#[derive(Debug, Clone)]
pub(super) struct Window {
    plan: Plan,
    file: String,
    extent: Extent,
}

impl Window {
    /// All of a file, under the name that messages shall call it.
    pub(super) fn whole(file: String, plan: Plan) -> Self {
        let extent = Extent::first(plan.len());
        Self { plan, file, extent }
    }

    /// The part that `inner` gives, or `None` where that is not inside.
    pub(super) fn part(&self, inner: Extent) -> Option<Self> {
        let extent = self.extent.part(inner)?;
        Some(Self { plan: self.plan.clone(), file: self.file.clone(), extent })
    }

    /// The name that messages call the file.
    pub(super) fn file(&self) -> &str {
        &self.file
    }

    /// The number of bytes.
    pub(super) fn len(&self) -> u64 {
        self.extent.len()
    }

    /// Reads `len` bytes, which the caller bounds by what the structure may have.
    pub(super) fn read(&self, offset: u64, len: usize, what: &'static str) -> Result<Vec<u8>> {
        let mut buf = Vec::new();
        self.append(&mut buf, offset, len, what)?;
        Ok(buf)
    }

    /// Reads `len` bytes behind those that are there.
    pub(super) fn append(
        &self,
        buf: &mut Vec<u8>,
        offset: u64,
        len: usize,
        what: &'static str,
    ) -> Result<()> {
        let inner = Extent::new(offset, len as u64).filter(|inner| inner.end() <= self.len());
        let Some(inner) = inner else {
            let expected = format!("{len} bytes before the end, at {}", self.extent.end());
            return Err(self.malformed(offset, what, expected, "fewer"));
        };
        let start = buf.len();
        buf.resize(start.saturating_add(len), 0);
        self.fill(buf.get_mut(start..).unwrap_or_default(), inner.offset())
    }

    /// Reads `len` bytes, or as many as there are before the end.
    pub(super) fn read_up_to(&self, offset: u64, len: usize, what: &'static str) -> Result<Vec<u8>> {
        let rest = self.len().saturating_sub(offset);
        self.read(offset, usize::try_from(rest).map_or(len, |rest| rest.min(len)), what)
    }

    fn fill(&self, buf: &mut [u8], offset: u64) -> Result<()> {
        let offset = self.extent.offset() + offset;
        let read = self.plan.read_at(buf, offset);
        let source = match read {
            Ok(len) if len == buf.len() => return Ok(()),
            Ok(_) => std::io::ErrorKind::UnexpectedEof.into(),
            Err(source) => source,
        };
        Err(Error::Read { file: self.file.clone(), offset, source })
    }

    /// A structure that breaks the rules of its format.
    pub(super) fn malformed(
        &self,
        offset: u64,
        what: &'static str,
        expected: impl fmt::Display,
        found: impl fmt::Display,
    ) -> Error {
        Error::Malformed {
            file: self.file.clone(),
            offset: self.extent.offset().saturating_add(offset),
            what,
            expected: expected.to_string(),
            found: found.to_string(),
        }
    }

    /// Something that the format knows and this reader does not.
    pub(super) fn unsupported(&self, offset: u64, what: &'static str, found: impl fmt::Display) -> Error {
        Error::Unsupported {
            file: self.file.clone(),
            offset: self.extent.offset().saturating_add(offset),
            what,
            found: found.to_string(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::source::Source;

    fn window() -> Window {
        let plan = Plan::whole(Arc::new(Source::from_bytes("base", &b"0123456789"[..])));
        Window::whole("rootfs.img".into(), plan).part(Extent::new(2, 5).unwrap()).unwrap()
    }

    #[test]
    fn reads_keep_inside() {
        assert_eq!(window().read(1, 4, "it").unwrap(), b"3456");
        assert_eq!(window().read_up_to(3, 100, "it").unwrap(), b"56");
        assert!(window().read_up_to(100, 100, "it").is_err());
        assert!(window().part(Extent::new(1, 5).unwrap()).is_none());
    }

    #[test]
    fn errors_count_from_the_start_of_the_file() {
        let error = window().read(4, 2, "superblock").unwrap_err().to_string();
        assert_eq!(
            error,
            "rootfs.img: byte 6: superblock: expected 2 bytes before the end, at 7, found fewer"
        );
        assert!(window().read(u64::MAX, 2, "it").is_err());
    }
}
