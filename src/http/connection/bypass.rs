//! The fast path: responses to range requests for recently used images, without hyper.
//!
//! A machine reads its image in thousands of short ranges. For each of them, most of the server's own work is to parse
//! the request and to write the response head. A [`RangeBypass`] is the stream that hyper reads from, and it inspects
//! the received bytes first. If they are a plain request for one range of an image that a client requested within the
//! last half second, the bypass sends the response itself, and hyper never receives the request. The bypass passes all
//! other bytes to hyper unchanged.
//!
//! The responses are byte for byte the same as hyper's, except for the time (`tests/images/fast_path.rs`).
//! `--fast-path off` passes every request to hyper, which then responds from the same cache. A range of 2 KiB then
//! takes 25,865 instructions instead of 11,839, and 17 system calls instead of 15, including the client's part
//! (`.ci/instructions connection-image-2KiB connection-2KiB-hyper`).
//!
//! The table compares both modes on 32 connections. A rate is relative to nginx with `sendfile` or with buffers,
//! whichever is faster, as the median of nine rounds. The promise is the ratio in SPECIFICATION.md. The last column is
//! the server's CPU time with the fast path divided by the CPU time without it (lowest and highest round):
//!
//! | range | rate, on | rate, off | promise | CPU time, on to off |
//! |---|---|---|---|---|
//! | 2 KiB, two runs | 1.10, 1.49 | 0.90, 1.02 | 1.00 | 0.77 (0.50 to 0.86), 0.74 (0.58 to 0.95) |
//! | 16 KiB | 1.06 | 0.93 | 1.05 | 0.77 (0.59 to 0.96) |
//! | 64 KiB | 1.47 | 1.35 | 1.25 | 0.78 (0.63 to 0.87) |
//! | 2 KiB, TLS, two runs | 1.19, 1.22 | 1.12, 1.02 | 1.15 | 0.77 (0.62 to 1.19), 0.75 (0.60 to 1.02) |
//! | 16 KiB, TLS | 1.20 | 1.11 | 1.25 | 0.90 (0.81 to 1.02) |
//! | 64 KiB, TLS | 1.34 | 0.93 | 1.3 | 0.85 (0.63 to 1.13) |
//!
//! Command: `bench-http --rounds 9 --seconds 0.5 --only k-32 --without-fast-path`, TCP with `reno`, on two cores under
//! a load of 8 to 10 from other programs. Single rounds differ considerably. Only the CPU time of plain ranges is lower
//! in every round. The row "2 KiB, TLS" keeps its promise with the fast path and breaks it without, in both runs. The
//! row "16 KiB, TLS" breaks its promise in both modes.
//!
//! The bypass and hyper must not each receive a part of the same request. So the bypass sends responses only while
//! hyper has no request in progress, complete or incomplete. Once hyper has received anything except one complete
//! request at a time, the bypass does nothing for the rest of the connection.

use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use axum::body::Bytes;
use httparse::{EMPTY_HEADER, Request, Status};
use hyper::body::{Body, Buf};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::host_header;
use crate::http::zerocopy::ConnectionProgress;

/// Maximum number of headers in a request that the bypass handles. Only browsers send more, and they send few requests.
const MAX_HEADERS: usize = 24;
/// Headers that do not change the response for an image. A request with any other header is passed to hyper.
const IGNORED: [&str; 6] =
    ["user-agent", "accept", "accept-encoding", "accept-language", "cache-control", "pragma"];

/// A stream that responds to range requests for cached images and passes all other bytes to hyper.
pub(super) struct RangeBypass<S, A, B> {
    stream: S,
    /// A function that receives a URL and the value of `Range`. If the image is cached, the function writes the
    /// response head and returns the body.
    answer: A,
    progress: ConnectionProgress,
    hyper: HyperState,
    /// The unsent parts of a response: its head, the current frame of its body (`bytes`), and all later frames
    /// (`body`).
    head: Vec<u8>,
    bytes: Bytes,
    body: Option<B>,
}

/// The switch for the fast path: [`RangeBypass`] responds to requests, or passes all of them to hyper.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::http) enum FastPathSwitch {
    On,
    /// hyper receives every request.
    Off,
}

/// The requests that hyper has received from the client and not finished.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum HyperState {
    Idle,
    /// One complete request whose response is not yet sent.
    OneRequest,
    /// Possibly an incomplete request, or several requests.
    Unknown,
}

/// The content of the bytes from one read.
#[derive(Debug, PartialEq, Eq)]
enum ReceivedBytes<'a> {
    /// One complete GET request, with its URL and the value of `Range`. Nothing else in it changes the response.
    Range(&'a str, &'a [u8]),
    /// Any other complete request without a body.
    Request,
    /// Anything else: an incomplete request, several requests, or a request with a body.
    Other,
}

impl<'a> ReceivedBytes<'a> {
    fn parse(bytes: &'a [u8]) -> Self {
        let mut headers = [MaybeUninit::new(EMPTY_HEADER); MAX_HEADERS];
        let mut request = Request::new(&mut []);
        let parsed = request.parse_with_uninit_headers(bytes, &mut headers);
        if parsed != Ok(Status::Complete(bytes.len())) {
            return Self::Other;
        }
        if request.method == Some("CONNECT") {
            return Self::Other;
        }
        let (mut host, mut range) = (None, None);
        let mut is_plain = request.method == Some("GET") && request.version == Some(1);
        for header in request.headers {
            let is = |name: &&str| header.name.eq_ignore_ascii_case(name);
            if is(&"range") {
                is_plain &= range.replace(header.value).is_none();
            } else if is(&"host") {
                is_plain &= host.replace(header.value).is_none() && host_header::is_plain_host(header.value);
            } else if ["content-length", "transfer-encoding", "upgrade", "expect"].iter().any(is) {
                return Self::Other;
            } else if is(&"connection") {
                is_plain &= header.value.eq_ignore_ascii_case(b"keep-alive");
            } else {
                is_plain &= IGNORED.iter().any(is);
            }
        }
        match (request.path, range, host) {
            (Some(url), Some(range), Some(_)) if is_plain => Self::Range(url, range),
            _ => Self::Request,
        }
    }
}

impl<S, A, B> RangeBypass<S, A, B>
where
    S: AsyncRead + AsyncWrite + Unpin,
    A: FnMut((&str, &[u8]), &mut Vec<u8>) -> Option<B>,
    B: Body<Data = Bytes, Error = io::Error> + Unpin,
{
    pub(super) fn new(stream: S, fast_path: FastPathSwitch, answer: A, progress: ConnectionProgress) -> Self {
        let hyper = match fast_path {
            FastPathSwitch::On => HyperState::Idle,
            FastPathSwitch::Off => HyperState::Unknown,
        };
        Self { stream, answer, progress, hyper, head: Vec::new(), bytes: Bytes::new(), body: None }
    }

    /// Starts a response if the received bytes are a request for a cached range. Otherwise returns `false`, and the
    /// bytes go to hyper.
    fn start_response(&mut self, bytes: &[u8]) -> bool {
        if self.hyper != HyperState::Idle {
            self.hyper = HyperState::Unknown;
            return false;
        }
        let received = ReceivedBytes::parse(bytes);
        if let ReceivedBytes::Range(url, range) = received {
            self.body = (self.answer)((url, range), &mut self.head);
        }
        self.hyper = match received {
            _ if self.body.is_some() => HyperState::Idle,
            ReceivedBytes::Range(..) | ReceivedBytes::Request => HyperState::OneRequest,
            ReceivedBytes::Other => HyperState::Unknown,
        };
        self.body.is_some()
    }

    /// Sends the rest of the response, if one is in progress.
    fn poll_send(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let Some(body) = &mut self.body else { return Poll::Ready(Ok(())) };
        while !(self.head.is_empty() && self.bytes.is_empty() && body.is_end_stream()) {
            if self.bytes.is_empty() && !body.is_end_stream() {
                let Poll::Ready(frame) = Pin::new(&mut *body).poll_frame(context) else {
                    // Flush the bytes written so far: the client must not wait for them until the next frame is ready.
                    ready!(Pin::new(&mut self.stream).poll_flush(context))?;
                    return Poll::Pending;
                };
                let bytes = frame.transpose()?.and_then(|frame| frame.into_data().ok());
                // A missing frame is an error, because the head has announced more bytes.
                self.bytes = bytes.ok_or(io::ErrorKind::UnexpectedEof)?;
            }
            let slices = [IoSlice::new(&self.head), IoSlice::new(&self.bytes)];
            let len = ready!(Pin::new(&mut self.stream).poll_write_vectored(context, &slices))?;
            if len == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            let of_head = len.min(self.head.len());
            self.head.drain(..of_head);
            self.bytes.advance(len - of_head);
        }
        ready!(Pin::new(&mut self.stream).poll_flush(context))?;
        (self.body, self.bytes) = (None, Bytes::new());
        self.progress.record_response_end();
        Poll::Ready(Ok(()))
    }
}

impl<S, A, B> AsyncRead for RangeBypass<S, A, B>
where
    S: AsyncRead + AsyncWrite + Unpin,
    A: FnMut((&str, &[u8]), &mut Vec<u8>) -> Option<B> + Unpin,
    B: Body<Data = Bytes, Error = io::Error> + Unpin,
{
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let before = buf.filled().len();
        loop {
            ready!(this.poll_send(context))?;
            ready!(Pin::new(&mut this.stream).poll_read(context, buf))?;
            let read = buf.filled().get(before..);
            let read = read.ok_or_else(|| io::Error::other("a read has removed bytes from the buffer"))?;
            if read.is_empty() || !this.start_response(read) {
                return Poll::Ready(Ok(()));
            }
            buf.set_filled(before);
        }
    }
}

impl<S, A, B> AsyncWrite for RangeBypass<S, A, B>
where
    S: AsyncRead + AsyncWrite + Unpin,
    A: FnMut((&str, &[u8]), &mut Vec<u8>) -> Option<B> + Unpin,
    B: Body<Data = Bytes, Error = io::Error> + Unpin,
{
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().stream).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().stream).poll_write_vectored(context, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    /// hyper flushes when it has nothing left to send. If the response body is also complete, so is the response.
    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        ready!(Pin::new(&mut this.stream).poll_flush(context))?;
        if this.hyper == HyperState::OneRequest && this.progress.is_idle() {
            this.hyper = HyperState::Idle;
        }
        Poll::Ready(Ok(()))
    }

    /// hyper considers the connection idle during a response of the bypass, and may shut it down. Finish the response
    /// first.
    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        ready!(this.poll_send(context))?;
        Pin::new(&mut this.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::pin::pin;
    use std::sync::{Arc, Mutex};
    use std::time::Duration;

    use futures_util::FutureExt;
    use hyper::body::{Frame, SizeHint};
    use hyper::server::conn::http1;
    use hyper::service::service_fn;
    use hyper::{Response, StatusCode};
    use hyper_util::rt::TokioIo;
    use proptest::prelude::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt, BufWriter, DuplexStream, duplex};
    use tokio::sync::Semaphore;
    use tokio::task::JoinHandle;

    use super::super::tracked_body::TrackedBody;
    use super::*;

    /// A request that the bypass handles.
    const KNOWN: &str = "GET /known HTTP/1.1\r\nHost: a\r\nRange: bytes=1-2\r\n\r\n";
    /// [`KNOWN`] with a header that the bypass does not ignore, so hyper handles the request.
    const WITH_HEADER: &str = "GET /known HTTP/1.1\r\nHost: a\r\nRange: bytes=1-2\r\nX-Else: b\r\n\r\n";
    const SLOW: &str = "GET /slow HTTP/1.1\r\nHost: a\r\n\r\n";

    /// A body that needs one permit for each frame.
    struct GatedFrames {
        left: Vec<&'static str>,
        permits: Arc<Semaphore>,
        waits: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
    }

    impl GatedFrames {
        fn new(permits: &Arc<Semaphore>) -> Self {
            Self { left: vec!["B", "A"], permits: Arc::clone(permits), waits: None }
        }
    }

    impl Body for GatedFrames {
        type Data = Bytes;
        type Error = io::Error;

        fn poll_frame(
            mut self: Pin<&mut Self>,
            context: &mut Context<'_>,
        ) -> Poll<Option<io::Result<Frame<Bytes>>>> {
            if self.left.is_empty() {
                return Poll::Ready(None);
            }
            let permits = Arc::clone(&self.permits);
            let take = || -> Pin<Box<dyn Future<Output = ()> + Send>> {
                Box::pin(async move { permits.acquire_owned().await.unwrap().forget() })
            };
            ready!(self.waits.get_or_insert_with(take).as_mut().poll(context));
            self.waits = None;
            Poll::Ready(self.left.pop().map(|text| match text {
                "!" => Err(io::ErrorKind::InvalidData.into()),
                text => Ok(Frame::data(Bytes::from_static(text.as_bytes()))),
            }))
        }

        fn is_end_stream(&self) -> bool {
            self.left.is_empty()
        }

        fn size_hint(&self) -> SizeHint {
            SizeHint::with_exact(2)
        }
    }

    /// A connection to a service that responds to every request with two frames.
    struct TwoFrameConnection {
        client: DuplexStream,
        received: Arc<Mutex<Vec<String>>>,
        /// Permits for the frames of the bypass, and for the frames of hyper's service.
        permits: [Arc<Semaphore>; 2],
        end: Arc<Semaphore>,
        task: JoinHandle<()>,
    }

    fn serve_two_frames(left: &'static [&'static str], is_known: bool, buffer: usize) -> TwoFrameConnection {
        let (client, stream) = duplex(buffer);
        let received = Arc::new(Mutex::new(Vec::new()));
        let permits = [0, 0].map(|_| Arc::new(Semaphore::new(Semaphore::MAX_PERMITS / 2)));
        let (progress, end) = (ConnectionProgress::new(), Arc::new(Semaphore::new(0)));
        let served = TwoFrameConnection { client, received, permits, end, task: tokio::spawn(async {}) };
        let [of_known, of_service] = served.permits.clone();
        let of_both = progress.clone();
        let answer = move |(url, range): (&str, &[u8]), head: &mut Vec<u8>| {
            (is_known && url == "/known" && range == b"bytes=1-2").then(|| {
                head.extend_from_slice(b"HTTP/1.1 206 Partial Content\r\ncontent-length: 2\r\n\r\n");
                progress.record_request();
                GatedFrames { left: left.to_vec(), ..GatedFrames::new(&of_known) }
            })
        };
        let stream = RangeBypass::new(stream, FastPathSwitch::On, answer, of_both.clone());
        let (asked, ended) = (Arc::clone(&served.received), Arc::clone(&served.end));
        let task = tokio::spawn(async move {
            let service = service_fn(|request: hyper::Request<hyper::body::Incoming>| {
                of_both.record_request();
                asked.lock().unwrap().push(request.uri().to_string());
                let is_known = request.uri() == "/known" && request.headers().contains_key("range");
                let body = axum::body::Body::new(GatedFrames::new(&of_service));
                let mut response = Response::new(TrackedBody::new(body, of_both.clone()));
                if is_known {
                    *response.status_mut() = StatusCode::PARTIAL_CONTENT;
                }
                async { Ok::<_, Infallible>(response) }
            });
            let mut http = http1::Builder::new();
            http.auto_date_header(false).half_close(true);
            let mut connection = pin!(http.serve_connection(TokioIo::new(stream), service));
            tokio::select! {
                _ = connection.as_mut() => return,
                _ = ended.acquire() => connection.as_mut().graceful_shutdown(),
            }
            let _ = connection.await;
        });
        TwoFrameConnection { task, ..served }
    }

    impl TwoFrameConnection {
        /// Sends each piece, and waits until the server has read it. Stops if the server has closed the connection.
        async fn send_pieces(&mut self, pieces: &[impl AsRef<[u8]>]) {
            for piece in pieces {
                if self.client.write_all(piece.as_ref()).await.is_err() {
                    break;
                }
                for _ in 0..20 {
                    tokio::task::yield_now().await;
                }
            }
        }

        /// Returns all bytes up to the end of the connection, and the URLs of the requests that hyper received.
        async fn read_to_end(mut self) -> (String, Vec<String>) {
            let _ = self.client.shutdown().await;
            let mut text = String::new();
            let read = self.client.read_to_string(&mut text);
            tokio::time::timeout(Duration::from_secs(20), read).await.unwrap().unwrap();
            self.task.await.unwrap();
            let received = self.received.lock().unwrap().clone();
            (text, received)
        }
    }

    /// Returns the response bytes without and with a bypass, and the URLs that hyper received with the bypass.
    async fn responses_without_and_with_bypass(pieces: &[impl AsRef<[u8]>]) -> (Vec<String>, Vec<String>) {
        let mut texts = Vec::new();
        let mut received = Vec::new();
        for is_known in [false, true] {
            let mut served = serve_two_frames(&["B", "A"], is_known, 1 << 20);
            served.send_pieces(pieces).await;
            let (text, by_hyper) = served.read_to_end().await;
            texts.push(text);
            received = by_hyper;
        }
        (texts, received)
    }

    #[tokio::test]
    async fn cached_ranges_do_not_reach_hyper() {
        let (texts, received) =
            responses_without_and_with_bypass(&[KNOWN, KNOWN, SLOW, KNOWN, WITH_HEADER, KNOWN]).await;
        assert_eq!(texts[0], texts[1]);
        assert_eq!(texts[1].matches("206 Partial").count(), 5);
        assert_eq!(received, ["/slow", "/known"]);
    }

    /// A body that ends before its announced length.
    struct ShortBody;

    impl Body for ShortBody {
        type Data = Bytes;
        type Error = io::Error;

        fn poll_frame(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<io::Result<Frame<Bytes>>>> {
            Poll::Ready(None)
        }
    }

    #[tokio::test]
    async fn body_that_ends_early_ends_the_connection() {
        let (mut client, stream) = duplex(1 << 10);
        let answer = |_: (&str, &[u8]), _: &mut Vec<u8>| Some(ShortBody);
        let mut bypass = RangeBypass::new(stream, FastPathSwitch::On, answer, ConnectionProgress::new());
        client.write_all(KNOWN.as_bytes()).await.unwrap();
        let error = bypass.read(&mut [0; 200]).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
    }

    #[tokio::test]
    async fn every_request_reaches_hyper_if_the_fast_path_is_off() {
        let (mut client, stream) = duplex(1 << 10);
        let answer = |_: (&str, &[u8]), _: &mut Vec<u8>| -> Option<GatedFrames> {
            panic!("the bypass handled the request")
        };
        let progress = ConnectionProgress::new();
        let mut bypass = RangeBypass::new(stream, FastPathSwitch::Off, answer, progress.clone());
        let mut read = [0; 200];
        for _ in 0..3 {
            client.write_all(KNOWN.as_bytes()).await.unwrap();
            assert_eq!(bypass.read(&mut read).await.unwrap(), KNOWN.len());
            progress.record_response_end();
            bypass.flush().await.unwrap();
        }
    }

    #[tokio::test]
    async fn request_split_across_reads_is_passed_to_hyper() {
        let (head, tail) = KNOWN.split_at(30);
        let (texts, received) = responses_without_and_with_bypass(&[KNOWN, head, tail, KNOWN]).await;
        assert_eq!(texts[0], texts[1]);
        assert_eq!(received, ["/known", "/known"]);
        // Two requests in one read.
        let (texts, received) = responses_without_and_with_bypass(&[&*KNOWN.repeat(2), KNOWN]).await;
        assert_eq!(texts[0], texts[1]);
        assert_eq!(received, ["/known"; 3]);
    }

    /// Bytes that look like a request may be part of a header or of a body, so the bypass must not respond to them.
    #[tokio::test]
    async fn requests_inside_headers_and_bodies_are_ignored() {
        for start in [
            "GET /other HTTP/1.1\r\nHost: a\r\nX-Text: ",
            "POST /other HTTP/1.1\r\nHost: a\r\nContent-Length: 56\r\n\r\n",
            "POST /other HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n",
        ] {
            let (texts, received) = responses_without_and_with_bypass(&[KNOWN, start, KNOWN]).await;
            assert_eq!(texts[0], texts[1], "{start}");
            assert_eq!(received.first().map(String::as_str), Some("/other"), "{start}");
        }
    }

    #[tokio::test]
    async fn request_during_a_response_waits_for_its_end() {
        let mut served = serve_two_frames(&["B", "A"], true, 1 << 20);
        served.permits[1].forget_permits(usize::MAX);
        served.send_pieces(&[SLOW, KNOWN]).await;
        assert_eq!(*served.received.lock().unwrap(), ["/slow"]);
        served.permits[1].add_permits(100);
        let (text, received) = served.read_to_end().await;
        let (slow, known) = text.split_once("AB").unwrap();
        assert!(slow.starts_with("HTTP/1.1 200 OK") && known.starts_with("HTTP/1.1 206 "), "{text}");
        assert_eq!(received, ["/slow"]);
    }

    /// Today, hyper does not read while it sends a response, but a later version may. The bypass must then pass the
    /// next request to hyper.
    #[tokio::test]
    async fn request_during_a_response_is_passed_to_hyper() {
        for is_sent in [false, true] {
            let (mut client, stream) = duplex(1 << 10);
            let progress = ConnectionProgress::new();
            let permits = Arc::new(Semaphore::new(10));
            let answer = |_: (&str, &[u8]), head: &mut Vec<u8>| {
                head.extend_from_slice(b"HEAD");
                Some(GatedFrames::new(&permits))
            };
            let mut bypass = RangeBypass::new(stream, FastPathSwitch::On, answer, progress.clone());
            let mut read = [0; 200];
            client.write_all(SLOW.as_bytes()).await.unwrap();
            assert_eq!(bypass.read(&mut read).await.unwrap(), SLOW.len());
            if is_sent {
                progress.record_response_end();
            }
            bypass.flush().await.unwrap();
            client.write_all(KNOWN.as_bytes()).await.unwrap();
            client.shutdown().await.unwrap();
            let len = if is_sent { 0 } else { KNOWN.len() };
            assert_eq!(bypass.read(&mut read).await.unwrap(), len);
            drop(bypass);
            let mut text = String::new();
            client.read_to_string(&mut text).await.unwrap();
            assert_eq!(text, if is_sent { "HEADAB" } else { "" });
        }
    }

    /// The bypass is sending a response, so hyper considers the connection idle and would close it in a graceful
    /// shutdown.
    #[tokio::test]
    async fn response_is_finished_when_the_service_ends() {
        let mut served = serve_two_frames(&["B", "A"], true, 1 << 20);
        served.permits[0].forget_permits(usize::MAX);
        served.send_pieces(&[KNOWN]).await;
        served.end.add_permits(1);
        tokio::task::yield_now().await;
        assert!(!served.task.is_finished());
        served.permits[0].add_permits(100);
        let (text, received) = served.read_to_end().await;
        assert!(text.ends_with("\r\n\r\nAB"), "{text}");
        assert!(received.is_empty());
    }

    /// A buffered stream may keep written bytes until the next flush, so the bypass must flush before it waits for a
    /// frame.
    #[tokio::test]
    async fn written_bytes_do_not_wait_for_the_next_frame() {
        let (mut client, stream) = duplex(1 << 10);
        let permits = Arc::new(Semaphore::new(1));
        let answer = |_: (&str, &[u8]), head: &mut Vec<u8>| {
            head.extend_from_slice(b"HEAD");
            Some(GatedFrames::new(&permits))
        };
        let mut bypass =
            RangeBypass::new(BufWriter::new(stream), FastPathSwitch::On, answer, ConnectionProgress::new());
        client.write_all(KNOWN.as_bytes()).await.unwrap();
        let mut read = [0; 200];
        let mut reading = pin!(bypass.read(&mut read));
        for text in ["HEADA", "B"] {
            assert!(reading.as_mut().now_or_never().is_none());
            let mut received = vec![0; text.len()];
            client.read_exact(&mut received).now_or_never().unwrap().unwrap();
            assert_eq!(received, text.as_bytes());
            permits.add_permits(1);
        }
    }

    #[tokio::test]
    async fn failed_body_ends_the_connection() {
        let mut served = serve_two_frames(&["!", "A"], true, 1 << 20);
        served.send_pieces(&[KNOWN]).await;
        let (text, _) = served.read_to_end().await;
        assert!(text.ends_with("\r\n\r\nA"), "{text}");
    }

    #[tokio::test]
    async fn slow_reader_gets_the_whole_response() {
        let mut served = serve_two_frames(&["B", "A"], true, 7);
        let mut text = vec![0; "HTTP/1.1 206 Partial Content\r\ncontent-length: 2\r\n\r\nAB".len()];
        for _ in 0..3 {
            served.client.write_all(KNOWN.as_bytes()).await.unwrap();
            served.client.read_exact(&mut text).await.unwrap();
            assert!(text.ends_with(b"\r\n\r\nAB"));
        }
    }

    #[test]
    fn bypass_handles_only_plain_range_requests() {
        let with = |lines: &str| format!("GET /a?b=c HTTP/1.1\r\nHost: a\r\n{lines}\r\n");
        for lines in [
            "Range: bytes=0-1\r\n",
            "range: bytes=0-1\r\nUser-Agent: b\r\nACCEPT: */*\r\nConnection: Keep-Alive\r\n",
        ] {
            assert_eq!(
                ReceivedBytes::parse(with(lines).as_bytes()),
                ReceivedBytes::Range("/a?b=c", b"bytes=0-1"),
                "{lines}"
            );
        }
        for lines in [
            "",
            "Range: bytes=0-1\r\nRange: bytes=2-3\r\n",
            "Range: bytes=0-1\r\nIf-Range: \"a\"\r\n",
            "Range: bytes=0-1\r\nIf-None-Match: *\r\n",
            "Range: bytes=0-1\r\nAuthorization: b\r\n",
            "Range: bytes=0-1\r\nOrigin: b\r\n",
            "Range: bytes=0-1\r\nConnection: close\r\n",
            "Range: bytes=0-1\r\nX-Anything: b\r\n",
        ] {
            assert_eq!(ReceivedBytes::parse(with(lines).as_bytes()), ReceivedBytes::Request, "{lines}");
        }
        let range = "Range: bytes=0-1\r\n";
        for lines in ["Content-Length: 0\r\n", "Transfer-Encoding: a\r\n", "Expect: b\r\n", "Upgrade: b\r\n"]
        {
            assert_eq!(
                ReceivedBytes::parse(with(&format!("{range}{lines}")).as_bytes()),
                ReceivedBytes::Other,
                "{lines}"
            );
        }
        let plain = with(range);
        for (from, to) in [("GET", "HEAD"), ("GET", "POST"), ("1.1", "1.0")] {
            assert_eq!(
                ReceivedBytes::parse(plain.replacen(from, to, 1).as_bytes()),
                ReceivedBytes::Request,
                "{to}"
            );
        }
        for other in [
            plain.replacen("GET", "CONNECT", 1),
            plain.replacen("1.1", "2.0", 1),
            format!("{plain}G"),
            plain.replacen("\r\n\r\n", "\r\n", 1),
            String::new(),
        ] {
            assert_eq!(ReceivedBytes::parse(other.as_bytes()), ReceivedBytes::Other, "{other}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(300))]

        /// Sends valid or corrupted requests, split anywhere. The client must receive the same bytes as from hyper
        /// alone.
        #[test]
        fn bypass_sends_the_same_bytes_as_hyper(
            requests in proptest::collection::vec(0..7_usize, 1..8),
            cuts in proptest::collection::vec(0..400_usize, 0..6),
            are_apart in any::<bool>(),
            broken in proptest::collection::vec((0..400_usize, any::<u8>()), 0..3),
        ) {
            let kinds = [
                KNOWN,
                KNOWN,
                WITH_HEADER,
                SLOW,
                "HEAD /known HTTP/1.1\r\nHost: a\r\nRange: bytes=1-2\r\n\r\n",
                "POST /known HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nGET",
                "GET /known HTTP/1.1\r\nRange: bytes=1-2\r\nno header\r\n\r\n",
            ];
            let texts: Vec<&str> = requests.iter().map(|at| kinds[*at]).collect();
            let mut all = texts.concat().into_bytes();
            for (at, byte) in broken {
                let at = at % all.len();
                all[at] = byte;
            }
            let mut ends: Vec<usize> = cuts.iter().map(|at| at % (all.len() + 1)).collect();
            if are_apart {
                ends.extend(texts.iter().scan(0, |end, text| { *end += text.len(); Some(*end) }));
            }
            ends.extend([0, all.len()]);
            ends.sort_unstable();
            let pieces: Vec<&[u8]> = ends.windows(2).map(|ends| &all[ends[0]..ends[1]]).collect();
            let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
            let (texts, _) = runtime.block_on(responses_without_and_with_bypass(&pieces));
            prop_assert_eq!(&texts[0], &texts[1]);
        }
    }
}
