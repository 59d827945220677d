//! The memory mapping: with [`lease`](crate::lease), all there is in the workspace that needs `unsafe`.
//!
//! A mapped image lets a server hand base bytes to the kernel without copying them. The price is a rule that all users
//! of [`map`] keep: **our own code never looks at mapped bytes**. The slices go into a vectored write, where the
//! kernel reads them; should somebody truncate the file meanwhile, that write fails with an error. Code that
//! dereferenced the same page would be ended by a signal. Whatever this crate itself must look at, it reads with
//! positioned reads through [`Source`](crate::Source).
//!
//! Bytes that were mapped know their file: [`file_behind`] tells it, for whoever would have the kernel send pages of that
//! in the place of copies.

#![allow(unsafe_code)]

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::sync::{Arc, PoisonError, RwLock};

use bytes::Bytes;
use memmap2::Mmap;

/// All mappings that there are, by where they begin.
static MAPPINGS: RwLock<BTreeMap<usize, Behind>> = RwLock::new(BTreeMap::new());

/// What is behind a mapping.
struct Behind {
    end: usize,
    file: Arc<File>,
}

/// Maps the whole file and gives it as shared, sliceable bytes.
///
/// The mapping lives as long as the last slice of it. An empty file gives empty bytes.
///
/// # Errors
///
/// Fails where the system cannot map the file (a pipe, a file larger than the address space).
pub fn map(file: &File) -> io::Result<Bytes> {
    if file.metadata()?.len() == 0 {
        return Ok(Bytes::new());
    }
    let behind = Arc::new(file.try_clone()?);
    // SAFETY: `Mmap::map` asks that the file is not changed or truncated while the mapping is *dereferenced*, since
    // Rust code would then see bytes change under a shared reference, or fault. The mapping is private, read-only and
    // wrapped at once in `Bytes`; by the rule above, the slices are handed to the kernel (`writev`, `sendmsg`) and no
    // Rust code reads through them, so neither can happen in this process.
    let mapping = unsafe { Mmap::map(file)? };
    // A page that is missing is to bring itself, not the megabytes around it which the kernel reads ahead for mappings:
    // whoever wants more of the file says so (`Source::announce`). Where the kernel takes no advice, it is only slower.
    let _ = mapping.advise(memmap2::Advice::Random);
    Ok(Bytes::from_owner(Mapping::known(mapping, behind)))
}

/// The file that bytes are mapped from, and where they are in it: nothing for other bytes. It is the same `Arc` for all bytes of
/// a mapping.
#[must_use]
pub fn file_behind(bytes: &[u8]) -> Option<(Arc<File>, u64)> {
    let start = bytes.as_ptr().addr();
    let mappings = MAPPINGS.read().unwrap_or_else(PoisonError::into_inner);
    let (mapped, behind) = mappings.range(..=start).next_back()?;
    // What is behind a mapping that is still there can be nowhere else.
    (start.checked_add(bytes.len())? <= behind.end)
        .then(|| (Arc::clone(&behind.file), (start - mapped) as u64))
}

/// Makes all bytes of a mapping unreadable, for the kernel as well: a `write` of bytes that were not copied before fails with `EFAULT`.
/// [`file_behind`] no longer finds its file.
///
/// # Errors
///
/// Returns the error of `mprotect`.
pub(crate) fn forbid(mapping: &Bytes) -> io::Result<()> {
    if mapping.is_empty() {
        return Ok(());
    }
    MAPPINGS.write().unwrap_or_else(PoisonError::into_inner).remove(&mapping.as_ptr().addr());
    let start = mapping.as_ptr().cast_mut().cast();
    // SAFETY: callers pass what `map` returned, so the range is exactly one mapping, which lives as long as `mapping` is borrowed. No Rust
    // code reads through it, by the rule of this module, so nothing in this process depends on its protection.
    let answer = unsafe { libc::mprotect(start, mapping.len(), libc::PROT_NONE) };
    if answer == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// A mapping that is known by where it is, as long as it is there.
struct Mapping(Mmap);

impl Mapping {
    fn known(mapping: Mmap, file: Arc<File>) -> Self {
        let start = mapping.as_ptr().addr();
        let behind = Behind { end: start.saturating_add(mapping.len()), file };
        MAPPINGS.write().unwrap_or_else(PoisonError::into_inner).insert(start, behind);
        Self(mapping)
    }
}

impl AsRef<[u8]> for Mapping {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        MAPPINGS.write().unwrap_or_else(PoisonError::into_inner).remove(&self.0.as_ptr().addr());
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn a_mapping_outlives_its_file_handle() {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(b"kindling").unwrap();
        let bytes = map(&file).unwrap();
        drop(file);
        assert_eq!(bytes.slice(2..4).len(), 2);
    }

    #[test]
    fn an_empty_file_maps_to_nothing() {
        assert!(map(&tempfile::tempfile().unwrap()).unwrap().is_empty());
    }

    /// The rule of this module at work: a base that is truncated under a mapping gives an error from the kernel's
    /// copy, and the process lives on.
    #[test]
    fn writing_truncated_pages_is_an_error_and_not_a_signal() {
        let file = tempfile::tempfile().unwrap();
        file.set_len(1 << 20).unwrap();
        let bytes = map(&file).unwrap();
        file.set_len(0).unwrap();
        let (_reader, mut writer) = io::pipe().unwrap();
        assert!(writer.write(&bytes.slice(8192..12288)).is_err());
    }

    #[test]
    fn mapped_bytes_know_their_file() {
        let mut files = [tempfile::tempfile().unwrap(), tempfile::tempfile().unwrap()];
        for (len, file) in [9_000, 5].into_iter().zip(&mut files) {
            file.write_all(&vec![1; len]).unwrap();
        }
        let [first, second] = files.map(|file| map(&file).unwrap());
        let (file, at) = file_behind(&first.slice(4000..9000)).unwrap();
        assert_eq!((file.metadata().unwrap().len(), at), (9_000, 4_000));
        assert!(Arc::ptr_eq(&file, &file_behind(&first).unwrap().0));
        let (other, at) = file_behind(&second.slice(5..)).unwrap();
        assert_eq!((other.metadata().unwrap().len(), at), (5, 5));
        assert!(file_behind(&[0; 9]).is_none());
        drop(first);
        assert_eq!(Arc::strong_count(&file), 1, "a mapping that is gone is still known");
    }
}
