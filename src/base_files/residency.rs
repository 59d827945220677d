//! Finds out which bytes of a file are in memory, without waiting for the disk.
//!
//! A `write` of mapped bytes blocks while missing pages are read from disk, and with it every other connection of the
//! thread. So the server calls [`ResidentPages::residency`] first. This function reads one byte of every 64 KiB with
//! `RWF_NOWAIT`, which fails instead of waiting. For a whole MiB it checks all pages in one call, if the kernel
//! supports `cachestat`. A table remembers pages in memory for a few seconds, so bytes that many clients read cost only
//! one lookup.

use std::io::{self, IoSliceMut};
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::fs::{Advice, fadvise};
use rustix::io::{Errno, ReadWriteFlags, preadv2};
use rustix::time::{ClockId, clock_gettime};

use isogen::{Error, Extent, Source};

use crate::sys::has_all_pages;

/// The number of bytes that one probe represents. The kernel reads ahead at least this many bytes, and drops pages in
/// the units in which it read them.
const STEP: u64 = 64 << 10;
const STEP_LEN: usize = 64 << 10;
/// The number of steps in one entry of the table.
const STEPS: u64 = 16;
/// Maximum number of entries in a table, 4 bytes each. Bytes after the first 16 GiB are probed each time.
const MAX_ENTRIES: u64 = 1 << 14;
/// The length of a period. The table remembers a probe for one to two periods.
const PERIOD_SECS: i64 = 4;

/// The result of a probe: bytes can be read without waiting, or only after a disk read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Residency {
    /// All bytes are in memory.
    InMemory,
    /// At least one byte is on disk, or the file system does not support the probe.
    OnDisk,
}

/// The steps of a file that were in memory when last probed, with the period of the probe.
#[derive(Debug)]
pub(super) struct ResidentPages {
    /// One entry for every sixteen steps: the period in the upper 16 bits, and one bit for each step in the lower 16.
    entries: Box<[AtomicU32]>,
}

impl ResidentPages {
    /// Finds out whether the bytes of `extent` are in memory. Neither reads them nor waits for the disk.
    ///
    /// # Errors
    ///
    /// Returns an error if the source has no file, or if the file ends before the end of `extent`.
    #[inline]
    pub(super) fn residency(&self, source: &Source, extent: Extent) -> io::Result<Residency> {
        if extent.end() > source.len() {
            return Err(truncated_error(source, source.len()));
        }
        let age = Self::current_age();
        let mut offset = extent.offset();
        while offset < extent.end() {
            let step = offset / STEP;
            let end = step.saturating_add(1).saturating_mul(STEP).min(source.len());
            let last = end.min(extent.end()).saturating_sub(1);
            if !self.has_step(step, age) && !self.finds_all_resident((source, extent), step, age)? {
                // Reads start at the beginning of a step. So if the last byte of a step is in memory, the whole step
                // is.
                if probe_byte(source, end.saturating_sub(1))? == Residency::InMemory {
                    self.add_step(step, age);
                } else if last.saturating_add(1) == end || probe_byte(source, last)? == Residency::OnDisk {
                    return Ok(Residency::OnDisk);
                }
            }
            offset = end;
        }
        Ok(Residency::InMemory)
    }

    /// Returns `true` if all steps of an entry are in memory. Checks this only if `extent` covers all these steps and
    /// the entry has no recent step. For fewer bytes, single probes take less time: `cachestat` visits each page, and
    /// most of these pages are not in the CPU caches.
    fn finds_all_resident(
        &self,
        (source, extent): (&Source, Extent),
        step: u64,
        age: u16,
    ) -> io::Result<bool> {
        let first = step / STEPS * STEPS;
        let start = first.saturating_mul(STEP);
        let end = first.saturating_add(STEPS).saturating_mul(STEP).min(source.len());
        let is_wanted = extent.offset() <= start && end <= extent.end() && self.is_entry_expired(step, age);
        let Some(file) = source.as_file().filter(|_| is_wanted) else { return Ok(false) };
        let Some(all) = Extent::new(start, end.saturating_sub(start)) else { return Ok(false) };
        // The kernel reads ahead in order. So pages that are being read from the disk are the last ones, and the last
        // byte decides.
        let is_complete =
            has_all_pages(file, all) && probe_byte(source, end.saturating_sub(1))? == Residency::InMemory;
        if is_complete {
            self.add_all_steps(step, age);
        }
        Ok(is_complete)
    }

    /// Reads the bytes of `extent` into memory, with all other bytes of their [steps](STEP). Waits for the disk.
    ///
    /// # Errors
    ///
    /// Returns an error if reading fails, or if the file ends before the end of `extent`.
    pub(super) fn read_ahead(&self, source: &Source, extent: Extent) -> Result<(), Error> {
        let mut buf = vec![0; STEP_LEN];
        let (first, end) = (extent.offset() / STEP, extent.end().min(source.len()));
        for step in first..end.div_ceil(STEP) {
            let start = step.saturating_mul(STEP);
            let len = usize::try_from(source.len().saturating_sub(start))
                .map_or(STEP_LEN, |rest| rest.min(STEP_LEN));
            let (part, _) = buf.split_at_mut(len);
            source.read_exact_at(part, start)?;
            self.add_step(step, Self::current_age());
        }
        Ok(())
    }
}

/// Asks the kernel to read bytes in the background.
pub(super) fn advise_will_need(source: &Source, extent: Extent) {
    if let Some(file) = source.as_file() {
        // This is only a hint. An error costs only time.
        let len = std::num::NonZeroU64::new(extent.len());
        let _ = fadvise(file, extent.offset(), len, Advice::WillNeed);
    }
}

/// Finds out whether the byte at `offset` can be read without waiting.
fn probe_byte(source: &Source, offset: u64) -> io::Result<Residency> {
    let file = source.as_file().ok_or(io::ErrorKind::Unsupported)?;
    let mut byte = [0];
    match preadv2(file, &mut [IoSliceMut::new(&mut byte)], offset, ReadWriteFlags::NOWAIT) {
        Ok(0) => Err(truncated_error(source, offset)),
        Ok(_) => Ok(Residency::InMemory),
        // Linux before 4.14 and some file systems do not support the flag.
        Err(Errno::AGAIN | Errno::INTR | Errno::OPNOTSUPP | Errno::INVAL | Errno::NOSYS) => {
            Ok(Residency::OnDisk)
        }
        Err(error) => Err(error.into()),
    }
}

/// Returns the error for a file that is shorter than when it was opened.
pub(super) fn truncated_error(source: &Source, offset: u64) -> io::Error {
    let (name, len) = (source.name(), source.len());
    let text = format!("{name}: truncated at byte {offset}, expected {len} bytes");
    io::Error::new(io::ErrorKind::UnexpectedEof, text)
}

impl ResidentPages {
    /// Creates an empty table for a file of `len` bytes.
    pub(super) fn new(len: u64) -> Self {
        let entries = len.div_ceil(STEP * STEPS).min(MAX_ENTRIES);
        let entries = (0..entries).map(|_| AtomicU32::new(0)).collect();
        Self { entries }
    }

    /// Returns the number of the current period.
    #[inline]
    fn current_age() -> u16 {
        // The coarse clock is 1 to 10 ms late. The exact time takes seven times as long to read.
        age_at(clock_gettime(ClockId::MonotonicCoarse).tv_sec)
    }

    #[inline]
    fn has_step(&self, step: u64, age: u16) -> bool {
        let Some((entry, bit)) = self.entry(step) else {
            return false;
        };
        let value = entry.load(Ordering::Relaxed);
        value & bit != 0 && is_recent(value, age)
    }

    /// Returns `true` if the entry of a step has no recent step.
    fn is_entry_expired(&self, step: u64, age: u16) -> bool {
        self.entry(step).is_some_and(|(entry, _)| !is_recent(entry.load(Ordering::Relaxed), age))
    }

    /// Records that all steps of an entry are in memory.
    fn add_all_steps(&self, step: u64, age: u16) {
        if let Some((entry, _)) = self.entry(step) {
            entry.store(u32::from(age) << 16 | 0xffff, Ordering::Relaxed);
        }
    }

    /// Records that a step is in memory. If two threads do this concurrently, a step may be lost, which costs one more
    /// probe.
    fn add_step(&self, step: u64, age: u16) {
        let Some((entry, bit)) = self.entry(step) else {
            return;
        };
        let age = u32::from(age) << 16;
        if entry.load(Ordering::Relaxed) & 0xffff_0000 == age {
            entry.fetch_or(bit, Ordering::Relaxed);
        } else {
            entry.store(age | bit, Ordering::Relaxed);
        }
    }

    fn entry(&self, step: u64) -> Option<(&AtomicU32, u32)> {
        let entry = self.entries.get(usize::try_from(step / STEPS).ok()?)?;
        Some((entry, 1 << (step % STEPS)))
    }
}

/// Returns the number of a period. It is never 0 or 1, so an empty entry is always expired. The numbers repeat after
/// three days, and the first three periods of each cycle share the number 2.
fn age_at(seconds: i64) -> u16 {
    let [low, high, ..] = (seconds / PERIOD_SECS).to_le_bytes();
    u16::from_le_bytes([low, high]).max(2)
}

/// Returns `true` if the period of an entry is the current or the previous one.
fn is_recent(entry: u32, age: u16) -> bool {
    let entry_age = entry >> 16;
    entry_age == u32::from(age) || entry_age + 1 == u32::from(age)
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::os::unix::fs::FileExt;

    use super::*;

    /// A source with its table.
    struct ProbedFile(Source, ResidentPages);

    impl ProbedFile {
        fn residency(&self, extent: Extent) -> io::Result<Residency> {
            self.1.residency(&self.0, extent)
        }

        fn read_ahead(&self, extent: Extent) -> Result<(), Error> {
            self.1.read_ahead(&self.0, extent)
        }
    }

    fn probed_base(len: u64) -> (File, ProbedFile) {
        let file = tempfile::tempfile().unwrap();
        file.set_len(len).unwrap();
        (file.try_clone().unwrap(), open_probed(file))
    }

    fn open_probed(file: File) -> ProbedFile {
        let source = Source::from_file(file, "base").unwrap();
        let pages = ResidentPages::new(source.len());
        ProbedFile(source, pages)
    }

    fn extent(offset: u64, len: u64) -> Extent {
        Extent::new(offset, len).unwrap()
    }

    #[test]
    fn read_bytes_are_in_memory() {
        let len = 3 * STEP + 17;
        let (_, base) = probed_base(len);
        base.read_ahead(extent(0, len)).unwrap();
        for (offset, part) in [(0, len), (0, 1), (STEP - 1, 2), (3 * STEP, 17), (len - 1, 1), (5, 0)] {
            assert_eq!(base.residency(extent(offset, part)).unwrap(), Residency::InMemory, "{offset}+{part}");
        }
    }

    #[test]
    fn one_call_probes_all_steps_of_an_entry() {
        let len = (STEPS + 4) * STEP;
        let (file, base) = probed_base(len);
        file.read_exact_at(&mut vec![0; usize::try_from(len).unwrap()], 0).unwrap();
        if !has_all_pages(&file, extent(0, len)) {
            eprintln!("SKIPPED: this kernel or file system does not report pages in memory");
            return;
        }
        let pages = &base.1;
        let finds_all = |offset, len, step| {
            pages
                .finds_all_resident((&base.0, extent(offset, len)), step, ResidentPages::current_age())
                .unwrap()
        };
        assert!(
            !finds_all(1, STEPS * STEP, 0) && !finds_all(0, STEPS * STEP - 1, 0),
            "requests for a part of the entry"
        );
        assert!(finds_all(0, STEPS * STEP, 3));
        let is_resident = |step| pages.has_step(step, ResidentPages::current_age());
        assert!((0..STEPS).all(is_resident) && !is_resident(STEPS));
        // Also probe the last entry, which has fewer steps.
        assert_eq!(base.residency(extent(0, len)).unwrap(), Residency::InMemory);
        assert!((0..STEPS + 4).all(is_resident));
    }

    #[test]
    fn dropped_pages_are_on_disk() {
        const TMPFS: u64 = 0x0102_1994;
        let file = tempfile::tempfile().unwrap();
        if u64::try_from(rustix::fs::fstatfs(&file).unwrap().f_type) == Ok(TMPFS) {
            eprintln!("SKIPPED: temporary files are in memory, and stay there");
            return;
        }
        let len = 4 * STEP;
        file.write_all_at(&vec![7; usize::try_from(len).unwrap()], 0).unwrap();
        file.sync_all().unwrap();
        let drop_pages = || fadvise(&file, 0, None, Advice::DontNeed).unwrap();
        // Try repeatedly, because the kernel keeps pages that are in use. Open a new source each time, because a source
        // remembers the pages that were in memory.
        let dropped = (0..100).find_map(|_| {
            drop_pages();
            let base = open_probed(file.try_clone().unwrap());
            (base.residency(extent(0, len)).unwrap() == Residency::OnDisk).then_some(base)
        });
        let base = dropped.expect("pages were not dropped, or probes still find them");
        base.read_ahead(extent(0, len)).unwrap();
        assert_eq!(base.residency(extent(0, len)).unwrap(), Residency::InMemory);
        // The table remembers the pages, and does not probe them again for a few seconds.
        drop_pages();
        assert_eq!(base.residency(extent(0, len)).unwrap(), Residency::InMemory);
    }

    #[test]
    fn each_step_is_remembered_separately() {
        let pages = ResidentPages::new(STEP * 20);
        let age = ResidentPages::current_age();
        for step in [0, 15, 16] {
            assert!(!pages.has_step(step, age));
            pages.add_step(step, age);
        }
        assert!(pages.has_step(0, age) && pages.has_step(15, age) && pages.has_step(16, age));
        assert!(!pages.has_step(1, age) && !pages.has_step(17, age));
        assert!(!pages.is_entry_expired(1, age) && !pages.is_entry_expired(17, age));
        pages.add_all_steps(17, age);
        assert!((16..20).all(|step| pages.has_step(step, age)) && !pages.has_step(1, age));
        // A step beyond the end of the table is never remembered.
        pages.add_step(100, age);
        assert!(!pages.has_step(100, age));
    }

    #[test]
    fn remembered_steps_expire() {
        let pages = ResidentPages::new(STEP);
        pages.add_step(0, 7);
        assert!(pages.has_step(0, 7) && pages.has_step(0, 8));
        assert!(!pages.has_step(0, 9) && !pages.has_step(0, 6));
        assert!(pages.is_entry_expired(0, 9) && !pages.is_entry_expired(0, 8));
    }

    #[test]
    fn empty_entries_are_expired_in_every_period() {
        const CYCLE: i64 = PERIOD_SECS << 16;
        for seconds in [0, 1, 4, 8, CYCLE - 1, CYCLE, CYCLE + 4, i64::MAX, -1, i64::MIN] {
            let age = age_at(seconds);
            assert!(age >= 2 && !is_recent(0, age), "{seconds}: {age}");
        }
        assert_eq!([11, 12, 15, 16, CYCLE + 12].map(age_at), [2, 3, 3, 4, 3]);
    }

    #[test]
    fn rejects_truncated_file() {
        let (file, base) = probed_base(4 * STEP);
        file.set_len(STEP + 1).unwrap();
        let error = base.residency(extent(2 * STEP, STEP)).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
        assert!(error.to_string().contains("base: truncated at byte"), "{error}");
        assert!(base.read_ahead(extent(2 * STEP, STEP)).is_err());
    }

    #[test]
    fn source_in_memory_has_no_residency() {
        let base = ProbedFile(Source::from_bytes("memory", &b"abc"[..]), ResidentPages::new(3));
        assert_eq!(base.residency(extent(0, 3)).unwrap_err().kind(), io::ErrorKind::Unsupported);
    }
}
