//! A socket of either kind.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpStream, UnixStream};

/// The connected end of a TCP or a unix socket.
#[derive(Debug)]
pub(super) enum Socket {
    Tcp(TcpStream),
    Unix(UnixStream),
}

/// A socket between two runtimes.
#[derive(Debug)]
pub(super) enum Detached {
    Tcp(std::net::TcpStream),
    Unix(std::os::unix::net::UnixStream),
}

impl Detached {
    /// Takes a socket from the runtime that accepted it.
    pub(super) fn of(socket: Socket) -> io::Result<Self> {
        match socket {
            Socket::Tcp(socket) => socket.into_std().map(Self::Tcp),
            Socket::Unix(socket) => socket.into_std().map(Self::Unix),
        }
    }

    /// Gives it to the runtime that this is called on.
    pub(super) fn attach(self) -> io::Result<Socket> {
        match self {
            Self::Tcp(socket) => TcpStream::from_std(socket).map(Socket::Tcp),
            Self::Unix(socket) => UnixStream::from_std(socket).map(Socket::Unix),
        }
    }
}

/// What the watch over a connection needs beside reading and writing. Whatever stands between it and the socket passes it
/// on.
pub(super) trait Direct {
    /// Writes without waiting, whether or not the kernel has said that it is worth trying: it says so only when a
    /// good part of what it holds is gone, which a slow client may need a long time for.
    fn write_now(&self, slices: &[IoSlice<'_>]) -> io::Result<usize>;

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

    fn forget_unsent(&self) {
        if let Self::Tcp(socket) = self {
            let _ = socket.set_zero_linger();
        }
    }
}

impl AsyncRead for Socket {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Tcp(socket) => Pin::new(socket).poll_read(context, buf),
            Self::Unix(socket) => Pin::new(socket).poll_read(context, buf),
        }
    }
}

impl AsyncWrite for Socket {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Tcp(socket) => Pin::new(socket).poll_write(context, bytes),
            Self::Unix(socket) => Pin::new(socket).poll_write(context, bytes),
        }
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Tcp(socket) => Pin::new(socket).poll_write_vectored(context, slices),
            Self::Unix(socket) => Pin::new(socket).poll_write_vectored(context, slices),
        }
    }

    fn is_write_vectored(&self) -> bool {
        match self {
            Self::Tcp(socket) => socket.is_write_vectored(),
            Self::Unix(socket) => socket.is_write_vectored(),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Tcp(socket) => Pin::new(socket).poll_flush(context),
            Self::Unix(socket) => Pin::new(socket).poll_flush(context),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Tcp(socket) => Pin::new(socket).poll_shutdown(context),
            Self::Unix(socket) => Pin::new(socket).poll_shutdown(context),
        }
    }
}
