//! The head of an answer (RFC 9112), as much of it as tells whether the answer is the right one.
//!
//! What a server sends is not trusted: a head is bounded in length, every line has to have its form, and whatever would leave
//! the length of the body in doubt is an error.

use anyhow::{Context, Result, bail, ensure};

/// The longest head that is read.
pub(crate) const MAX_HEAD: usize = 16 << 10;

/// What matters of a head.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Head {
    pub(crate) status: u16,
    pub(crate) content_length: Option<u64>,
    pub(crate) content_range: Option<ContentRange>,
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
    /// Reads the head at the start of `bytes`, and how long it is; `None` if its end is not there yet.
    ///
    /// # Errors
    ///
    /// When it is no head of HTTP/1.1, too long, or does not tell the length of its body.
    pub(crate) fn parse(bytes: &[u8]) -> Result<Option<(Self, usize)>> {
        let seen = bytes.get(..MAX_HEAD).unwrap_or(bytes);
        let mut ends = seen.iter().enumerate().filter(|(_, byte)| **byte == b'\n').map(|(at, _)| at);
        let is_last = |end: &usize| seen.get(..=*end).is_some_and(|head| head.ends_with(b"\r\n\r\n"));
        let Some(end) = ends.find(is_last) else {
            ensure!(bytes.len() < MAX_HEAD, "the head of the answer is longer than {MAX_HEAD} bytes");
            return Ok(None);
        };
        let text = seen.get(..end.saturating_sub(1)).unwrap_or_default();
        let text = std::str::from_utf8(text).context("the head of the answer is not text")?;
        let mut lines = text.split_terminator('\n').map(line);
        let mut head = Self {
            status: status(lines.next().unwrap_or(Ok(""))?)?,
            content_length: None,
            content_range: None,
            closes: false,
        };
        for line in lines {
            head.field(line?)?;
        }
        Ok(Some((head, end + 1)))
    }

    fn field(&mut self, line: &str) -> Result<()> {
        let (name, value) = line.split_once(':').with_context(|| format!("{line:?} is no header"))?;
        ensure!(!name.is_empty() && name.bytes().all(is_token), "{name:?} is no name of a header");
        let value = value.trim_matches([' ', '\t']);
        if name.eq_ignore_ascii_case("content-length") {
            ensure!(self.content_length.is_none(), "there is more than one Content-Length");
            self.content_length = Some(number(value).with_context(|| format!("Content-Length: {value}"))?);
        } else if name.eq_ignore_ascii_case("content-range") {
            ensure!(self.content_range.is_none(), "there is more than one Content-Range");
            self.content_range =
                Some(content_range(value).with_context(|| format!("Content-Range: {value}"))?);
        } else if name.eq_ignore_ascii_case("transfer-encoding") {
            bail!("the body has no length: Transfer-Encoding: {value}");
        } else if name.eq_ignore_ascii_case("connection") {
            self.closes |= value.split(',').any(|option| option.trim().eq_ignore_ascii_case("close"));
        }
        Ok(())
    }
}

/// A line without its end, of which there is nothing else in it.
fn line(text: &str) -> Result<&str> {
    let line = text.strip_suffix('\r').with_context(|| format!("{text:?} does not end as a line does"))?;
    // All of them are looked at, which goes faster than to stop at the first.
    let is_broken = line.bytes().fold(false, |is_broken, byte| is_broken | (byte == b'\r') | (byte == b'\0'));
    ensure!(!is_broken, "{line:?} has a line end in it");
    Ok(line)
}

fn status(line: &str) -> Result<u16> {
    let rest = line.strip_prefix("HTTP/1.1 ").with_context(|| format!("{line:?} is no HTTP/1.1 status"))?;
    let (code, _) = rest.split_once(' ').unwrap_or((rest, ""));
    ensure!(code.len() == 3, "{line:?} is no HTTP/1.1 status");
    let code = number(code).with_context(|| format!("{line:?} is no HTTP/1.1 status"))?;
    ensure!((100..600).contains(&code), "{code} is no status");
    Ok(u16::try_from(code)?)
}

fn content_range(value: &str) -> Result<ContentRange> {
    let range = value.strip_prefix("bytes ").context("not in bytes")?;
    let (range, total) = range.split_once('/').context("no total")?;
    let (first, last) = range.split_once('-').context("no last byte")?;
    let range = ContentRange { first: number(first)?, last: number(last)?, total: number(total)? };
    ensure!(range.first <= range.last && range.last < range.total, "the bounds contradict each other");
    Ok(range)
}

/// Digits and nothing else: `parse` alone would take a sign.
fn number(text: &str) -> Result<u64> {
    ensure!(!text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()), "{text:?} is no number");
    text.parse().with_context(|| format!("{text:?} is no number"))
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
    fn a_head_is_read_up_to_its_end() {
        let (head, len) = Head::parse(PART).unwrap().unwrap();
        assert_eq!(len, PART.len() - 4);
        assert_eq!(
            head,
            Head {
                status: 206,
                content_length: Some(10),
                content_range: Some(ContentRange { first: 5, last: 14, total: 100 }),
                closes: true,
            }
        );
    }

    #[test]
    fn a_part_of_a_head_is_not_one_yet() {
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
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
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
    fn a_head_without_end_is_bounded() {
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
        fn any_bytes_are_a_head_or_an_error(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            let _ = Head::parse(&bytes);
        }

        #[test]
        fn any_change_of_a_head_is_a_head_or_an_error(at in 0..PART.len(), byte: u8) {
            let mut bytes = PART.to_vec();
            bytes[at] = byte;
            if let Ok(Some((_, len))) = Head::parse(&bytes) {
                prop_assert!(len <= bytes.len());
            }
        }
    }
}
