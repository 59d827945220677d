//! Requests and answers on one connection, byte by byte, by RFC 9112.
//!
//! Everything that comes is counted against a limit: a server may send heads and bodies without end. How long it takes is
//! the business of whoever calls.

use std::time::{Duration, Instant};

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use super::fault::Fault;
use super::report::quoted;

/// The longest head that is read. Servers have some hundred bytes.
const MAX_HEAD: usize = 32 << 10;
/// The most answers of the kind of 100 that may come before the real one.
const MAX_INTERIM: usize = 4;
/// The longest line between chunks.
const MAX_CHUNK_LINE: usize = 256;
/// How long bytes are waited for that should not come. Those behind an answer to a HEAD come with it.
const SURPLUS: Duration = Duration::from_millis(500);
/// How much is read at once.
const PIECE: usize = 16 << 10;

/// What connections are made of.
pub(super) trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

/// A request without a body.
#[derive(Clone, Debug)]
pub(super) struct Request {
    pub(super) method: &'static str,
    pub(super) version: &'static str,
    pub(super) headers: Vec<(&'static str, String)>,
    /// The most bytes of the body that are read.
    pub(super) limit: usize,
}

impl Request {
    pub(super) fn new(method: &'static str, limit: usize) -> Self {
        Self { method, version: "HTTP/1.1", headers: Vec::new(), limit }
    }

    pub(super) fn with(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }
}

/// Where a body ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// Where it should.
    Complete,
    /// Where we had enough.
    Limit,
    /// The connection ended before it was complete.
    Short,
}

/// An answer.
#[derive(Clone, Debug)]
pub(super) struct Answer {
    pub(super) status: u16,
    headers: Vec<(String, String)>,
    /// A header that is not followed by a colon and a space.
    pub(super) odd_header: Option<String>,
    pub(super) body: Vec<u8>,
    pub(super) end: End,
    /// How long it took until there was a first byte.
    pub(super) waited: Duration,
}

impl Answer {
    /// The value of a header.
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }

    /// The length that it says it has.
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

/// A connection.
pub(super) struct Wire {
    stream: Box<dyn Stream>,
    /// What was read and not used yet.
    buffer: Vec<u8>,
    has_ended: bool,
}

impl Wire {
    pub(super) fn new(stream: impl Stream + 'static) -> Self {
        Self { stream: Box::new(stream), buffer: Vec::new(), has_ended: false }
    }

    /// Sends the text of a request and reads its answer.
    pub(super) async fn exchange(&mut self, request: &Request, text: &str) -> Result<Answer, Fault> {
        self.stream.write_all(text.as_bytes()).await?;
        self.stream.flush().await?;
        let begun = Instant::now();
        if self.buffer.is_empty() && !self.fill().await? {
            return Err(Fault::Closed);
        }
        let waited = begun.elapsed();
        let mut answer = self.head().await?;
        for _ in 0..MAX_INTERIM {
            if (100..200).contains(&answer.status) {
                answer = self.head().await?;
            }
        }
        answer.waited = waited;
        self.body(request, &mut answer).await?;
        Ok(answer)
    }

    /// Whether anything comes yet that was not asked for. A server that keeps the connection open has nothing more to say.
    pub(super) async fn is_surplus(&mut self) -> bool {
        let more = async { !self.buffer.is_empty() || self.fill().await.unwrap_or(false) };
        tokio::time::timeout(SURPLUS, more).await.unwrap_or(false)
    }

    async fn fill(&mut self) -> Result<bool, Fault> {
        self.buffer.reserve(PIECE);
        let read = self.stream.read_buf(&mut self.buffer).await?;
        self.has_ended = read == 0;
        Ok(read > 0)
    }

    async fn head(&mut self) -> Result<Answer, Fault> {
        // What was searched is not searched again, however small the pieces are.
        let mut searched: usize = 0;
        let len = loop {
            let from = searched.saturating_sub(3);
            if let Some(len) = self.buffer.get(from..).and_then(head_len) {
                break from + len;
            }
            searched = self.buffer.len();
            if self.buffer.len() > MAX_HEAD {
                return Err(Fault::LongHead { most: MAX_HEAD });
            }
            if !self.fill().await? {
                return Err(if self.buffer.is_empty() { Fault::Closed } else { Fault::CutHead });
            }
        };
        let head: Vec<u8> = self.buffer.drain(..len).collect();
        parse(&head)
    }

    async fn body(&mut self, request: &Request, answer: &mut Answer) -> Result<(), Fault> {
        if request.method == "HEAD" || matches!(answer.status, 204 | 304) {
            return Ok(());
        }
        if answer.is_chunked() {
            return self.chunks(request.limit, answer).await;
        }
        if let Some(text) = answer.header("content-length") {
            let len: u64 = text.parse().map_err(|_| Fault::malformed("Content-Length", text))?;
            let wanted = usize::try_from(len).unwrap_or(usize::MAX).min(request.limit);
            self.take(wanted, answer).await?;
            let is_all = u64::try_from(answer.body.len()).is_ok_and(|have| have == len);
            answer.end = match answer.body.len() == wanted {
                true if is_all => End::Complete,
                true => End::Limit,
                false => End::Short,
            };
            return Ok(());
        }
        self.take(request.limit, answer).await?;
        let is_all = self.has_ended && self.buffer.is_empty();
        answer.end = if is_all { End::Complete } else { End::Limit };
        Ok(())
    }

    /// Takes bytes of a body: as many as are wanted, or as there are.
    async fn take(&mut self, wanted: usize, answer: &mut Answer) -> Result<(), Fault> {
        let mut missing = wanted;
        while missing > 0 {
            if self.buffer.is_empty() && !self.fill().await.unwrap_or(false) {
                self.has_ended = true;
                return Ok(());
            }
            let len = missing.min(self.buffer.len());
            answer.body.extend(self.buffer.drain(..len));
            missing -= len;
        }
        Ok(())
    }

    async fn chunks(&mut self, limit: usize, answer: &mut Answer) -> Result<(), Fault> {
        // A chunk has a byte at least, and the body is bounded.
        while answer.body.len() < limit {
            let line = self.line().await?;
            let digits = line.split(';').next().unwrap_or_default().trim();
            let len = usize::from_str_radix(digits, 16).map_err(|_| Fault::malformed("a chunk", &line))?;
            if len == 0 {
                answer.end = End::Complete;
                while !self.line().await?.is_empty() {}
                return Ok(());
            }
            let wanted = len.min(limit - answer.body.len());
            let before = answer.body.len();
            self.take(wanted, answer).await?;
            if answer.body.len() - before < wanted {
                answer.end = End::Short;
                return Ok(());
            }
            if wanted == len && !self.line().await?.is_empty() {
                return Err(Fault::malformed("a chunk", "it is longer than its size"));
            }
        }
        answer.end = End::Limit;
        Ok(())
    }

    async fn line(&mut self) -> Result<String, Fault> {
        loop {
            if let Some(end) = self.buffer.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.buffer.drain(..=end).collect();
                return Ok(String::from_utf8_lossy(&line).trim_end().to_owned());
            }
            if self.buffer.len() > MAX_CHUNK_LINE {
                return Err(Fault::malformed("a chunk", "its size has no end"));
            }
            if !self.fill().await? {
                return Err(Fault::malformed("a chunk", "the connection ended"));
            }
        }
    }
}

/// The length of a head with the empty line behind it, if that is there.
fn head_len(bytes: &[u8]) -> Option<usize> {
    let of = |end: &[u8]| bytes.windows(end.len()).position(|part| part == end).map(|at| at + end.len());
    match (of(b"\r\n\r\n"), of(b"\n\n")) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    }
}

fn parse(head: &[u8]) -> Result<Answer, Fault> {
    let text = String::from_utf8_lossy(head);
    let mut lines = text.lines();
    let first = lines.next().unwrap_or_default();
    let status = first.strip_prefix("HTTP/1.").and_then(|rest| rest.split(' ').nth(1)).and_then(|status| {
        let is_number = status.len() == 3 && status.bytes().all(|byte| byte.is_ascii_digit());
        is_number.then(|| status.parse().ok()).flatten()
    });
    let status: u16 = status.ok_or_else(|| Fault::malformed("the first line", first))?;
    let mut headers: Vec<(String, String)> = Vec::new();
    let mut odd_header = None;
    for line in lines.filter(|line| !line.is_empty()) {
        let (name, value) = line.split_once(':').ok_or_else(|| Fault::malformed("a header", line))?;
        if name.is_empty() || name.contains([' ', '\t']) {
            return Err(Fault::malformed("a header", line));
        }
        if !value.starts_with(' ') {
            odd_header.get_or_insert_with(|| quoted(name));
        }
        let value = value.trim();
        let is_other = |(known, other): &(String, String)| known.eq_ignore_ascii_case(name) && other != value;
        if name.eq_ignore_ascii_case("content-length") && headers.iter().any(is_other) {
            return Err(Fault::malformed("Content-Length", "there are two that differ"));
        }
        headers.push((name.to_owned(), value.to_owned()));
    }
    Ok(Answer { status, headers, odd_header, body: Vec::new(), end: End::Complete, waited: Duration::ZERO })
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn told(bytes: &[u8], request: &Request) -> Result<Answer, Fault> {
        let (ours, mut theirs) = tokio::io::duplex(1 << 20);
        theirs.write_all(bytes).await.unwrap();
        theirs.shutdown().await.unwrap();
        Wire::new(ours).exchange(request, "").await
    }

    #[tokio::test]
    async fn bodies_end_where_they_should() {
        let get = Request::new("GET", 10);
        let head = Request::new("HEAD", 10);
        for (request, bytes, body, end) in [
            (&get, "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc", "abc", End::Complete),
            (&get, "HTTP/1.1 200 OK\ncontent-length:3\n\nabc", "abc", End::Complete),
            (&get, "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nabc", "abc", End::Short),
            (
                &get,
                "HTTP/1.1 200 OK\r\nContent-Length: 999999999999999\r\n\r\nabcdefghijklm",
                "abcdefghij",
                End::Limit,
            ),
            (&get, "HTTP/1.1 200\r\n\r\nabc", "abc", End::Complete),
            (&get, "HTTP/1.0 200 OK\r\n\r\nabcdefghijklm", "abcdefghij", End::Limit),
            (
                &get,
                "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 206 \r\nContent-Length: 1\r\n\r\na",
                "a",
                End::Complete,
            ),
            (&head, "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n", "", End::Complete),
            (&get, "HTTP/1.1 304 OK\r\nContent-Length: 3\r\n\r\n", "", End::Complete),
            (
                &get,
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2;x=y\r\nab\r\n1\r\nc\r\n0\r\n\r\n",
                "abc",
                End::Complete,
            ),
            (
                &get,
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nffffffff\r\nabcdefghijklm",
                "abcdefghij",
                End::Limit,
            ),
            (&get, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab", "ab", End::Short),
        ] {
            let answer =
                told(bytes.as_bytes(), request).await.unwrap_or_else(|error| panic!("{bytes}: {error}"));
            assert_eq!((String::from_utf8_lossy(&answer.body).as_ref(), answer.end), (body, end), "{bytes}");
        }
    }

    #[tokio::test]
    async fn garbage_is_told_from_answers() {
        let long = format!("HTTP/1.1 200 OK\r\n{}", "X-Header: value\r\n".repeat(10_000));
        for (bytes, reason) in [
            ("", "closed"),
            ("HTTP/1.1 200 OK\r\nContent-Le", "middle of the head"),
            ("SSH-2.0-OpenSSH_9.2p1\r\n\r\n", "SSH-2.0"),
            ("HTTP/1.1 2000 OK\r\n\r\n", "2000"),
            ("HTTP/2 200\r\n\r\n", "HTTP/2"),
            ("HTTP/1.1 200 OK\r\nno header\r\n\r\n", "no header"),
            ("HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", "two that differ"),
            ("HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n", "-1"),
            ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n", "xyz"),
            (&long, "32768"),
        ] {
            let error = told(bytes.as_bytes(), &Request::new("GET", 10)).await.unwrap_err().to_string();
            assert!(error.contains(reason), "{bytes:.80}: {error}");
        }
    }

    proptest::proptest! {
        /// Whatever comes, in pieces of any size, there is an answer within its limit, or a reason.
        #[test]
        fn nothing_is_read_without_limit(
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
            if let Ok(answer) = runtime.block_on(told(&all, &Request::new("GET", 10))) {
                assert!(answer.body.len() <= 10);
            }
        }
    }

    #[tokio::test]
    async fn heads_come_in_pieces() {
        let (ours, mut theirs) = tokio::io::duplex(1);
        let reading =
            tokio::spawn(async move { Wire::new(ours).exchange(&Request::new("GET", 10), "").await });
        theirs.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc").await.unwrap();
        assert_eq!(reading.await.unwrap().unwrap().body, b"abc");
    }

    #[tokio::test]
    async fn odd_headers_are_noticed() {
        let request = Request::new("GET", 10);
        let answer = told(b"HTTP/1.1 200 OK\r\nA: 1\r\nB:2\r\n\r\n", &request).await.unwrap();
        assert_eq!(answer.odd_header.as_deref(), Some("B"));
        assert_eq!(answer.header("b"), Some("2"));
    }
}
