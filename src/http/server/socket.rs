//! A socket of either kind.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll};

use isogen::lease::unsent;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpStream, UnixStream};
use tokio::task::coop;

use super::closing::is_over;

/// How much is written in the time of one operation, as tokio counts them: a task has its turn for 128 of those, and then
/// others of its thread have theirs.
const OPERATION_LEN: usize = 32 << 10;

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
        match unsent(socket).unwrap_or(usize::MAX) {
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

/// Counts a large write as many operations. To tokio it is one, and a stream to a client that is fast enough would keep all
/// others of its thread waiting for as long as 128 of them take.
pub(super) fn counted(
    written: Poll<io::Result<usize>>,
    context: &mut Context<'_>,
) -> Poll<io::Result<usize>> {
    if let Poll::Ready(Ok(len)) = written {
        for _ in 0..len / OPERATION_LEN {
            let Poll::Ready(operation) = coop::poll_proceed(context) else { break };
            operation.made_progress();
        }
    }
    written
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
        let written = match self.get_mut() {
            Self::Tcp(socket) => Pin::new(socket).poll_write(context, bytes),
            Self::Unix(socket) => Pin::new(socket).poll_write(context, bytes),
        };
        counted(written, context)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = match self.get_mut() {
            Self::Tcp(socket) => Pin::new(socket).poll_write_vectored(context, slices),
            Self::Unix(socket) => Pin::new(socket).poll_write_vectored(context, slices),
        };
        counted(written, context)
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

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use super::*;

    /// How many writes of a length a task has its turn for.
    async fn turn(len: usize) -> usize {
        let mut writes = 0;
        let turn = poll_fn(move |context| {
            while coop::has_budget_remaining() && writes < 1000 {
                assert!(
                    matches!(counted(Poll::Ready(Ok(len)), context), Poll::Ready(Ok(same)) if same == len)
                );
                writes += 1;
            }
            Poll::Ready(writes)
        });
        tokio::spawn(turn).await.unwrap()
    }

    #[tokio::test]
    async fn large_writes_let_others_have_their_turn_sooner() {
        assert_eq!(turn(1 << 20).await, 4);
        assert_eq!(turn(4 << 20).await, 1);
        assert_eq!(turn(64 << 20).await, 1);
        // The operation itself is counted by tokio.
        assert_eq!(turn(2 << 10).await, 1000);
    }
}
