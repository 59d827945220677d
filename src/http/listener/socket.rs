//! A socket of either kind.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpStream, UnixStream};
use tokio::task::coop;

/// How much is written in the time of one operation, as tokio counts them: a task has its turn for 128 of those, and then
/// others of its thread have theirs.
const OPERATION_LEN: usize = 32 << 10;

/// The connected end of a TCP or a unix socket.
#[derive(Debug)]
pub(in crate::http) enum Socket {
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

/// Counts a large write as many operations. To tokio it is one, and a stream to a client that is fast enough would keep all
/// others of its thread waiting for as long as 128 of them take.
pub(in crate::http) fn count_as_operations(
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
        count_as_operations(written, context)
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
        count_as_operations(written, context)
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
                    matches!(count_as_operations(Poll::Ready(Ok(len)), context), Poll::Ready(Ok(same)) if same == len)
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
        // The operation itself is count_as_operations by tokio.
        assert_eq!(turn(2 << 10).await, 1000);
    }
}
