//! Reads a plan as a stream and writes a plan to a stream.

use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

use rustix::io::Errno;

use crate::bytes_at::prefix_mut;
use crate::extent::Extent;
use crate::plan::{PlacedSegment, Plan, Segment};
use crate::source::ReadAt;

/// Number of bytes to copy in one step if the kernel does not copy.
pub(super) const BUFFER_LEN: usize = 1 << 20;

/// A reader of a plan, with a cursor.
#[derive(Debug)]
pub struct PlanReader<'a> {
    plan: &'a Plan,
    offset: u64,
}

impl Read for PlanReader<'_> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let len = self.plan.read_at(buf, self.offset)?;
        self.offset += len as u64;
        Ok(len)
    }
}

impl ReadAt for Plan {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        Self::read_at(self, buf, offset)
    }
}

impl Plan {
    /// Returns a reader that starts at the first byte.
    #[must_use]
    pub fn reader(&self) -> PlanReader<'_> {
        PlanReader { plan: self, offset: 0 }
    }

    /// Writes all bytes to a stream with a file descriptor, such as the standard output. If possible, the kernel copies
    /// the base bytes.
    ///
    /// # Errors
    ///
    /// Returns an error if the base image cannot be read or the stream cannot be written.
    pub fn send_to(&self, output: &mut (impl Write + AsFd)) -> io::Result<()> {
        output.flush()?;
        for PlacedSegment { start, segment } in self.layout() {
            let sent_len = match (segment, self.source().as_file()) {
                (Segment::Base(extent), Some(base)) => {
                    sendfile_extent(output.as_fd(), base.as_fd(), *extent)?
                }
                _ => 0,
            };
            let rest =
                Self::new(Arc::clone(self.source()), self.segments(start + sent_len..start + segment.len()));
            rest.write_to(output)?;
        }
        output.flush()
    }

    /// Writes all bytes to a stream.
    ///
    /// # Errors
    ///
    /// Returns an error if the base image cannot be read or the stream cannot be written.
    pub fn write_to(&self, output: &mut impl Write) -> io::Result<()> {
        let mut buf = vec![0; BUFFER_LEN];
        let mut offset = 0;
        while offset < self.len() {
            let len = self.read_at(&mut buf, offset)?;
            output.write_all(prefix_mut(&mut buf, len as u64))?;
            offset += len as u64;
        }
        output.flush()
    }
}

/// Writes `len` zeros at `offset` in chunks, through a function that writes bytes at an offset.
pub(super) fn write_zeros(
    mut offset: u64,
    len: u64,
    write: impl Fn(&[u8], u64) -> io::Result<()>,
) -> io::Result<()> {
    let mut zeros = vec![0; usize::try_from(len).map_or(BUFFER_LEN, |len| len.min(BUFFER_LEN))];
    let end = offset + len;
    while offset < end {
        let chunk = prefix_mut(&mut zeros, end - offset);
        write(chunk, offset)?;
        offset += chunk.len() as u64;
    }
    Ok(())
}

/// Sends an extent with `sendfile` and returns the number of sent bytes. The caller writes the remaining bytes, which
/// are all bytes if the kernel does not support this descriptor.
fn sendfile_extent(output: BorrowedFd<'_>, base: BorrowedFd<'_>, extent: Extent) -> io::Result<u64> {
    let mut at = extent.offset();
    while at < extent.end() {
        // The kernel limits the length of one call, so the saturation has no effect.
        let len = usize::try_from(extent.end() - at).unwrap_or(usize::MAX);
        match rustix::fs::sendfile(output, base, Some(&mut at), len) {
            Ok(0) | Err(Errno::INVAL | Errno::NOSYS) => break,
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(at - extent.offset())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::Source;

    #[test]
    fn send_to_writes_the_bytes_of_the_plan() {
        let mut base = tempfile::tempfile().unwrap();
        base.write_all(&[7; 100_000]).unwrap();
        let base = Arc::new(Source::from_file(base, "base").unwrap());
        let plan = Plan::from_source(base).followed_by([Segment::Zero(5), Segment::Bytes(vec![8; 3].into())]);
        let mut output = tempfile::tempfile().unwrap();
        plan.send_to(&mut output).unwrap();
        let output = Plan::from_source(Arc::new(Source::from_file(output, "sent").unwrap()));
        assert!(output.read_all(1 << 20).unwrap() == plan.read_all(1 << 20).unwrap());
    }
}
