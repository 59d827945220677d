//! Writes an in-place edit to the file of the base image.
//!
//! Only the changed bytes are written, in three steps. The first step writes a marker, which is not a valid archive, to
//! the start of the Ignition area. The second step writes all other changes. The third step writes the new start of the
//! area, in one aligned block. The bytes of each step are on the disk (`RWF_DSYNC`) before the next step begins.
//!
//! **Guarantee.** If the process, the system or the power fails during an edit, the file is the old image, the new
//! image, or an image with the marker. All commands, including the commands of `coreos-installer`, refuse an image with
//! the marker until an edit overwrites all embed areas, as `iso reset` does. There is no guarantee for storage that
//! reports a write as complete when it is not.

use std::fs::File;
use std::io::{self, IoSlice};
use std::os::unix::fs::FileExt;

use rustix::io::{Errno, ReadWriteFlags};

use super::stream::write_zeros;
use crate::error::{Error, OrInternal, Result};
use crate::extent::Extent;
use crate::plan::{Patch, Plan, Segment};

/// The bytes at the start of the Ignition area during an edit.
pub(crate) const EDIT_MARKER: &[u8; 32] = b"KINDLING EDIT WAS NOT COMPLETED\n";
/// Length of the block to write last. The block is within one page, so a crash never leaves it half-written.
const GUARD_BLOCK_LEN: u64 = 512;

impl Plan {
    /// Writes the changes to the file of the base image. `guard` is the extent of the Ignition area, whose first bytes
    /// distinguish an interrupted edit from a complete edit.
    ///
    /// The changes are written in a fixed order, and each change is on the disk before the next one begins. After a
    /// crash, the file is the old image, the new image, or an image whose Ignition area begins with a marker that no
    /// tool accepts as an archive. In the latter case, [`BaseImage::archive`](crate::BaseImage::archive) returns
    /// [`Error::Interrupted`].
    ///
    /// # Errors
    ///
    /// Returns an error before it writes anything if the plan is not an in-place edit or if `guard` exceeds the image.
    /// Also returns an error if a write fails.
    pub fn write_in_place(&self, file: &File, guard: Extent) -> Result<()> {
        let changes = self.changes_in_place()?;
        if changes.is_empty() {
            return Ok(());
        }
        let failed = |source| Error::Write { file: self.source().name().to_owned(), source };
        let block = guard.slice(0..GUARD_BLOCK_LEN);
        let last = self.read_block(block)?;
        // If the area is shorter than the marker, write only the first bytes of the marker.
        let marker = EDIT_MARKER.split_at(last.len().min(EDIT_MARKER.len())).0;
        write_synced(file, marker, block.offset()).map_err(failed)?;
        for Patch { offset, segment } in changes {
            // Skip the bytes of the last block, which are written last.
            let before = segment.slice(0..block.offset().saturating_sub(offset));
            write_segment(file, &before, offset).map_err(failed)?;
            let covered = block.end().saturating_sub(offset);
            write_segment(file, &segment.slice(covered..u64::MAX), offset + covered).map_err(failed)?;
        }
        write_synced(file, &last, block.offset()).map_err(failed)
    }

    fn read_block(&self, block: Extent) -> Result<Vec<u8>> {
        if block.end() > self.len() {
            let (value, reason) = (block.to_string(), "it exceeds the image");
            return Err(Error::InvalidEdit { what: "extent of the Ignition area", value, reason });
        }
        let len = usize::try_from(block.len()).or_internal("length of the last block", block.offset())?;
        let mut bytes = vec![0; len];
        self.read_at(&mut bytes, block.offset())
            .map_err(|error| self.source().read_error(block.offset(), error))?;
        Ok(bytes)
    }
}

fn write_segment(file: &File, segment: &Segment, offset: u64) -> io::Result<()> {
    match segment {
        Segment::Base(_) => Ok(()),
        Segment::Bytes(bytes) => write_synced(file, bytes, offset),
        Segment::Zero(len) => write_zeros(offset, *len, |zeros, at| write_synced(file, zeros, at)),
    }
}

/// Writes bytes and waits until they are on the disk. Unlike `fsync`, it does not wait for other bytes of the file, for
/// example a gigabyte that was just copied.
fn write_synced(file: &File, mut bytes: &[u8], mut offset: u64) -> io::Result<()> {
    while !bytes.is_empty() {
        match rustix::io::pwritev2(file, &[IoSlice::new(bytes)], offset, ReadWriteFlags::DSYNC) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(len) => {
                let more = || io::Error::other(format!("the system wrote {len} of {} bytes", bytes.len()));
                bytes = bytes.get(len..).ok_or_else(more)?;
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
        Plan::from_source(Arc::new(Source::from_file(file.try_clone().unwrap(), "image").unwrap()))
    }

    /// The changes begin and end at all positions relative to the area and its last block.
    #[test]
    fn file_has_the_bytes_of_the_plan() {
        let guard = Extent::new(GUARD.0, GUARD.1).unwrap();
        let changes = [
            (4096, 8192),
            (4096, 10),
            (4000, 20),
            (4200, 9000),
            (13_000, 50),
            (4608, 1),
            (4000, 200),
            (4000, 9000),
        ];
        for (offset, len) in changes {
            for segment in [Segment::Zero(len), Segment::Bytes(vec![9; len as usize].into())] {
                let file = file();
                let plan = whole(&file).patched(vec![Patch { offset, segment }]).unwrap();
                let expected = plan.read_all(1 << 20).unwrap();
                plan.write_in_place(&file, guard).unwrap();
                assert!(whole(&file).read_all(1 << 20).unwrap() == expected, "{offset}+{len}");
            }
        }
    }

    /// If the guard exceeded the plan, the write would overwrite the end of the file with zeros.
    #[test]
    fn rejects_a_guard_beyond_the_plan() {
        let file = file();
        let before = whole(&file).read_all(1 << 20).unwrap();
        let patch = Patch { offset: 0, segment: Segment::Zero(1) };
        let plan = whole(&file).patched(vec![patch]).unwrap();
        let error = plan.write_in_place(&file, Extent::new(19_999, 2).unwrap()).unwrap_err();
        assert!(matches!(error, Error::InvalidEdit { .. }), "{error}");
        assert!(whole(&file).read_all(1 << 20).unwrap() == before);
    }

    #[test]
    fn rejects_plans_that_move_bytes_without_writing() {
        let file = file();
        let before = whole(&file).read_all(1 << 20).unwrap();
        let longer = whole(&file).followed_by([Segment::Zero(1)]);
        assert!(longer.write_in_place(&file, Extent::new(GUARD.0, GUARD.1).unwrap()).is_err());
        assert!(whole(&file).read_all(1 << 20).unwrap() == before);
    }
}
