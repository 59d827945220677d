//! Writing a plan: to a stream, to a new file, or over its own base. All three give the same bytes.

mod in_place;
mod new_file;

use std::io::{self, Read, Write};

pub(crate) use in_place::EDIT_MARKER;
pub use new_file::{Access, NewFile};

use crate::plan::Plan;
use crate::source::ReadAt;

/// Bytes that are copied at a time where the system cannot copy by itself.
const BUFFER_LEN: usize = 1 << 20;

/// A cursor over a plan, for code that wants a stream.
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
    /// A stream of all bytes.
    #[must_use]
    pub fn reader(&self) -> PlanReader<'_> {
        PlanReader { plan: self, offset: 0 }
    }

    /// Writes all bytes to a stream, such as the standard output.
    ///
    /// # Errors
    ///
    /// Fails where the base cannot be read or the stream cannot be written.
    pub fn write_to(&self, output: &mut impl Write) -> io::Result<()> {
        let mut buf = vec![0; BUFFER_LEN];
        let mut offset = 0;
        while offset < self.len() {
            let len = self.read_at(&mut buf, offset)?;
            output.write_all(buf.get(..len).unwrap_or_default())?;
            offset += len as u64;
        }
        output.flush()
    }
}
