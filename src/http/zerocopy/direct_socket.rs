//! Writes that bypass the runtime, and the kernel's view of what a client has acknowledged.

use std::io::{self, IoSlice};

use rustix::net::{RecvFlags, recv};

use super::socket_changes::is_closed;
use crate::http::listener::Socket;
use crate::sys::unacked_bytes;

/// The socket operations that [`TimedSocket`](super::TimedSocket) needs in addition to reading and writing. Each layer
/// between it and the socket passes them on.
pub(in crate::http) trait DirectSocket {
    /// Writes without waiting, even if the kernel has not reported the socket as writable. It reports that only after a
    /// good part of its buffer has been sent, which takes long with a slow client.
    fn write_now(&self, slices: &[IoSlice<'_>]) -> io::Result<usize>;

    /// Returns the number of bytes that the kernel holds because the client has not acknowledged them.
    fn unsent_len(&self) -> usize;

    /// Makes the kernel discard unsent bytes when the connection is closed. Otherwise it keeps them for a client that
    /// reads nothing.
    fn discard_unsent_on_close(&self);
}

/// The most bytes that are discarded before a connection is closed.
const MAX_DISCARDED: usize = 64 << 10;

/// Discards received bytes before a socket is closed. The kernel resets a connection that is closed with unread bytes,
/// and then some clients lose what they have not read.
pub(super) fn discard_received(socket: &Socket) {
    let Socket::Tcp(socket) = socket else { return };
    let (mut bytes, mut discarded) = ([0; 4096], 0);
    while discarded < MAX_DISCARDED
        && let Ok((len @ 1.., _)) = recv(socket, &mut bytes, RecvFlags::DONTWAIT)
    {
        discarded += len;
    }
}

impl DirectSocket for Socket {
    fn write_now(&self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        // Both kinds of socket are non-blocking, because they belong to the runtime.
        Ok(rustix::io::retry_on_intr(|| match self {
            Self::Tcp(socket) => rustix::io::writev(socket, slices),
            Self::Unix(socket) => rustix::io::writev(socket, slices),
        })?)
    }

    fn unsent_len(&self) -> usize {
        let Self::Tcp(socket) = self else { return 0 };
        // If the kernel does not say, bytes count as unsent until the connection ends.
        match unacked_bytes(socket).unwrap_or(usize::MAX) {
            1.. if is_closed(socket) => 0,
            len => len,
        }
    }

    fn discard_unsent_on_close(&self) {
        if let Self::Tcp(socket) = self {
            // If it fails, the kernel keeps the bytes until TCP gives up.
            let _ = socket.set_zero_linger();
        }
    }
}
