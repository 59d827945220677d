//! Exchanges requests and responses on one connection, byte by byte (RFC 9112).
//!
//! All reads are limited, because a server may send endless heads and bodies. The caller must limit the time.

use std::time::{Duration, Instant};

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use super::fault::RequestFault;
use super::report::quote_for_report;

/// Maximum length of a response head. Typical heads are a few hundred bytes.
const MAX_HEAD: usize = 32 << 10;
/// Maximum number of interim (1xx) responses before the final one.
const MAX_INTERIM: usize = 4;
/// Maximum length of a chunk-size line or a trailer line.
const MAX_CHUNK_LINE: usize = 256;
/// How long to wait for unexpected bytes. If a body wrongly follows a HEAD response, it arrives together with the head.
const SURPLUS: Duration = Duration::from_millis(500);
/// Maximum number of bytes to read at a time.
const PIECE: usize = 16 << 10;

/// The transport of a connection: TCP or TLS.
pub(super) trait TransportStream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> TransportStream for T {}

/// A request without a body.
#[derive(Clone, Debug)]
pub(super) struct WireRequest {
    pub(super) method: &'static str,
    pub(super) version: &'static str,
    pub(super) headers: Vec<(&'static str, String)>,
    /// Maximum number of body bytes to read.
    pub(super) limit: usize,
}

impl WireRequest {
    pub(super) fn new(method: &'static str, limit: usize) -> Self {
        Self { method, version: "HTTP/1.1", headers: Vec::new(), limit }
    }

    pub(super) fn with_header(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }
}

/// Why reading a body ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BodyEnd {
    /// The body is complete.
    Complete,
    /// The limit of the request is reached.
    Limit,
    /// The connection ended before the body was complete.
    Short,
}

/// A response, with its body up to the limit of the request.
#[derive(Clone, Debug)]
pub(super) struct WireResponse {
    pub(super) status: u16,
    headers: Vec<(String, String)>,
    /// The name of the first header without a space after the colon.
    pub(super) odd_header: Option<String>,
    pub(super) body: Vec<u8>,
    pub(super) end: BodyEnd,
    /// The time from the request to the first byte.
    pub(super) waited: Duration,
}

impl WireResponse {
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        let header = self.headers.iter().find(|(key, _)| key.eq_ignore_ascii_case(name));
        header.map(|(_, value)| value.as_str())
    }

    pub(super) fn content_length(&self) -> Option<u64> {
        self.header("content-length")?.parse().ok()
    }

    pub(super) fn is_chunked(&self) -> bool {
        self.header("transfer-encoding").is_some_and(|value| value.to_ascii_lowercase().contains("chunked"))
    }

    pub(super) fn is_redirect(&self) -> bool {
        matches!(self.status, 301 | 302 | 303 | 307 | 308)
    }
}

/// A connection to a server.
pub(super) struct WireConnection {
    stream: Box<dyn TransportStream>,
    /// Received bytes that are not yet parsed.
    buffer: Vec<u8>,
}

impl WireConnection {
    pub(super) fn new(stream: impl TransportStream + 'static) -> Self {
        Self { stream: Box::new(stream), buffer: Vec::new() }
    }

    pub(super) async fn exchange(
        &mut self,
        request: &WireRequest,
        message: &[u8],
    ) -> Result<WireResponse, RequestFault> {
        self.stream.write_all(message).await?;
        self.stream.flush().await?;
        let start = Instant::now();
        if self.buffer.is_empty() && !self.read_more().await? {
            return Err(RequestFault::Closed);
        }
        let waited = start.elapsed();
        let mut response = self.read_head().await?;
        for _ in 0..MAX_INTERIM {
            if (100..200).contains(&response.status) {
                response = self.read_head().await?;
            }
        }
        response.waited = waited;
        self.read_body(request, &mut response).await?;
        Ok(response)
    }

    /// Returns `true` if the server sends bytes that belong to no response. A correct server sends none.
    pub(super) async fn has_surplus(&mut self) -> bool {
        let more = async { !self.buffer.is_empty() || self.read_more().await.unwrap_or(false) };
        tokio::time::timeout(SURPLUS, more).await.unwrap_or(false)
    }

    async fn read_more(&mut self) -> Result<bool, RequestFault> {
        self.buffer.reserve(PIECE);
        Ok(self.stream.read_buf(&mut self.buffer).await? > 0)
    }

    async fn read_head(&mut self) -> Result<WireResponse, RequestFault> {
        // The number of bytes without the end of the head. They are not searched again, even if the head arrives in
        // small pieces.
        let mut searched: usize = 0;
        let len = loop {
            let from = searched.saturating_sub(3);
            if let Some(len) = self.buffer.get(from..).and_then(head_len) {
                break from + len;
            }
            searched = self.buffer.len();
            if self.buffer.len() > MAX_HEAD {
                return Err(RequestFault::LongHead { most: MAX_HEAD });
            }
            if !self.read_more().await? {
                return Err(if self.buffer.is_empty() {
                    RequestFault::Closed
                } else {
                    RequestFault::CutHead
                });
            }
        };
        let head: Vec<u8> = self.buffer.drain(..len).collect();
        parse_head(&head)
    }

    async fn read_body(
        &mut self,
        request: &WireRequest,
        response: &mut WireResponse,
    ) -> Result<(), RequestFault> {
        if request.method == "HEAD" || matches!(response.status, 204 | 304) {
            return Ok(());
        }
        if response.is_chunked() {
            return self.read_chunks(request.limit, response).await;
        }
        if let Some(text) = response.header("content-length") {
            let len: u64 = text.parse().map_err(|_| RequestFault::malformed("Content-Length", text))?;
            let max_len = usize::try_from(len).unwrap_or(usize::MAX).min(request.limit);
            self.read_up_to(max_len, response).await;
            let is_all = u64::try_from(response.body.len()).is_ok_and(|have| have == len);
            response.end = match response.body.len() == max_len {
                true if is_all => BodyEnd::Complete,
                true => BodyEnd::Limit,
                false => BodyEnd::Short,
            };
            return Ok(());
        }
        response.end = self.read_up_to(request.limit, response).await;
        Ok(())
    }

    /// Reads up to `max_len` bytes of a body. Returns [`BodyEnd::Limit`] if there were that many. Otherwise, returns
    /// [`BodyEnd::Complete`] if the server closed the connection, and [`BodyEnd::Short`] if the connection failed.
    async fn read_up_to(&mut self, max_len: usize, response: &mut WireResponse) -> BodyEnd {
        let mut missing = max_len;
        while missing > 0 {
            if self.buffer.is_empty() {
                match self.read_more().await {
                    Ok(true) => {}
                    Ok(false) => return BodyEnd::Complete,
                    Err(_) => return BodyEnd::Short,
                }
            }
            let len = missing.min(self.buffer.len());
            response.body.extend(self.buffer.drain(..len));
            missing -= len;
        }
        BodyEnd::Limit
    }

    async fn read_chunks(&mut self, limit: usize, response: &mut WireResponse) -> Result<(), RequestFault> {
        // Each chunk has at least one byte, so the limit of the body also limits the number of chunks.
        while response.body.len() < limit {
            let line = self.read_line().await?;
            let digits = line.split(';').next().unwrap_or_default().trim();
            let len =
                usize::from_str_radix(digits, 16).map_err(|_| RequestFault::malformed("chunk", &line))?;
            if len == 0 {
                response.end = BodyEnd::Complete;
                while !self.read_line().await?.is_empty() {}
                return Ok(());
            }
            let read_len = len.min(limit - response.body.len());
            let before = response.body.len();
            self.read_up_to(read_len, response).await;
            if response.body.len() - before < read_len {
                response.end = BodyEnd::Short;
                return Ok(());
            }
            if read_len == len && !self.read_line().await?.is_empty() {
                return Err(RequestFault::malformed("chunk", "longer than its size"));
            }
        }
        response.end = BodyEnd::Limit;
        Ok(())
    }

    async fn read_line(&mut self) -> Result<String, RequestFault> {
        loop {
            if let Some(end) = self.buffer.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.buffer.drain(..=end).collect();
                return Ok(String::from_utf8_lossy(&line).trim_end().to_owned());
            }
            if self.buffer.len() > MAX_CHUNK_LINE {
                return Err(RequestFault::malformed("chunk", "size line too long"));
            }
            if !self.read_more().await? {
                return Err(RequestFault::malformed("chunk", "connection closed"));
            }
        }
    }
}

/// Returns the length of the head including its empty line, if the head is complete.
fn head_len(bytes: &[u8]) -> Option<usize> {
    let of = |end: &[u8]| bytes.windows(end.len()).position(|part| part == end).map(|at| at + end.len());
    match (of(b"\r\n\r\n"), of(b"\n\n")) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    }
}

fn parse_head(head: &[u8]) -> Result<WireResponse, RequestFault> {
    let text = String::from_utf8_lossy(head);
    let mut lines = text.lines();
    let first = lines.next().unwrap_or_default();
    let status = first.strip_prefix("HTTP/1.").and_then(|rest| rest.split(' ').nth(1)).and_then(|status| {
        let is_number = status.len() == 3 && status.bytes().all(|byte| byte.is_ascii_digit());
        is_number.then(|| status.parse().ok()).flatten()
    });
    let status: u16 = status.ok_or_else(|| RequestFault::malformed("status line", first))?;
    let mut headers: Vec<(String, String)> = Vec::new();
    let mut odd_header = None;
    for line in lines.filter(|line| !line.is_empty()) {
        let (name, value) = line.split_once(':').ok_or_else(|| RequestFault::malformed("header", line))?;
        if name.is_empty() || name.contains([' ', '\t']) {
            return Err(RequestFault::malformed("header", line));
        }
        if !value.starts_with(' ') {
            odd_header.get_or_insert_with(|| quote_for_report(name));
        }
        let value = value.trim();
        let is_other = |(key, other): &(String, String)| key.eq_ignore_ascii_case(name) && other != value;
        if name.eq_ignore_ascii_case("content-length") && headers.iter().any(is_other) {
            return Err(RequestFault::malformed("Content-Length", "two different values"));
        }
        headers.push((name.to_owned(), value.to_owned()));
    }
    Ok(WireResponse {
        status,
        headers,
        odd_header,
        body: Vec::new(),
        end: BodyEnd::Complete,
        waited: Duration::ZERO,
    })
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::pin::Pin;
    use std::task::{Context, Poll};

    use tokio::io::ReadBuf;

    use super::*;

    async fn response_from_bytes(bytes: &[u8], request: &WireRequest) -> Result<WireResponse, RequestFault> {
        let (ours, mut theirs) = tokio::io::duplex(1 << 20);
        theirs.write_all(bytes).await.unwrap();
        theirs.shutdown().await.unwrap();
        WireConnection::new(ours).exchange(request, b"").await
    }

    #[tokio::test]
    async fn body_ends_are_detected() {
        let get = WireRequest::new("GET", 10);
        let head = WireRequest::new("HEAD", 10);
        for (request, bytes, body, end) in [
            (&get, "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc", "abc", BodyEnd::Complete),
            (&get, "HTTP/1.1 200 OK\ncontent-length:3\n\nabc", "abc", BodyEnd::Complete),
            (&get, "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nabc", "abc", BodyEnd::Short),
            (
                &get,
                "HTTP/1.1 200 OK\r\nContent-Length: 999999999999999\r\n\r\nabcdefghijklm",
                "abcdefghij",
                BodyEnd::Limit,
            ),
            (&get, "HTTP/1.1 200\r\n\r\nabc", "abc", BodyEnd::Complete),
            (&get, "HTTP/1.0 200 OK\r\n\r\nabcdefghijklm", "abcdefghij", BodyEnd::Limit),
            (
                &get,
                "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 206 \r\nContent-Length: 1\r\n\r\na",
                "a",
                BodyEnd::Complete,
            ),
            (&head, "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n", "", BodyEnd::Complete),
            (&get, "HTTP/1.1 304 OK\r\nContent-Length: 3\r\n\r\n", "", BodyEnd::Complete),
            (
                &get,
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2;x=y\r\nab\r\n1\r\nc\r\n0\r\n\r\n",
                "abc",
                BodyEnd::Complete,
            ),
            (
                &get,
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nffffffff\r\nabcdefghijklm",
                "abcdefghij",
                BodyEnd::Limit,
            ),
            (&get, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab", "ab", BodyEnd::Short),
        ] {
            let response = response_from_bytes(bytes.as_bytes(), request)
                .await
                .unwrap_or_else(|error| panic!("{bytes}: {error}"));
            assert_eq!(
                (String::from_utf8_lossy(&response.body).as_ref(), response.end),
                (body, end),
                "{bytes}"
            );
        }
    }

    /// A connection that fails on the first read.
    struct BrokenStream;

    impl AsyncRead for BrokenStream {
        fn poll_read(self: Pin<&mut Self>, _: &mut Context<'_>, _: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Err(io::ErrorKind::ConnectionReset.into()))
        }
    }

    #[tokio::test]
    async fn broken_connection_body_is_short() {
        for head in ["HTTP/1.1 200 OK\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n"] {
            let text = format!("{head}abc");
            let stream = tokio::io::join(io::Cursor::new(text).chain(BrokenStream), tokio::io::sink());
            let response =
                WireConnection::new(stream).exchange(&WireRequest::new("GET", 10), b"").await.unwrap();
            assert_eq!((response.body.as_slice(), response.end), (&b"abc"[..], BodyEnd::Short), "{head}");
        }
    }

    #[tokio::test]
    async fn rejects_malformed_responses() {
        let long = format!("HTTP/1.1 200 OK\r\n{}", "X-Header: value\r\n".repeat(10_000));
        for (bytes, reason) in [
            ("", "closed"),
            ("HTTP/1.1 200 OK\r\nContent-Le", "within the response head"),
            ("SSH-2.0-OpenSSH_9.2p1\r\n\r\n", "SSH-2.0"),
            ("HTTP/1.1 2000 OK\r\n\r\n", "2000"),
            ("HTTP/2 200\r\n\r\n", "HTTP/2"),
            ("HTTP/1.1 200 OK\r\nno header\r\n\r\n", "no header"),
            ("HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", "two different values"),
            ("HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n", "-1"),
            ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n", "xyz"),
            (&long, "32768"),
        ] {
            let error = response_from_bytes(bytes.as_bytes(), &WireRequest::new("GET", 10))
                .await
                .unwrap_err()
                .to_string();
            assert!(error.contains(reason), "{bytes:.80}: {error}");
        }
    }

    proptest::proptest! {
        /// Any bytes in pieces of any size result in an error or in a response within its limit.
        #[test]
        fn any_response_is_read_within_limits(
            bytes in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..300),
            beginning in proptest::sample::select(&[
                "",
                "HTTP/1.1 200 OK\r\n",
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
                "HTTP/1.1 200 OK\r\nContent-Length: 40\r\n\r\n",
            ][..]),
        ) {
            let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
            let all = [beginning.as_bytes(), &bytes].concat();
            if let Ok(response) = runtime.block_on(response_from_bytes(&all, &WireRequest::new("GET", 10))) {
                assert!(response.body.len() <= 10);
            }
        }
    }

    #[tokio::test]
    async fn head_split_across_reads_is_parsed() {
        let (ours, mut theirs) = tokio::io::duplex(1);
        let reading = tokio::spawn(async move {
            WireConnection::new(ours).exchange(&WireRequest::new("GET", 10), b"").await
        });
        theirs.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc").await.unwrap();
        assert_eq!(reading.await.unwrap().unwrap().body, b"abc");
    }

    #[tokio::test]
    async fn header_without_space_is_recorded() {
        let request = WireRequest::new("GET", 10);
        let response =
            response_from_bytes(b"HTTP/1.1 200 OK\r\nA: 1\r\nB:2\r\n\r\n", &request).await.unwrap();
        assert_eq!(response.odd_header.as_deref(), Some("B"));
        assert_eq!(response.header("b"), Some("2"));
    }
}
