//! Adds the number of needed and free bytes to the error of a write to a full disk.

use std::fs::File;
use std::io::{self, ErrorKind};
use std::os::unix::fs::MetadataExt;

/// The error of a write to a full disk.
#[derive(Debug, thiserror::Error)]
#[error("no space left on the disk: the file needs {needed} bytes, {free} bytes are free")]
struct FullDisk {
    needed: u64,
    free: u64,
}

/// If `error` means that the disk is full, adds the number of needed and free bytes to it. Returns other errors
/// unchanged. `needed` is the length of the complete file.
#[must_use]
pub fn explain_full_disk(error: io::Error, file: &File, needed: u64) -> io::Error {
    /// The unit of `st_blocks`.
    const BLOCK_LEN: u64 = 512;
    if error.kind() != ErrorKind::StorageFull {
        return error;
    }
    let (Ok(disk), Ok(metadata)) = (rustix::fs::fstatvfs(file), file.metadata()) else { return error };
    // The blocks of the incomplete file are free after it is deleted.
    let occupied = metadata.blocks().saturating_mul(BLOCK_LEN);
    let free = disk.f_bavail.saturating_mul(disk.f_frsize).saturating_add(occupied);
    io::Error::new(ErrorKind::StorageFull, FullDisk { needed, free })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn full_disk_is_explained_and_other_errors_are_unchanged() {
        let file = tempfile::tempfile().unwrap();
        let full = || io::Error::from(rustix::io::Errno::NOSPC);
        let error = explain_full_disk(full(), &file, 1 << 60);
        assert_eq!(error.kind(), ErrorKind::StorageFull);
        let text = error.to_string();
        assert!(
            text.contains("needs 1152921504606846976 bytes, ") && text.ends_with(" bytes are free"),
            "{text}"
        );
        let other = explain_full_disk(ErrorKind::PermissionDenied.into(), &file, 1);
        assert_eq!(other.to_string(), io::Error::from(ErrorKind::PermissionDenied).to_string());
    }
}
