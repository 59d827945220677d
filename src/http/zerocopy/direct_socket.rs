//! Socket operations for timeouts: direct writes that bypass the runtime, and the number of unacknowledged bytes.

use std::io::{self, IoSlice};

use rustix::net::{RecvFlags, recv};

use super::socket_changes::is_closed;
use crate::http::listener::Socket;
use crate::sys::unacked_bytes;

/// The socket operations that [`TimedSocket`](super::TimedSocket) needs in addition to reading and writing. Each layer
/// between the `TimedSocket` and the socket forwards these operations.
pub(in crate::http) trait DirectSocket {
    /// Writes without waiting, even if the kernel has not reported the socket as writable. The kernel reports this only
    /// after a large part of its send buffer was sent, which takes long for a slow client.
    fn write_now(&self, slices: &[IoSlice<'_>]) -> io::Result<usize>;

    /// Returns the number of bytes that the kernel holds because the client has not acknowledged them.
    fn unsent_len(&self) -> usize;

    /// Makes the kernel discard unsent bytes when the connection is closed. By default, the kernel keeps them for a
    /// client that reads nothing.
    fn discard_unsent_on_close(&self);
}

/// Maximum number of bytes to discard before a connection is closed.
const MAX_DISCARDED: usize = 64 << 10;

/// Reads and discards received bytes before a socket is closed. If a socket is closed with unread bytes, the kernel
/// resets the connection, and some clients then lose response bytes that they have not read.
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
        // Both kinds of socket are non-blocking, as the runtime requires.
        Ok(rustix::io::retry_on_intr(|| match self {
            Self::Tcp(socket) => rustix::io::writev(socket, slices),
            Self::Unix(socket) => rustix::io::writev(socket, slices),
        })?)
    }

    fn unsent_len(&self) -> usize {
        let Self::Tcp(socket) = self else { return 0 };
        // If the kernel reports no number, all bytes count as unsent until the connection ends.
        match unacked_bytes(socket).unwrap_or(usize::MAX) {
            1.. if is_closed(socket) => 0,
            len => len,
        }
    }

    fn discard_unsent_on_close(&self) {
        if let Self::Tcp(socket) = self {
            // If this fails, the kernel keeps the bytes until the TCP timeout.
            let _ = socket.set_zero_linger();
        }
    }
}
