//! Parses the head of a response (RFC 9112), as far as the checks of the response need it.
//!
//! The parser does not trust the server: the head is limited in length, every line must be well-formed, and an
//! ambiguous body length is an error.

use anyhow::{Context, Result, ensure};

/// Maximum length of a head.
pub(crate) const MAX_HEAD: usize = 16 << 10;

/// The checked fields of a head.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Head {
    pub(crate) status: u16,
    pub(crate) content_length: Option<u64>,
    pub(crate) content_range: Option<ContentRange>,
    /// Whether the body uses the chunked transfer coding, so that the head declares no length.
    pub(crate) is_chunked: bool,
    /// Whether the server closes the connection after the body.
    pub(crate) closes: bool,
}

/// `bytes FIRST-LAST/TOTAL`
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ContentRange {
    pub(crate) first: u64,
    pub(crate) last: u64,
    pub(crate) total: u64,
}

impl Head {
    /// Parses the head at the start of `bytes` and returns it with its length; `None` if it is incomplete.
    ///
    /// # Errors
    ///
    /// Returns an error if it is not a valid HTTP/1.1 head, is too long, or does not determine the length of the body.
    pub(crate) fn parse(bytes: &[u8]) -> Result<Option<(Self, usize)>> {
        let prefix = bytes.get(..MAX_HEAD).unwrap_or(bytes);
        let mut ends = prefix.iter().enumerate().filter(|(_, byte)| **byte == b'\n').map(|(at, _)| at);
        let is_last = |end: &usize| prefix.get(..=*end).is_some_and(|head| head.ends_with(b"\r\n\r\n"));
        let Some(end) = ends.find(is_last) else {
            ensure!(bytes.len() < MAX_HEAD, "the response head is longer than {MAX_HEAD} bytes");
            return Ok(None);
        };
        let text = prefix.get(..end.saturating_sub(1)).unwrap_or_default();
        let text = std::str::from_utf8(text).context("the response head is not text")?;
        let mut lines = text.split_terminator('\n').map(line);
        let mut head = Self {
            status: status(lines.next().unwrap_or(Ok(""))?)?,
            content_length: None,
            content_range: None,
            is_chunked: false,
            closes: false,
        };
        for line in lines {
            head.field(line?)?;
        }
        ensure!(
            !head.is_chunked || head.content_length.is_none(),
            "both Transfer-Encoding and Content-Length"
        );
        Ok(Some((head, end + 1)))
    }

    fn field(&mut self, line: &str) -> Result<()> {
        let (name, value) = line.split_once(':').with_context(|| format!("{line:?} is not a header"))?;
        ensure!(!name.is_empty() && name.bytes().all(is_token), "{name:?} is not a valid header name");
        let value = value.trim_matches([' ', '\t']);
        if name.eq_ignore_ascii_case("content-length") {
            ensure!(self.content_length.is_none(), "duplicate Content-Length");
            self.content_length = Some(number(value).with_context(|| format!("Content-Length: {value}"))?);
        } else if name.eq_ignore_ascii_case("content-range") {
            ensure!(self.content_range.is_none(), "duplicate Content-Range");
            self.content_range =
                Some(content_range(value).with_context(|| format!("Content-Range: {value}"))?);
        } else if name.eq_ignore_ascii_case("transfer-encoding") {
            let is_chunked = value.eq_ignore_ascii_case("chunked");
            ensure!(is_chunked && !self.is_chunked, "unsupported Transfer-Encoding: {value}");
            self.is_chunked = true;
        } else if name.eq_ignore_ascii_case("connection") {
            self.closes |= value.split(',').any(|option| option.trim().eq_ignore_ascii_case("close"));
        }
        Ok(())
    }
}

/// Removes the carriage return at the end of a line. A carriage return or NUL inside the line is an error.
fn line(text: &str) -> Result<&str> {
    let line = text.strip_suffix('\r').with_context(|| format!("{text:?} does not end with a line break"))?;
    // Checks all bytes, which is faster than stopping at the first invalid one.
    let is_broken = line.bytes().fold(false, |is_broken, byte| is_broken | (byte == b'\r') | (byte == b'\0'));
    ensure!(!is_broken, "{line:?} contains a line break");
    Ok(line)
}

fn status(line: &str) -> Result<u16> {
    let rest =
        line.strip_prefix("HTTP/1.1 ").with_context(|| format!("{line:?} is not an HTTP/1.1 status line"))?;
    let (code, _) = rest.split_once(' ').unwrap_or((rest, ""));
    ensure!(code.len() == 3, "{line:?} is not an HTTP/1.1 status line");
    let code = number(code).with_context(|| format!("{line:?} is not an HTTP/1.1 status line"))?;
    ensure!((100..600).contains(&code), "{code} is not a status code");
    Ok(u16::try_from(code)?)
}

fn content_range(value: &str) -> Result<ContentRange> {
    let range = value.strip_prefix("bytes ").context("not in bytes")?;
    let (range, total) = range.split_once('/').context("no total")?;
    let (first, last) = range.split_once('-').context("the last byte is missing")?;
    let range = ContentRange { first: number(first)?, last: number(last)?, total: number(total)? };
    ensure!(range.first <= range.last && range.last < range.total, "the bounds contradict each other");
    Ok(range)
}

/// Parses an unsigned number. Accepts only digits, because `parse` alone accepts a sign.
fn number(text: &str) -> Result<u64> {
    ensure!(!text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()), "{text:?} is not a number");
    text.parse().with_context(|| format!("{text:?} is not a number"))
}

fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
        || matches!(byte, b'!' | b'#'..=b'\'' | b'*' | b'+' | b'-' | b'.' | b'^'..=b'`' | b'|' | b'~')
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const PART: &[u8] = b"HTTP/1.1 206 Partial Content\r\nContent-Length: 10\r\n\
        content-range: bytes 5-14/100\r\nConnection: keep-alive, Close\r\n\r\nbody";

    #[test]
    fn head_ends_at_the_first_empty_line() {
        let (head, len) = Head::parse(PART).unwrap().unwrap();
        assert_eq!(len, PART.len() - 4);
        assert_eq!(
            head,
            Head {
                status: 206,
                content_length: Some(10),
                content_range: Some(ContentRange { first: 5, last: 14, total: 100 }),
                is_chunked: false,
                closes: true,
            }
        );
        let (head, _) =
            Head::parse(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked\r\n\r\n").unwrap().unwrap();
        assert!(head.is_chunked && head.content_length.is_none());
    }

    #[test]
    fn partial_head_is_incomplete() {
        for len in 0..PART.len() - 4 {
            assert_eq!(Head::parse(&PART[..len]).unwrap(), None, "{len}");
        }
    }

    #[test]
    fn hostile_heads_are_errors() {
        let heads: &[&[u8]] = &[
            b"HTTP/1.0 200 OK\r\n\r\n",
            b"HTTP/1.1 20 OK\r\n\r\n",
            b"HTTP/1.1 +20 OK\r\n\r\n",
            b"HTTP/1.1 999 OK\r\n\r\n",
            b"HTTP/1.1 200 O\rK\r\n\r\n",
            b"ICY 200 OK\r\n\r\n",
            b"\r\n\r\n",
            b"HTTP/1.1 200 \xff\r\n\r\n",
            b"HTTP/1.1 200 OK\r\nContent-Length\r\n\r\n",
            b"HTTP/1.1 200 OK\r\nContent-Length : 1\r\n\r\n",
            b"HTTP/1.1 200 OK\r\n: 1\r\n\r\n",
            b"HTTP/1.1 200 OK\r\n folded: 1\r\n\r\n",
            b"HTTP/1.1 200 OK\r\nA: b\nContent-Length: 1\r\n\r\n",
            b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
            b"HTTP/1.1 200 OK\r\nContent-Length: +1\r\n\r\n",
            b"HTTP/1.1 200 OK\r\nContent-Length: 1, 1\r\n\r\n",
            b"HTTP/1.1 200 OK\r\nContent-Length: 18446744073709551616\r\n\r\n",
            b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\ncontent-length: 1\r\n\r\n",
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n",
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n",
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 1\r\n\r\n",
            b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
            b"HTTP/1.1 206 OK\r\nContent-Range: bytes 5-4/10\r\n\r\n",
            b"HTTP/1.1 206 OK\r\nContent-Range: bytes 5-10/10\r\n\r\n",
            b"HTTP/1.1 206 OK\r\nContent-Range: bytes 5-9/*\r\n\r\n",
            b"HTTP/1.1 206 OK\r\nContent-Range: lines 5-9/10\r\n\r\n",
        ];
        for head in heads {
            assert!(Head::parse(head).is_err(), "{}", String::from_utf8_lossy(head));
        }
    }

    #[test]
    fn endless_head_is_limited() {
        let mut endless = b"HTTP/1.1 200 OK\r\nA: ".to_vec();
        endless.resize(MAX_HEAD - 1, b'a');
        assert_eq!(Head::parse(&endless).unwrap(), None);
        endless.push(b'a');
        assert!(Head::parse(&endless).is_err());
        endless.extend(b"\r\n\r\n");
        assert!(Head::parse(&endless).is_err());
    }

    proptest! {
        #[test]
        fn any_bytes_are_parsed_or_rejected(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            let _ = Head::parse(&bytes);
        }

        #[test]
        fn any_changed_head_is_parsed_or_rejected(at in 0..PART.len(), byte: u8) {
            let mut bytes = PART.to_vec();
            bytes[at] = byte;
            if let Ok(Some((_, len))) = Head::parse(&bytes) {
                prop_assert!(len <= bytes.len());
            }
        }
    }
}
