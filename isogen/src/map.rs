//! The memory mapping: the one place in the workspace that needs `unsafe`.
//!
//! A mapped image lets a server hand base bytes to the kernel without copying them. The price is a rule that all users
//! of [`map`] keep: **our own code never looks at mapped bytes**. The slices go into a vectored write, where the
//! kernel reads them; should somebody truncate the file meanwhile, that write fails with an error. Code that
//! dereferenced the same page would be ended by a signal. Whatever this crate itself must look at, it reads with
//! positioned reads through [`Source`](crate::Source).

#![allow(unsafe_code)]

use std::fs::File;
use std::io;

use bytes::Bytes;

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
    // SAFETY: `Mmap::map` asks that the file is not changed or truncated while the mapping is *dereferenced*, since
    // Rust code would then see bytes change under a shared reference, or fault. The mapping is private, read-only and
    // wrapped at once in `Bytes`; by the rule above, the slices are handed to the kernel (`writev`, `sendmsg`) and no
    // Rust code reads through them, so neither can happen in this process.
    let mapping = unsafe { memmap2::Mmap::map(file)? };
    // A page that is missing is to bring itself, not the megabytes around it which the kernel reads ahead for mappings:
    // whoever wants more of the file says so (`Source::announce`). Where the kernel takes no advice, it is only slower.
    let _ = mapping.advise(memmap2::Advice::Random);
    Ok(Bytes::from_owner(mapping))
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
}
