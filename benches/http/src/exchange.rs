//! One response, from its first to its last byte, and the check that it is the expected one. Does no input or output.

use anyhow::{Context, Result, ensure};

use crate::chunked::ChunkedBody;
use crate::head::{ContentRange, Head, MAX_HEAD};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ExpectedResponse {
    /// The whole file of this many bytes.
    Whole(u64),
    /// This range of the file.
    Part(ContentRange),
    /// Any body with this status. The body may use the chunked transfer coding.
    Status(u16),
}

/// Status 204. Such a response has neither a body nor a length (RFC 9110, section 8.6).
const NO_CONTENT: u16 = 204;

impl ExpectedResponse {
    /// Returns the length of the body if `head` belongs to the expected response; `None` if the body is chunked.
    fn check(&self, head: &Head) -> Result<Option<u64>> {
        let status = match self {
            Self::Whole(_) => 200,
            Self::Part(_) => 206,
            Self::Status(status) => *status,
        };
        ensure!(head.status == status, "the status is {}, expected {status}", head.status);
        if let Self::Status(status) = self {
            if head.is_chunked {
                return Ok(None);
            }
            if *status == NO_CONTENT {
                ensure!(head.content_length.unwrap_or(0) == 0, "a body with status {NO_CONTENT}");
                return Ok(Some(0));
            }
        }
        let len = head.content_length.context("Content-Length is missing")?;
        match self {
            Self::Whole(expected) => {
                ensure!(len == *expected, "Content-Length is {len}, expected {expected}")
            }
            Self::Part(expected) => {
                let received = head.content_range.context("Content-Range is missing")?;
                ensure!(received == *expected, "Content-Range is {received:?}, expected {expected:?}");
                let expected = expected.last - expected.first + 1;
                ensure!(len == expected, "Content-Length is {len}, expected {expected}");
            }
            Self::Status(_) => {}
        }
        Ok(Some(len))
    }
}

#[derive(Debug)]
pub(crate) struct Exchange {
    expected: ExpectedResponse,
    /// Received bytes of an incomplete head.
    partial: Vec<u8>,
    head: Option<Head>,
    len: u64,
    left: u64,
    /// `None` for a body with a known length.
    chunks: Option<ChunkedBody>,
}

impl Exchange {
    pub(crate) fn new(expected: ExpectedResponse) -> Self {
        Self { expected, partial: Vec::new(), head: None, len: 0, left: 0, chunks: None }
    }

    /// Returns the number of remaining bytes of the body; `None` before the end of the head, and for a chunked body.
    pub(crate) fn left(&self) -> Option<u64> {
        self.head.as_ref().filter(|_| self.chunks.is_none()).map(|_| self.left)
    }

    pub(crate) fn is_done(&self) -> bool {
        self.chunks.as_ref().map_or_else(|| self.left() == Some(0), ChunkedBody::is_done)
    }

    /// Returns `true` if the body is chunked, so that [`Self::decode`] must decode it.
    pub(crate) fn is_chunked(&self) -> bool {
        self.chunks.is_some()
    }

    /// Returns `true` if the connection closes after this response.
    pub(crate) fn closes(&self) -> bool {
        self.head.as_ref().is_some_and(|head| head.closes)
    }

    /// Returns the length of the body, or the number of decoded bytes so far if the body is chunked. 0 before the end
    /// of the head.
    pub(crate) fn len(&self) -> u64 {
        self.chunks.as_ref().map_or(self.len, ChunkedBody::len)
    }

    pub(crate) fn head(&self) -> Option<&Head> {
        self.head.as_ref()
    }

    /// Takes received bytes, and returns the part that belongs to the body. If the body is chunked, pass this part to
    /// [`Self::decode`].
    ///
    /// # Errors
    ///
    /// Returns an error if the response is not the expected one or has excess bytes.
    pub(crate) fn feed<'a>(&mut self, bytes: &'a [u8]) -> Result<&'a [u8]> {
        let body = if self.head.is_some() { bytes } else { self.feed_head(bytes)? };
        if self.chunks.is_none() {
            self.passed(body.len())?;
        }
        Ok(body)
    }

    /// Passes the content of body bytes that [`Self::feed`] returned to `sink`, without the framing of chunks.
    ///
    /// # Errors
    ///
    /// Returns an error if the chunks are invalid or `sink` returns one.
    pub(crate) fn decode(&mut self, body: &[u8], sink: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()> {
        match &mut self.chunks {
            Some(chunks) => chunks.feed(body, sink),
            None if body.is_empty() => Ok(()),
            None => sink(body),
        }
    }

    /// Counts body bytes that the kernel discarded unread.
    ///
    /// # Errors
    ///
    /// Returns an error if the body has fewer bytes left.
    pub(crate) fn passed(&mut self, len: usize) -> Result<()> {
        let len = u64::try_from(len)?;
        self.left = self.left.checked_sub(len).with_context(|| {
            format!("{} unexpected bytes after the response", len.saturating_sub(self.left))
        })?;
        Ok(())
    }

    fn feed_head<'a>(&mut self, bytes: &'a [u8]) -> Result<&'a [u8]> {
        // The whole head nearly always arrives in one read, and is then parsed without a copy.
        let before = self.partial.len();
        let parsed = if before == 0 {
            Head::parse(bytes)?
        } else {
            let more = bytes.get(..MAX_HEAD).unwrap_or(bytes);
            self.partial.extend_from_slice(more);
            Head::parse(&self.partial)?
        };
        let Some((head, len)) = parsed else {
            if before == 0 {
                self.partial.extend_from_slice(bytes);
            }
            return Ok(&[]);
        };
        match self.expected.check(&head)? {
            Some(len) => (self.len, self.left) = (len, len),
            None => self.chunks = Some(ChunkedBody::default()),
        }
        self.head = Some(head);
        self.partial = Vec::new();
        Ok(bytes.get(len.saturating_sub(before)..).unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RANGE: ContentRange = ContentRange { first: 2, last: 5, total: 9 };
    const ANSWER: &[u8] =
        b"HTTP/1.1 206 Partial\r\nContent-Length: 4\r\nContent-Range: bytes 2-5/9\r\n\r\nabcd";

    #[test]
    fn response_is_parsed_in_any_fragmentation() {
        for size in 1..=ANSWER.len() {
            let mut exchange = Exchange::new(ExpectedResponse::Part(RANGE));
            let mut body: Vec<u8> = Vec::new();
            for piece in ANSWER.chunks(size) {
                assert!(!exchange.is_done());
                body.extend(exchange.feed(piece).unwrap());
            }
            assert_eq!(body, b"abcd", "pieces of {size}");
            assert!(exchange.is_done() && !exchange.closes());
        }
    }

    #[test]
    fn rejects_bytes_after_the_response() {
        let mut exchange = Exchange::new(ExpectedResponse::Part(RANGE));
        assert!(exchange.feed(&[ANSWER, b"e"].concat()).is_err());
        let mut exchange = Exchange::new(ExpectedResponse::Part(RANGE));
        exchange.feed(&ANSWER[..ANSWER.len() - 1]).unwrap();
        assert_eq!(exchange.left(), Some(1));
        assert!(exchange.passed(2).is_err());
    }

    #[test]
    fn rejects_unexpected_response() {
        let other = ContentRange { last: 6, ..RANGE };
        for expected in
            [ExpectedResponse::Whole(4), ExpectedResponse::Part(other), ExpectedResponse::Status(200)]
        {
            assert!(Exchange::new(expected).feed(ANSWER).is_err(), "{expected:?}");
        }
        for (expected, answer) in [
            (ExpectedResponse::Whole(4), "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n"),
            (ExpectedResponse::Whole(4), "HTTP/1.1 200 OK\r\n\r\n"),
            (ExpectedResponse::Part(RANGE), "HTTP/1.1 206 OK\r\nContent-Length: 4\r\n\r\n"),
            (
                ExpectedResponse::Part(RANGE),
                "HTTP/1.1 206 OK\r\nContent-Length: 3\r\nContent-Range: bytes 2-5/9\r\n\r\n",
            ),
        ] {
            assert!(Exchange::new(expected).feed(answer.as_bytes()).is_err(), "{answer}");
        }
    }

    #[test]
    fn chunked_response_is_decoded_in_any_fragmentation() {
        let answer = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n1\r\nc\r\n0\r\n\r\n";
        for size in 1..=answer.len() {
            let mut exchange = Exchange::new(ExpectedResponse::Status(200));
            let mut decoded: Vec<u8> = Vec::new();
            for piece in answer.chunks(size) {
                assert!(!exchange.is_done());
                let body = exchange.feed(piece).unwrap();
                let mut keep = |bytes: &[u8]| {
                    decoded.extend(bytes);
                    Ok(())
                };
                exchange.decode(body, &mut keep).unwrap();
            }
            assert_eq!(decoded, b"abc", "pieces of {size}");
            assert!(exchange.is_done() && exchange.is_chunked() && exchange.len() == 3);
        }
    }

    #[test]
    fn rejects_chunked_images() {
        let answer = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
        assert!(Exchange::new(ExpectedResponse::Whole(4)).feed(answer).is_err());
        let answer = b"HTTP/1.1 206 OK\r\nTransfer-Encoding: chunked\r\nContent-Range: bytes 2-5/9\r\n\r\n";
        assert!(Exchange::new(ExpectedResponse::Part(RANGE)).feed(answer).is_err());
    }

    #[test]
    fn response_without_content_ends_with_its_head() {
        let mut exchange = Exchange::new(ExpectedResponse::Status(204));
        exchange.feed(b"HTTP/1.1 204 No Content\r\n\r\n").unwrap();
        assert!(exchange.is_done());
        let mut exchange = Exchange::new(ExpectedResponse::Status(204));
        assert!(exchange.feed(b"HTTP/1.1 204 No Content\r\nContent-Length: 1\r\n\r\n").is_err());
        let mut exchange = Exchange::new(ExpectedResponse::Status(200));
        assert!(exchange.feed(b"HTTP/1.1 200 OK\r\n\r\n").is_err());
    }

    #[test]
    fn rejects_endless_head() {
        let mut exchange = Exchange::new(ExpectedResponse::Status(200));
        let piece = [b'a'; 1000];
        exchange.feed(b"HTTP/1.1 200 OK\r\nA: ").unwrap();
        let fed = (0..20).take_while(|_| exchange.feed(&piece).is_ok()).count();
        assert_eq!(fed, (MAX_HEAD - 1) / 1000);
    }
}
