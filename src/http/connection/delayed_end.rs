//! Handles clients that disconnect before they have received the whole response.
//!
//! hyper drops a request when its connection ends, and then the work for the request stops. A [`DelayedEnd`] is the
//! stream that hyper reads from. It reports a reset to hyper immediately. The end of the received bytes is ambiguous:
//! the client may have left, or it may send nothing more but still wait for the response (`nc -N`). So hyper learns of
//! this end only after the response was sent, or after the server had nothing to send for [`PATIENCE`]. The same
//! applies while a handler waits for more of a request body, because hyper may already have the last bytes.
//!
//! hyper does not read while it holds bytes of the next request, so it would not notice that the client has left. A
//! [`DelayedEnd`] then reads ahead.

use std::io::{self, IoSlice};
use std::mem::{self, MaybeUninit};
use std::pin::Pin;
use std::task::{Context, Poll, Waker, ready};
use std::time::Duration;

use bytes::BytesMut;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep};

use crate::http::zerocopy::ConnectionProgress;

/// How long a client that sends nothing more may wait for the next bytes of the response. Such a client cannot be
/// distinguished from a program that has ended until the server writes.
const PATIENCE: Duration = Duration::from_secs(2);
/// Maximum number of bytes to read ahead. If the client has sent more bytes, the end of the stream is noticed only
/// after hyper has read some of these bytes.
const MAX_AHEAD: usize = 16 << 10;

/// A stream that delays its end while a request is in progress.
pub(super) struct DelayedEnd<S> {
    stream: S,
    progress: ConnectionProgress,
    /// Whether hyper has flushed since its last write. If hyper saw the end of the stream before the flush, it would
    /// end the response early.
    is_flushed: bool,
    /// Runs while the client sends nothing more and the server has nothing to send.
    patience: Option<Pin<Box<Sleep>>>,
    /// The task that waits for the end of the stream. It is woken after a flush, because hyper would not read again
    /// otherwise.
    reader: Option<Waker>,
    /// Whether hyper waits for received bytes.
    is_reading: bool,
    /// The bytes read ahead.
    ahead: BytesMut,
    /// Whether the stream has ended after the bytes in `ahead`.
    has_ended: bool,
}

impl<S> DelayedEnd<S> {
    pub(super) fn new(stream: S, progress: ConnectionProgress) -> Self {
        Self {
            stream,
            progress,
            is_flushed: true,
            patience: None,
            reader: None,
            is_reading: false,
            ahead: BytesMut::new(),
            has_ended: false,
        }
    }

    /// Waits until hyper may learn that the client sends nothing more.
    fn poll_end(&mut self, context: &mut Context<'_>) -> Poll<()> {
        if self.is_flushed && !self.progress.is_responding() {
            return Poll::Ready(());
        }
        self.reader = Some(context.waker().clone());
        if !self.is_flushed {
            return Poll::Pending;
        }
        self.patience.get_or_insert_with(|| Box::pin(sleep(PATIENCE))).as_mut().poll(context)
    }

    fn record_write(&mut self) {
        self.is_flushed = false;
        self.patience = None;
    }

    fn record_flush(&mut self) {
        if !mem::replace(&mut self.is_flushed, true)
            && let Some(reader) = self.reader.take()
        {
            reader.wake();
        }
    }
}

impl<S: AsyncRead + Unpin> DelayedEnd<S> {
    /// Reads ahead while a request is in progress and hyper does not read. Returns an error if the client has reset the
    /// connection, or if the stream has ended and [`PATIENCE`] is over.
    fn poll_ahead(&mut self, context: &mut Context<'_>) -> io::Result<()> {
        while !self.has_ended && self.ahead.len() < MAX_AHEAD {
            let mut bytes = [MaybeUninit::uninit(); 4096];
            let mut buf = ReadBuf::uninit(&mut bytes);
            let Poll::Ready(read) = Pin::new(&mut self.stream).poll_read(context, &mut buf) else {
                return Ok(());
            };
            read?;
            self.has_ended = buf.filled().is_empty();
            self.ahead.extend_from_slice(buf.filled());
        }
        if self.has_ended && self.poll_end(context).is_ready() {
            return Err(io::ErrorKind::ConnectionAborted.into());
        }
        Ok(())
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for DelayedEnd<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        this.is_reading = false;
        if !this.ahead.is_empty() {
            let len = this.ahead.len().min(buf.remaining());
            buf.put_slice(&this.ahead.split_to(len));
            return Poll::Ready(Ok(()));
        }
        let before = buf.filled().len();
        let read = if this.has_ended {
            Poll::Ready(Ok(()))
        } else {
            Pin::new(&mut this.stream).poll_read(context, buf)
        };
        let read = match read {
            Poll::Ready(Ok(())) if buf.filled().len() == before => this.poll_end(context).map(Ok),
            read => read,
        };
        this.is_reading = read.is_pending();
        read
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for DelayedEnd<S> {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.poll_write_vectored(context, &[IoSlice::new(bytes)])
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        this.record_write();
        Pin::new(&mut this.stream).poll_write_vectored(context, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        ready!(Pin::new(&mut this.stream).poll_flush(context))?;
        this.record_flush();
        if !this.is_reading && this.progress.is_responding() {
            this.poll_ahead(context)?;
        }
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::task::Wake;
    use std::thread;

    use axum::Router;
    use axum::body::Body;
    use axum::routing::get;
    use futures_util::{StreamExt as _, stream};
    use ignition::network::Cancel;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::{TcpListener, TcpStream};
    use tokio::sync::mpsc::{Receiver, Sender, channel};

    use super::*;
    use crate::http::serve::serve;
    use inventory::api::ApiError;
    use inventory::in_background;

    fn work_until_cancelled(cancel: &Cancel, report: &Sender<&'static str>) -> Result<(), ApiError> {
        report.blocking_send("begun").unwrap();
        while !cancel.is_cancelled() {
            thread::yield_now();
        }
        report.blocking_send("ended").unwrap();
        Ok(())
    }

    /// Reports "ended" when a response is dropped.
    struct ReportOnDrop(Sender<&'static str>);

    impl Drop for ReportOnDrop {
        fn drop(&mut self) {
            self.0.try_send("ended").unwrap();
        }
    }

    /// Returns the next report of the server. The timeout is far above [`PATIENCE`].
    async fn next_report(reports: &mut Receiver<&'static str>) -> Option<&'static str> {
        tokio::time::timeout(PATIENCE * 15, reports.recv()).await.expect("no report from the server")
    }

    /// Sends a request and returns its client, with the reports of the server: `begun`, then `ended`.
    async fn request_work(path: &str) -> (TcpStream, Receiver<&'static str>) {
        let (report, reports) = channel(2);
        let works = {
            let report = report.clone();
            async move || in_background(move |cancel| work_until_cancelled(cancel, &report)).await
        };
        let soon = report.clone();
        let answers_soon = async move || {
            soon.send("begun").await.unwrap();
            tokio::time::sleep(PATIENCE / 4).await;
            "done"
        };
        let endless = async move || {
            report.send("begun").await.unwrap();
            let ended = ReportOnDrop(report.clone());
            let parts = stream::once(async { Ok("part") }).chain(stream::pending::<Result<_, Infallible>>());
            Body::from_stream(parts.inspect(move |_| _ = &ended))
        };
        let routes = [("/work", get(works)), ("/endless", get(endless)), ("/soon", get(answers_soon))];
        let router =
            routes.into_iter().fold(Router::new(), |router, (path, route)| router.route(path, route));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(serve(listener, router, std::future::pending()));
        let mut client = TcpStream::connect(address).await.unwrap();
        client.write_all(format!("GET {path} HTTP/1.1\r\nhost: localhost\r\n\r\n").as_bytes()).await.unwrap();
        (client, reports)
    }

    #[tokio::test]
    async fn work_stops_when_the_client_closes_its_connection() {
        let (client, mut reports) = request_work("/work").await;
        assert_eq!(next_report(&mut reports).await, Some("begun"));
        drop(client);
        assert_eq!(next_report(&mut reports).await, Some("ended"));
    }

    #[tokio::test]
    async fn work_stops_when_the_client_resets_its_connection() {
        let (client, mut reports) = request_work("/work").await;
        assert_eq!(next_report(&mut reports).await, Some("begun"));
        client.set_zero_linger().unwrap();
        drop(client);
        assert_eq!(next_report(&mut reports).await, Some("ended"));
    }

    /// hyper holds bytes of the second request, and therefore does not read.
    #[tokio::test]
    async fn work_stops_when_a_client_with_two_requests_disconnects() {
        for (second, is_reset) in [("GET /soon", false), ("GET /soon", true), ("x", false), ("x", true)] {
            let path = format!("/work HTTP/1.1\r\nhost: localhost\r\n\r\n{second}");
            let (client, mut reports) = request_work(&path).await;
            assert_eq!(next_report(&mut reports).await, Some("begun"));
            if is_reset {
                client.set_zero_linger().unwrap();
            }
            drop(client);
            assert_eq!(next_report(&mut reports).await, Some("ended"));
        }
    }

    #[tokio::test]
    async fn requests_behind_a_pending_one_get_complete_responses() {
        /// Enough requests to exceed [`MAX_AHEAD`].
        const MORE: usize = 1000;
        let (mut client, mut reports) =
            request_work("/soon HTTP/1.1\r\nhost: localhost\r\n\r\nGET /soon").await;
        assert_eq!(next_report(&mut reports).await, Some("begun"));
        let more = "GET /none HTTP/1.1\r\nhost: localhost\r\n\r\n".repeat(MORE);
        let (mut reader, mut writer) = client.split();
        let write = async {
            writer.write_all(more.as_bytes()).await.unwrap();
            writer.shutdown().await.unwrap();
        };
        let read = async {
            let mut answers = String::new();
            reader.read_to_string(&mut answers).await.unwrap();
            answers
        };
        let (answers, ()) = tokio::join!(read, write);
        assert_eq!(answers.matches("HTTP/1.1 200 OK\r\n").count(), 2);
        assert_eq!(answers.matches("HTTP/1.1 404 Not Found\r\n").count(), MORE);
    }

    #[tokio::test]
    async fn half_closed_client_gets_its_response() {
        let (mut client, mut reports) = request_work("/soon").await;
        assert_eq!(next_report(&mut reports).await, Some("begun"));
        client.shutdown().await.unwrap();
        let mut answer = String::new();
        client.read_to_string(&mut answer).await.unwrap();
        assert!(answer.starts_with("HTTP/1.1 200 OK\r\n") && answer.ends_with("done"), "{answer}");
    }

    #[tokio::test]
    async fn half_closed_client_gets_the_responses_to_all_requests_of_one_write() {
        let (mut client, mut reports) =
            request_work("/soon HTTP/1.1\r\nhost: localhost\r\n\r\nGET /soon").await;
        client.shutdown().await.unwrap();
        for _ in 0..2 {
            assert_eq!(next_report(&mut reports).await, Some("begun"));
        }
        let mut answers = String::new();
        client.read_to_string(&mut answers).await.unwrap();
        assert_eq!(answers.matches("HTTP/1.1 200 OK\r\n").count(), 2, "{answers}");
        assert_eq!(answers.matches("\r\n\r\ndone").count(), 2, "{answers}");
    }

    #[tokio::test]
    async fn response_that_never_continues_ends_with_its_client() {
        let (mut client, mut reports) = request_work("/endless").await;
        assert_eq!(next_report(&mut reports).await, Some("begun"));
        let mut answer = Vec::new();
        while !answer.ends_with(b"part\r\n") {
            client.read_buf(&mut answer).await.unwrap();
        }
        client.shutdown().await.unwrap();
        assert_eq!(next_report(&mut reports).await, Some("ended"));
    }

    /// A client that sends nothing more.
    struct EndedClient;

    impl AsyncRead for EndedClient {
        fn poll_read(self: Pin<&mut Self>, _: &mut Context<'_>, _: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }
    }

    impl AsyncWrite for EndedClient {
        fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
            Poll::Ready(Ok(bytes.len()))
        }

        fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }

        fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }
    }

    #[derive(Default)]
    struct WakeFlag(AtomicBool);

    impl Wake for WakeFlag {
        fn wake(self: Arc<Self>) {
            self.0.store(true, Ordering::Relaxed);
        }
    }

    #[tokio::test]
    async fn end_is_passed_on_when_the_response_is_flushed() {
        let progress = ConnectionProgress::new();
        let mut client = DelayedEnd::new(EndedClient, progress.clone());
        let woken = Arc::new(WakeFlag::default());
        let task = Waker::from(Arc::clone(&woken));
        let has_ended = |client: &mut DelayedEnd<EndedClient>| {
            let mut context = Context::from_waker(&task);
            Pin::new(client).poll_read(&mut context, &mut ReadBuf::new(&mut [0])).is_ready()
        };
        // Without a request, or with an incomplete head, the end is not delayed.
        assert!(has_ended(&mut client));
        for _ in 0..2 {
            progress.record_request();
            assert!(!has_ended(&mut client));
            client.write_all(b"response").await.unwrap();
            progress.record_response_end();
            assert!(!has_ended(&mut client) && !woken.0.load(Ordering::Relaxed));
            client.flush().await.unwrap();
            assert!(woken.0.swap(false, Ordering::Relaxed) && has_ended(&mut client));
        }
    }
}
