//! Writes that bypass the runtime, and the kernel's view of what a client has acknowledged.

use std::io::{self, IoSlice};

use super::closing::is_over;
use super::sys::unacked_bytes;
use crate::http::listener::Socket;

/// What the watch over a connection needs beside reading and writing. Whatever stands between it and the socket passes it
/// on.
pub(in crate::http) trait Direct {
    /// Writes without waiting, whether or not the kernel has said that it is worth trying: it says so only when a
    /// good part of what it holds is gone, which a slow client may need a long time for.
    fn write_now(&self, slices: &[IoSlice<'_>]) -> io::Result<usize>;

    /// How many bytes the kernel holds for the client: those that it has not acknowledged.
    fn unsent(&self) -> usize;

    /// Lets the end of the connection throw away what was not sent. Otherwise the kernel keeps it for a client that takes
    /// nothing.
    fn forget_unsent(&self);
}

impl Direct for Socket {
    fn write_now(&self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        // Both are in the mode in which nothing waits, since they belong to the runtime.
        Ok(rustix::io::retry_on_intr(|| match self {
            Self::Tcp(socket) => rustix::io::writev(socket, slices),
            Self::Unix(socket) => rustix::io::writev(socket, slices),
        })?)
    }

    fn unsent(&self) -> usize {
        let Self::Tcp(socket) = self else { return 0 };
        match unacked_bytes(socket).unwrap_or(usize::MAX) {
            1.. if is_over(socket) => 0,
            len => len,
        }
    }

    fn forget_unsent(&self) {
        if let Self::Tcp(socket) = self {
            let _ = socket.set_zero_linger();
        }
    }
}
