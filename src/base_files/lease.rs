//! File leases: the kernel delays writers of a leased file and notifies this process first.
//!
//! When a process opens a leased file for writing, or truncates it, the kernel sends [`SIGNAL`] to the lease holder and
//! blocks that process. The block ends when the holder returns the lease, or after at most 45 seconds
//! (`/proc/sys/fs/lease-break-time`).
//!
//! The kernel grants a lease only if no process has the file open for writing. The user of this process must own the
//! file, or the process needs the capability `CAP_LEASE`.

use std::fs::File;
use std::io;
use std::sync::Arc;

use crate::sys;

/// The signal for a process that waits for a lease: `SIGURG`, which is ignored by default.
pub(crate) const SIGNAL: i32 = libc::SIGURG;

/// A read lease of a file. Dropping it returns the lease to the kernel.
#[derive(Debug)]
pub(crate) struct Lease(Arc<File>);

impl Lease {
    /// Acquires a lease for a file that is open for reading. The lease belongs to this one open file handle.
    ///
    /// # Errors
    ///
    /// Returns [`WouldBlock`](io::ErrorKind::WouldBlock) if any process has the file open for writing. Returns other
    /// errors if another user owns the file, or if its file system does not support leases.
    pub(crate) fn acquire(file: Arc<File>) -> io::Result<Self> {
        sys::take_lease(&file, SIGNAL)?;
        Ok(Self(file))
    }

    /// Returns `true` if a process waits for the lease, or if the kernel has removed it.
    pub(crate) fn is_breaking(&self) -> bool {
        !sys::holds_lease(&self.0)
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        // An error means that the kernel has already removed the lease.
        let _ = sys::release_lease(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use std::fs::OpenOptions;
    use std::os::unix::fs::OpenOptionsExt;

    use rustix::fs::OFlags;

    use super::*;

    #[test]
    fn writer_waits_until_the_lease_is_returned() {
        let path = tempfile::NamedTempFile::new().unwrap().into_temp_path();
        let lease = Lease::acquire(Arc::new(File::open(&path).unwrap())).unwrap();
        assert!(!lease.is_breaking());
        File::open(&path).unwrap();
        assert!(!lease.is_breaking());
        // With `NONBLOCK`, a writer gets an error instead of waiting.
        let flags = i32::try_from(OFlags::NONBLOCK.bits()).unwrap();
        let at_once = || OpenOptions::new().write(true).custom_flags(flags).open(&path);
        assert_eq!(at_once().unwrap_err().kind(), io::ErrorKind::WouldBlock);
        assert!(lease.is_breaking());
        drop(lease);
        at_once().unwrap();
        Lease::acquire(Arc::new(File::open(&path).unwrap())).unwrap();
    }

    #[test]
    fn rejects_a_file_that_is_open_for_writing() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let error = Lease::acquire(Arc::new(File::open(file.path()).unwrap())).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
    }
}
