//! The writes of a response. Every further write costs a system call, and a packet that a client may wait for.

use std::convert::Infallible;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use axum::extract::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use isogen::{Extent, Plan, Segment, Source};
use kindling::http::{BodyMode, ServedFile};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, DuplexStream, ReadBuf};

use crate::server::{bytes_without_repetition, representation};
use crate::support::Scratch;

/// The server's end of a connection, which records the length of each write.
struct CountedWrites {
    stream: DuplexStream,
    writes: Arc<Mutex<Vec<usize>>>,
}

impl AsyncRead for CountedWrites {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buf)
    }
}

impl AsyncWrite for CountedWrites {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.stream).poll_write(context, bytes);
        if let Poll::Ready(Ok(len)) = polled {
            self.writes.lock().unwrap().push(len);
        }
        polled
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let bytes: Vec<u8> = slices.iter().flat_map(|slice| slice.iter().copied()).collect();
        self.poll_write(context, &bytes)
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

/// Returns the writes of a response, and the response.
async fn writes_of_response(content: ServedFile, mode: BodyMode, range: &str) -> (Vec<usize>, Vec<u8>) {
    let (stream, mut client) = tokio::io::duplex(16 << 20);
    let writes = Arc::new(Mutex::new(Vec::new()));
    let io = TokioIo::new(CountedWrites { stream, writes: Arc::clone(&writes) });
    let service = service_fn(move |request: Request<Incoming>| {
        let response =
            content.respond_with_mode(mode, request.method(), request.headers(), request.version());
        async { Ok::<_, Infallible>(response) }
    });
    tokio::spawn(http1::Builder::new().serve_connection(io, service));
    let request = format!("GET / HTTP/1.1\r\nHost: test\r\nConnection: close\r\nRange: {range}\r\n\r\n");
    client.write_all(request.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    client.read_to_end(&mut answer).await.unwrap();
    let writes = writes.lock().unwrap().clone();
    (writes, answer)
}

#[tokio::test]
async fn head_and_first_bytes_share_a_write() {
    let scratch = Scratch::new();
    let source = Arc::new(Source::open(scratch.write("base", bytes_without_repetition(10 << 20))).unwrap());
    source.digest().unwrap();
    let base = |offset, len| Segment::Base(Extent::new(offset, len).unwrap());
    let mixed = [
        base(0, 20_000),
        Segment::Zero(10_000),
        Segment::Bytes(vec![7; 10_000].into()),
        base(1 << 20, 1 << 20),
    ];
    let mixed = representation(Plan::new(Arc::clone(&source), mixed));
    let whole = representation(Plan::from_source(source));
    for mode in [BodyMode::Mapped, BodyMode::Read] {
        for (content, range, len) in [
            (&whole, "bytes=0-0", 1),
            (&whole, "bytes=100-16483", 16_384),
            (&whole, "bytes=1000000-1065535", 65_536),
            (&whole, "bytes=1000000-1131071", 131_072),
            (&mixed, "bytes=0-49999", 50_000),
            (&whole, "bytes=0-9,100-199,1000-1999", 1110),
        ] {
            let (writes, answer) = writes_of_response(content.clone(), mode, range).await;
            assert_eq!(writes, [answer.len()], "{mode:?} {range}");
            assert!(answer.len() > len + 200, "{mode:?} {range}");
        }
    }
    // A long response is a few large writes and no small ones, because all bytes are in memory.
    let (writes, answer) = writes_of_response(whole, BodyMode::Mapped, "bytes=500000-").await;
    let [first, rest @ ..] = &writes[..] else { panic!("{answer:?}") };
    assert_eq!(rest, [4 << 20, 1 << 20], "{first}");
    assert_eq!(writes.iter().sum::<usize>(), answer.len());
}
