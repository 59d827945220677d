//! Clients that leave before their answer begins.
//!
//! hyper drops a request when its connection ends, and the work for it stops. A [`Hangup`] is the stream that hyper reads
//! from. A reset ends the connection at once. The end of what a client sends can also mean that it sends nothing more but
//! still waits (`nc -N`), so hyper learns of it only after the answer is sent, or after [`PATIENCE`] without an answer.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep};

use crate::http::zerocopy::Progress;

/// How long a client that sends nothing more waits for an answer to begin. A program that has ended looks the same until the
/// server writes.
const PATIENCE: Duration = Duration::from_secs(2);

/// A stream that delays its end while a request is being answered.
pub(super) struct Hangup<S> {
    stream: S,
    progress: Progress,
    /// Whether hyper has read anything.
    has_read: bool,
    /// Whether hyper has written anything since it last read.
    has_begun: bool,
    /// Whether hyper has flushed since it last wrote. It takes an end before that for the end of the answer.
    is_flushed: bool,
    /// Runs while the client has ended its side and no answer has begun.
    patience: Option<Pin<Box<Sleep>>>,
}

impl<S> Hangup<S> {
    pub(super) fn new(stream: S, progress: Progress) -> Self {
        Self { stream, progress, has_read: false, has_begun: false, is_flushed: true, patience: None }
    }

    /// Waits before hyper learns that the client sends nothing more.
    fn poll_end(&mut self, context: &mut Context<'_>) -> Poll<()> {
        // hyper looks for an end before it hands over a request that it has read, and while its body is being read.
        let is_asked = self.has_read && !self.progress.is_idle();
        if !is_asked && self.is_flushed {
            return Poll::Ready(());
        }
        if self.has_begun {
            // hyper reads again after the answer.
            return Poll::Pending;
        }
        self.patience.get_or_insert_with(|| Box::pin(sleep(PATIENCE))).as_mut().poll(context)
    }

    fn writes(&mut self) {
        self.has_begun = true;
        self.is_flushed = false;
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Hangup<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let before = buf.filled().len();
        ready!(Pin::new(&mut this.stream).poll_read(context, buf))?;
        if buf.filled().len() == before {
            return this.poll_end(context).map(Ok);
        }
        this.has_read = true;
        // What comes while an answer is sent is the next request.
        this.has_begun &= !this.is_flushed;
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Hangup<S> {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        this.writes();
        Pin::new(&mut this.stream).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        this.writes();
        Pin::new(&mut this.stream).poll_write_vectored(context, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        ready!(Pin::new(&mut this.stream).poll_flush(context))?;
        this.is_flushed = true;
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use axum::Router;
    use axum::routing::get;
    use ignition::network::Cancel;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::{TcpListener, TcpStream};
    use tokio::sync::mpsc::{Receiver, Sender, channel};

    use super::*;
    use crate::api_error::ApiError;
    use crate::http::listener::Limits;
    use crate::http::serve::serve_within;
    use crate::inventory::in_background;

    /// Works until it is cancelled.
    fn work(cancel: &Cancel, tell: &Sender<&'static str>) -> Result<(), ApiError> {
        tell.blocking_send("begun").unwrap();
        while !cancel.is_cancelled() {
            thread::yield_now();
        }
        tell.blocking_send("ended").unwrap();
        Ok(())
    }

    /// What the server reports next. The bound is far above [`PATIENCE`].
    async fn next(told: &mut Receiver<&'static str>) -> Option<&'static str> {
        tokio::time::timeout(PATIENCE * 15, told.recv()).await.expect("the server reports nothing")
    }

    /// A client that has asked for work in the background. What the server reports: `begun`, then `ended`.
    async fn asked(path: &str) -> (TcpStream, Receiver<&'static str>) {
        let (tell, told) = channel(2);
        let works = {
            let tell = tell.clone();
            async move || in_background(move |cancel| work(cancel, &tell)).await
        };
        let answers_soon = async move || {
            tell.send("begun").await.unwrap();
            tokio::time::sleep(PATIENCE / 4).await;
            "done"
        };
        let router = Router::new().route("/work", get(works)).route("/soon", get(answers_soon));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(serve_within(Limits::default(), listener, router, std::future::pending()));
        let mut client = TcpStream::connect(address).await.unwrap();
        client.write_all(format!("GET {path} HTTP/1.1\r\nhost: localhost\r\n\r\n").as_bytes()).await.unwrap();
        (client, told)
    }

    #[tokio::test]
    async fn work_stops_when_the_client_closes_its_connection() {
        let (client, mut told) = asked("/work").await;
        assert_eq!(next(&mut told).await, Some("begun"));
        drop(client);
        assert_eq!(next(&mut told).await, Some("ended"));
    }

    #[tokio::test]
    async fn work_stops_when_the_client_resets_its_connection() {
        let (client, mut told) = asked("/work").await;
        assert_eq!(next(&mut told).await, Some("begun"));
        client.set_zero_linger().unwrap();
        drop(client);
        assert_eq!(next(&mut told).await, Some("ended"));
    }

    #[tokio::test]
    async fn a_client_that_sends_nothing_more_gets_its_answer() {
        let (mut client, mut told) = asked("/soon").await;
        assert_eq!(next(&mut told).await, Some("begun"));
        client.shutdown().await.unwrap();
        let mut answer = String::new();
        client.read_to_string(&mut answer).await.unwrap();
        assert!(answer.starts_with("HTTP/1.1 200 OK\r\n") && answer.ends_with("done"), "{answer}");
    }
}
