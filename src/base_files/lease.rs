//! File leases: no process writes to a file while this one holds a lease of it, and this process learns before one
//! does.
//!
//! When a process opens a leased file for writing, or truncates it, the kernel sends [`SIGNAL`] to the holder and lets
//! that process wait until the lease is given back, for 45 seconds at most (`/proc/sys/fs/lease-break-time`).
//!
//! A lease needs a file of the process's own user, or the capability `CAP_LEASE`, and no process that has it open for
//! writing.

use std::fs::File;
use std::io;
use std::sync::Arc;

use crate::sys;

/// The signal that reports a process waiting for a lease: `SIGURG`, which is ignored by default.
pub(crate) const SIGNAL: i32 = libc::SIGURG;

/// A read lease of a file. It is given back on drop.
#[derive(Debug)]
pub(crate) struct Lease(Arc<File>);

impl Lease {
    /// Takes a lease of a file that is open for reading. A lease belongs to one open handle.
    ///
    /// # Errors
    ///
    /// Returns [`WouldBlock`](io::ErrorKind::WouldBlock) if any process has the file open for writing, and other errors
    /// if another user owns it or its file system has no leases.
    pub(crate) fn acquire(file: Arc<File>) -> io::Result<Self> {
        sys::take_lease(&file, SIGNAL)?;
        Ok(Self(file))
    }

    /// Reports whether a process waits for the lease, or the kernel has taken it away.
    pub(crate) fn is_breaking(&self) -> bool {
        !sys::holds_lease(&self.0)
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        // An error means that the kernel has taken the lease away already.
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
    fn writer_waits_until_the_lease_is_given_back() {
        let path = tempfile::NamedTempFile::new().unwrap().into_temp_path();
        let lease = Lease::acquire(Arc::new(File::open(&path).unwrap())).unwrap();
        assert!(!lease.is_breaking());
        File::open(&path).unwrap();
        assert!(!lease.is_breaking());
        // A writer that does not want to wait gets an error instead.
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
