//! Whether the kernel has a part of a file in memory, asked for all its pages at once.
//!
//! [`residency`](crate::residency) asks for one page at a time otherwise, which is a call for each. `cachestat` came with Linux 6.5;
//! newer ones answer only who may write to the file or owns it. No library below has a safe form of it.

#![allow(unsafe_code)]

use std::ffi::{c_long, c_uint};
use std::fs::File;
use std::os::fd::AsRawFd;

use crate::Extent;

/// The number of the call, on all architectures of live images. `libc` names it for some.
const CACHESTAT: c_long = 451;

#[repr(C)]
struct Range {
    offset: u64,
    len: u64,
}

/// Numbers of pages.
#[repr(C)]
#[derive(Default)]
struct Counts {
    cached: u64,
    _others: [u64; 4],
}

/// Whether there is a page in memory for each byte. A page may still be coming from the disk. Where nobody tells, there is none.
pub(crate) fn has_pages(file: &File, extent: Extent) -> bool {
    let range = Range { offset: extent.offset(), len: extent.len() };
    let mut counts = Counts::default();
    let flags: c_uint = 0;
    // SAFETY: the descriptor is open as long as the file is borrowed; the call reads the one structure and writes the other, which
    // are laid out as it wants them and live until it returns.
    let answer =
        unsafe { libc::syscall(CACHESTAT, file.as_raw_fd(), &raw const range, &raw mut counts, flags) };
    // SAFETY: the call takes a number and gives one.
    let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    let Some(page) = u64::try_from(page).ok().filter(|page| *page > 0) else { return false };
    let pages = extent.end().div_ceil(page).saturating_sub(extent.offset() / page);
    answer == 0 && counts.cached >= pages
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::FileExt;

    use rustix::fs::{Advice, fadvise};

    use super::*;

    #[test]
    fn pages_are_there_after_a_write_and_beyond_the_end_never() {
        let file = tempfile::tempfile().unwrap();
        file.write_all_at(&[7; 5 << 12], 0).unwrap();
        let has = |offset, len| has_pages(&file, Extent::new(offset, len).unwrap());
        if !has(0, 1) {
            eprintln!("SKIPPED: this kernel or file system does not tell");
            return;
        }
        assert!(has(0, 5 << 12) && has(4095, 2) && has((5 << 12) - 1, 1));
        assert!(!has(0, 1 << 20) && !has(1 << 20, 1));
        // A hole has a page as soon as somebody reads it.
        file.set_len(1 << 20).unwrap();
        assert!(!has(1 << 19, 1));
    }

    #[test]
    fn pages_that_were_dropped_are_not_there() {
        let file = tempfile::tempfile().unwrap();
        file.write_all_at(&[7; 1 << 20], 0).unwrap();
        file.sync_all().unwrap();
        let whole = Extent::new(0, 1 << 20).unwrap();
        let has_lost_any = (0..100).any(|_| {
            fadvise(&file, 0, None, Advice::DontNeed).unwrap();
            !has_pages(&file, whole)
        });
        // Temporary files that are in memory have no other place.
        const TMPFS: u64 = 0x0102_1994;
        assert!(has_lost_any || u64::try_from(rustix::fs::fstatfs(&file).unwrap().f_type) == Ok(TMPFS));
    }
}
