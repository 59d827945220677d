//! Maps base images into memory. This is the only module of the crate with `unsafe` code.
//!
//! With a mapped image, a server can pass base bytes to the kernel without copying them. All users of [`map_file`]
//! follow one rule: **no code of this process reads mapped bytes**. The slices go into a vectored write, and the kernel
//! reads them. If a process truncates the file during the write, the write fails with an error. Code that must read the
//! bytes itself uses [`ReadAt`](crate::ReadAt).

#![allow(unsafe_code)]

use std::fs::File;
use std::io;

use bytes::Bytes;
use memmap2::Mmap;

/// A read-only mapping of a whole file.
#[derive(Debug)]
pub struct Mapping(Bytes);

/// Maps the whole file. The mapping of an empty file has no bytes.
///
/// # Errors
///
/// Returns an error if the system cannot map the file, for example a pipe, or a file larger than the address space.
pub fn map_file(file: &File) -> io::Result<Mapping> {
    if file.metadata()?.len() == 0 {
        return Ok(Mapping(Bytes::new()));
    }
    // SAFETY: `Mmap::map` requires that no process changes or truncates the file while Rust code *dereferences* the
    // mapping. Otherwise bytes would change under a shared reference, or an access would fault. The mapping is private
    // and read-only, and it is immediately wrapped in `Bytes`. By the rule of this module, the slices are only passed
    // to the kernel (`writev`, `sendmsg`), and no Rust code reads through them.
    let mapping = unsafe { Mmap::map(file)? };
    // By default, the kernel reads megabytes around a missing page. The server reads ahead the bytes that it needs next
    // (`fadvise`). The advice affects only the speed, so an error is ignored.
    let _ = mapping.advise(memmap2::Advice::Random);
    Ok(Mapping(Bytes::from_owner(mapping)))
}

impl Mapping {
    /// Returns the bytes of the file. The mapping exists until the last slice of the bytes is dropped.
    #[must_use]
    pub fn bytes(&self) -> &Bytes {
        &self.0
    }

    /// Makes all bytes unreadable, also for the kernel. A later `write` of bytes that the kernel has not copied yet
    /// fails with `EFAULT`.
    ///
    /// # Errors
    ///
    /// Returns the error of `mprotect`.
    pub fn revoke_access(&self) -> io::Result<()> {
        if self.0.is_empty() {
            return Ok(());
        }
        let start = self.0.as_ptr().cast_mut().cast();
        // SAFETY: the bytes are exactly one mapping, which exists while they are borrowed. By the rule of this module,
        // no Rust code reads through the mapping, so nothing in this process depends on its protection.
        let answer = unsafe { libc::mprotect(start, self.0.len(), libc::PROT_NONE) };
        if answer == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn bytes_outlive_mapping_and_file_handle() {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(b"kindling").unwrap();
        let bytes = map_file(&file).unwrap().bytes().clone();
        drop(file);
        assert_eq!(bytes.slice(2..4).len(), 2);
    }

    #[test]
    fn empty_file_has_empty_bytes() {
        let mapping = map_file(&tempfile::tempfile().unwrap()).unwrap();
        assert!(mapping.bytes().is_empty());
        mapping.revoke_access().unwrap();
    }

    /// Follows the rule of this module: the kernel's copy of truncated pages fails, and the process continues.
    #[test]
    fn write_of_truncated_pages_is_an_error() {
        let file = tempfile::tempfile().unwrap();
        file.set_len(1 << 20).unwrap();
        let mapping = map_file(&file).unwrap();
        file.set_len(0).unwrap();
        let (_reader, mut writer) = io::pipe().unwrap();
        assert!(writer.write(&mapping.bytes().slice(8192..12288)).is_err());
    }

    #[test]
    fn write_of_forbidden_bytes_is_an_error() {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&[7; 9000]).unwrap();
        let mapping = map_file(&file).unwrap();
        let (_reader, mut writer) = io::pipe().unwrap();
        assert_eq!(writer.write(&mapping.bytes().slice(..9)).unwrap(), 9);
        mapping.revoke_access().unwrap();
        assert_eq!(writer.write(&mapping.bytes().slice(..9)).unwrap_err().raw_os_error(), Some(libc::EFAULT));
    }
}
