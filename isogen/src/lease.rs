//! Leases of files: nobody writes to a file while somebody has one, and who has one is told before.
//!
//! The kernel keeps whoever opens a leased file for writing, or cuts it, waiting until the lease is given back: for 45 seconds at
//! most (`/proc/sys/fs/lease-break-time`). It says so by [`SIGNAL`], which does nothing unless somebody listens to it.
//!
//! It takes a file of the caller's own, or the capability `CAP_LEASE`, and one that nobody has open for writing.
//!
//! A lease is what makes it safe to have the kernel send pages of a file in the place of copies: pages that wait in a socket are still
//! the file's. [`unsent`] tells when none wait any more. Both are calls that no library below has a safe form of.

#![allow(unsafe_code)]

use std::ffi::c_int;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::sync::Arc;

/// The number of the signal that says that a lease is called in: `SIGURG`, which is ignored by default.
pub const SIGNAL: i32 = libc::SIGURG;

/// Chooses the signal: what `libc` does not name, and what is the same on all architectures of live images.
const F_SETSIG: i32 = 10;

/// That nobody writes to a file. It is given back when this is dropped.
#[derive(Debug)]
pub struct Lease(Arc<File>);

impl Lease {
    /// Takes a lease of a file that is open for reading.
    ///
    /// # Errors
    ///
    /// Fails where the file is open for writing, by anybody, belongs to somebody else, or is on a file system without leases.
    pub fn take(file: Arc<File>) -> io::Result<Self> {
        control(&file, F_SETSIG, SIGNAL)?;
        // Otherwise the signal is for the thread that takes the lease, and is lost once that has ended.
        let process = i32::try_from(std::process::id()).map_err(io::Error::other)?;
        control(&file, libc::F_SETOWN, process)?;
        control(&file, libc::F_SETLEASE, libc::F_RDLCK)?;
        Ok(Self(file))
    }

    /// Whether somebody waits for its end, or it has ended.
    #[must_use]
    pub fn is_called_in(&self) -> bool {
        // The kernel tells what it is going to be.
        control(&self.0, libc::F_GETLEASE, 0).ok() != Some(libc::F_RDLCK)
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        // Where it has ended already, there is nothing to be done.
        let _ = control(&self.0, libc::F_SETLEASE, libc::F_UNLCK);
    }
}

/// One of those calls that take a number and answer with one.
fn control(file: &File, command: i32, value: i32) -> io::Result<i32> {
    // SAFETY: the descriptor is open as long as the file is borrowed, and these commands take no pointer.
    let answer = unsafe { libc::fcntl(file.as_raw_fd(), command, value) };
    if answer < 0 { Err(io::Error::last_os_error()) } else { Ok(answer) }
}

/// How many bytes a TCP socket has on their way: sent or not, the other side has not said yet that it has them.
///
/// # Errors
///
/// Fails where it is no such socket.
pub fn unsent(socket: impl AsFd) -> io::Result<usize> {
    let mut len: c_int = 0;
    // SAFETY: the descriptor is open as long as it is borrowed, and the call (`SIOCOUTQ`, by the name that terminals have for the same
    // number) writes one `int` to where it is told.
    let answer = unsafe { libc::ioctl(socket.as_fd().as_raw_fd(), libc::TIOCOUTQ, &raw mut len) };
    if answer < 0 { Err(io::Error::last_os_error()) } else { Ok(usize::try_from(len).unwrap_or_default()) }
}

#[cfg(test)]
mod tests {
    use std::fs::OpenOptions;
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};
    use std::os::unix::fs::OpenOptionsExt;

    use rustix::fs::OFlags;

    use super::*;

    #[test]
    fn who_wants_to_write_waits() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let path = file.into_temp_path();
        let lease = Lease::take(Arc::new(File::open(&path).unwrap())).unwrap();
        assert!(!lease.is_called_in());
        File::open(&path).unwrap();
        assert!(!lease.is_called_in());
        // Who does not want to wait need not.
        let flags = i32::try_from(OFlags::NONBLOCK.bits()).unwrap();
        let at_once = || OpenOptions::new().write(true).custom_flags(flags).open(&path);
        assert_eq!(at_once().unwrap_err().kind(), io::ErrorKind::WouldBlock);
        assert!(lease.is_called_in());
        drop(lease);
        at_once().unwrap();
        Lease::take(Arc::new(File::open(&path).unwrap())).unwrap();
    }

    #[test]
    fn what_somebody_writes_to_is_not_leased() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let error = Lease::take(Arc::new(File::open(file.path()).unwrap())).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
    }

    #[test]
    fn what_a_client_does_not_take_is_unsent() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let mut socket = listener.accept().unwrap().0;
        assert_eq!(unsent(&socket).unwrap(), 0);
        socket.set_nonblocking(true).unwrap();
        let mut sent = 0;
        while let Ok(len) = socket.write(&[0; 9999]) {
            sent += len;
        }
        assert!(unsent(&socket).unwrap() > 0);
        client.read_exact(&mut vec![0; sent]).unwrap();
        while unsent(&socket).unwrap() > 0 {
            std::thread::yield_now();
        }
        assert!(unsent(tempfile::tempfile().unwrap()).is_err());
    }
}
