//! A connected TCP or Unix socket.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpStream, UnixStream};
use tokio::task::coop;

/// The number of written bytes that count as one operation in tokio's task budget. A task may perform 128 operations
/// before the other tasks of its thread run.
const OPERATION_LEN: usize = 32 << 10;

#[derive(Debug)]
pub(in crate::http) enum Socket {
    Tcp(TcpStream),
    Unix(UnixStream),
}

/// A socket detached from its runtime, to move it to another one.
#[derive(Debug)]
pub(super) enum DetachedSocket {
    Tcp(std::net::TcpStream),
    Unix(std::os::unix::net::UnixStream),
}

impl DetachedSocket {
    pub(super) fn from_socket(socket: Socket) -> io::Result<Self> {
        match socket {
            Socket::Tcp(socket) => socket.into_std().map(Self::Tcp),
            Socket::Unix(socket) => socket.into_std().map(Self::Unix),
        }
    }

    pub(super) fn attach(self) -> io::Result<Socket> {
        match self {
            Self::Tcp(socket) => TcpStream::from_std(socket).map(Socket::Tcp),
            Self::Unix(socket) => UnixStream::from_std(socket).map(Socket::Unix),
        }
    }
}

/// Counts a large write as several operations. tokio counts each write as one operation, so a download to a fast client
/// would delay the other tasks of its thread by up to 128 large writes.
pub(in crate::http) fn charge_task_budget(
    result: Poll<io::Result<usize>>,
    context: &mut Context<'_>,
) -> Poll<io::Result<usize>> {
    if let Poll::Ready(Ok(len)) = result {
        for _ in 0..len / OPERATION_LEN {
            let Poll::Ready(operation) = coop::poll_proceed(context) else { break };
            operation.made_progress();
        }
    }
    result
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
        let result = match self.get_mut() {
            Self::Tcp(socket) => Pin::new(socket).poll_write(context, bytes),
            Self::Unix(socket) => Pin::new(socket).poll_write(context, bytes),
        };
        charge_task_budget(result, context)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let result = match self.get_mut() {
            Self::Tcp(socket) => Pin::new(socket).poll_write_vectored(context, slices),
            Self::Unix(socket) => Pin::new(socket).poll_write_vectored(context, slices),
        };
        charge_task_budget(result, context)
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

    /// Returns the number of writes of `len` bytes before other tasks run.
    async fn writes_per_turn(len: usize) -> usize {
        let mut writes = 0;
        let turn = poll_fn(move |context| {
            while coop::has_budget_remaining() && writes < 1000 {
                assert!(
                    matches!(charge_task_budget(Poll::Ready(Ok(len)), context), Poll::Ready(Ok(same)) if same == len)
                );
                writes += 1;
            }
            Poll::Ready(writes)
        });
        tokio::spawn(turn).await.unwrap()
    }

    #[tokio::test]
    async fn large_writes_use_up_the_budget_sooner() {
        assert_eq!(writes_per_turn(1 << 20).await, 4);
        assert_eq!(writes_per_turn(4 << 20).await, 1);
        assert_eq!(writes_per_turn(64 << 20).await, 1);
        // For a short write, only tokio itself counts an operation.
        assert_eq!(writes_per_turn(2 << 10).await, 1000);
    }
}
