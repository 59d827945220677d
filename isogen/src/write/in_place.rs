//! Edits over the image itself.
//!
//! Only the changed stretches are written, in three steps. First a marker that is no archive goes over the start of the
//! Ignition area; then everything else; then the start of the area as it shall be, in one aligned block. Each step is
//! on its way to the disk, with `RWF_DSYNC`, before the next begins.
//!
//! **What that guarantees.** If the process, the system or the power fails in between, the image is the old one, the
//! new one, or it carries the marker: then every command, `coreos-installer`'s as well, refuses it, until `iso reset`
//! has made it whole. What it does not guarantee: that storage which lies about having written keeps the order.

use std::fs::File;
use std::io::{self, IoSlice};
use std::os::unix::fs::FileExt;

use rustix::io::{Errno, ReadWriteFlags};

use super::stream::BUFFER_LEN;
use crate::error::{Error, Result};
use crate::extent::Extent;
use crate::plan::{Patch, Plan, Segment};

/// What stands at the start of the Ignition area while an edit is under way.
pub(crate) const EDIT_MARKER: &[u8; 32] = b"KINDLING EDIT WAS NOT COMPLETED\n";
/// The block that is written last. It lies within one page, so no crash shows a part of it.
const LAST_LEN: u64 = 512;

impl Plan {
    /// Writes the changes over the image itself. `guard` is the extent of its Ignition area, whose first bytes tell an
    /// interrupted edit from a complete one.
    ///
    /// The changed stretches are written in an order, and each is on the disk before the next, such that a crash
    /// leaves the old image, the new one, or one whose Ignition area begins with a marker that no tool takes for an
    /// archive: [`BaseImage::archive`](crate::BaseImage::archive) then fails with [`Error::Interrupted`].
    ///
    /// # Errors
    ///
    /// Fails, before anything is written, where the plan is more than an edit in place; or where writing fails.
    pub fn write_in_place(&self, file: &File, guard: Extent) -> Result<()> {
        let changes = self.changes_in_place()?;
        if changes.is_empty() {
            return Ok(());
        }
        let failed = |source| Error::Write { file: self.source().name().to_owned(), source };
        let mut last = vec![0; usize::try_from(guard.len().min(LAST_LEN)).unwrap_or_default()];
        self.read_at(&mut last, guard.offset()).map_err(failed)?;
        let last_end = guard.offset() + last.len() as u64;

        let marker = EDIT_MARKER.get(..last.len()).unwrap_or(EDIT_MARKER);
        write_synced(file, marker, guard.offset()).map_err(failed)?;
        for Patch { offset, segment } in changes {
            // What the last block covers has to wait for it. No change crosses the start of the area.
            let covered = if offset < guard.offset() { 0 } else { last_end.saturating_sub(offset) };
            let rest = segment.slice(covered..u64::MAX);
            write_segment(file, &rest, offset + covered).map_err(failed)?;
        }
        write_synced(file, &last, guard.offset()).map_err(failed)
    }
}

fn write_segment(file: &File, segment: &Segment, mut offset: u64) -> io::Result<()> {
    match segment {
        Segment::Base(_) => Ok(()),
        Segment::Bytes(bytes) => write_synced(file, bytes, offset),
        Segment::Zero(len) => {
            let zeros = vec![0; usize::try_from(*len).map_or(BUFFER_LEN, |len| len.min(BUFFER_LEN))];
            let end = offset + len;
            while offset < end {
                let step = usize::try_from(end - offset).map_or(zeros.len(), |rest| rest.min(zeros.len()));
                write_synced(file, zeros.get(..step).unwrap_or_default(), offset)?;
                offset += step as u64;
            }
            Ok(())
        }
    }
}

/// Writes and waits until the bytes are on the disk. Unlike a sync of the file, that leaves its other bytes alone: a
/// gigabyte that was copied a moment ago does not have to be waited for.
fn write_synced(file: &File, mut bytes: &[u8], mut offset: u64) -> io::Result<()> {
    while !bytes.is_empty() {
        match rustix::io::pwritev2(file, &[IoSlice::new(bytes)], offset, ReadWriteFlags::DSYNC) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(len) => {
                bytes = bytes.get(len..).unwrap_or_default();
                offset += len as u64;
            }
            Err(Errno::INTR) => {}
            Err(Errno::OPNOTSUPP | Errno::NOSYS) => {
                file.write_all_at(bytes, offset)?;
                return file.sync_data();
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::source::Source;

    const GUARD: (u64, u64) = (4096, 8192);

    fn file() -> File {
        let file = tempfile::tempfile().unwrap();
        let bytes: Vec<u8> = (0..20_000_u32).map(|index| (index % 251) as u8).collect();
        file.write_all_at(&bytes, 0).unwrap();
        file
    }

    fn whole(file: &File) -> Plan {
        Plan::whole(Arc::new(Source::from_file(file.try_clone().unwrap(), "image").unwrap()))
    }

    /// Every place that an edit may begin and end at, around the area and its last block.
    #[test]
    fn the_file_has_the_bytes_of_the_plan_afterwards() {
        let guard = Extent::new(GUARD.0, GUARD.1).unwrap();
        for (offset, len) in [(4096, 8192), (4096, 10), (4000, 20), (4200, 9000), (13_000, 50), (4608, 1)] {
            for segment in [Segment::Zero(len), Segment::Bytes(vec![9; len as usize].into())] {
                let file = file();
                let plan = whole(&file).patched(vec![Patch { offset, segment }]).unwrap();
                let expected = plan.read_all(1 << 20).unwrap();
                plan.write_in_place(&file, guard).unwrap();
                assert!(whole(&file).read_all(1 << 20).unwrap() == expected, "{offset}+{len}");
            }
        }
    }

    #[test]
    fn a_plan_that_moves_bytes_is_refused_and_nothing_is_written() {
        let file = file();
        let before = whole(&file).read_all(1 << 20).unwrap();
        let longer = whole(&file).followed_by([Segment::Zero(1)]);
        assert!(longer.write_in_place(&file, Extent::new(GUARD.0, GUARD.1).unwrap()).is_err());
        assert!(whole(&file).read_all(1 << 20).unwrap() == before);
    }
}
