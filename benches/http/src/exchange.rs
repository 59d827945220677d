//! One answer, from its first byte to its last: what it has to be, and whether it is. No input or output here.

use anyhow::{Context, Result, ensure};

use crate::head::{ContentRange, Head, MAX_HEAD};

/// What an answer has to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// The whole file, of so many bytes.
    Whole(u64),
    /// This part of it.
    Part(ContentRange),
    /// Whatever has this status.
    Status(u16),
}

impl Wanted {
    /// The length of the body, if this head is that of the wanted answer.
    fn check(&self, head: &Head) -> Result<u64> {
        let status = match self {
            Self::Whole(_) => 200,
            Self::Part(_) => 206,
            Self::Status(status) => *status,
        };
        ensure!(head.status == status, "the status is {} and not {status}", head.status);
        let len = head.content_length.context("there is no Content-Length")?;
        match self {
            Self::Whole(wanted) => ensure!(len == *wanted, "Content-Length is {len} and not {wanted}"),
            Self::Part(wanted) => {
                let found = head.content_range.context("there is no Content-Range")?;
                ensure!(found == *wanted, "Content-Range is {found:?} and not {wanted:?}");
                let wanted = wanted.last - wanted.first + 1;
                ensure!(len == wanted, "Content-Length is {len} and not {wanted}");
            }
            Self::Status(_) => {}
        }
        Ok(len)
    }
}

/// An answer on its way.
#[derive(Debug)]
pub(crate) struct Exchange {
    wanted: Wanted,
    /// What there is of a head whose end has not come yet.
    partial: Vec<u8>,
    head: Option<Head>,
    len: u64,
    left: u64,
}

impl Exchange {
    pub(crate) fn new(wanted: Wanted) -> Self {
        Self { wanted, partial: Vec::new(), head: None, len: 0, left: 0 }
    }

    /// Bytes of the body that are still to come; `None` before the end of the head.
    pub(crate) fn left(&self) -> Option<u64> {
        self.head.as_ref().map(|_| self.left)
    }

    pub(crate) fn is_done(&self) -> bool {
        self.left() == Some(0)
    }

    /// Whether the connection ends with this answer.
    pub(crate) fn closes(&self) -> bool {
        self.head.as_ref().is_some_and(|head| head.closes)
    }

    /// The length of the body, once the head has told it.
    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    pub(crate) fn head(&self) -> Option<&Head> {
        self.head.as_ref()
    }

    /// Takes what came, and gives what of it is the body.
    ///
    /// # Errors
    ///
    /// When it is not the wanted answer, or when more comes than belongs to it.
    pub(crate) fn feed<'a>(&mut self, bytes: &'a [u8]) -> Result<&'a [u8]> {
        let body = if self.head.is_some() { bytes } else { self.feed_head(bytes)? };
        self.passed(body.len())?;
        Ok(body)
    }

    /// Counts bytes of the body that nobody looks at.
    ///
    /// # Errors
    ///
    /// When there are more than belong to it.
    pub(crate) fn passed(&mut self, len: usize) -> Result<()> {
        let len = u64::try_from(len)?;
        self.left = self.left.checked_sub(len).with_context(|| {
            format!("{} bytes follow the answer, which nobody asked for", len.saturating_sub(self.left))
        })?;
        Ok(())
    }

    fn feed_head<'a>(&mut self, bytes: &'a [u8]) -> Result<&'a [u8]> {
        // Nearly always the whole head comes at once, and is read where it is.
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
        self.len = self.wanted.check(&head)?;
        self.left = self.len;
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
    fn an_answer_is_the_same_in_any_pieces() {
        for size in 1..=ANSWER.len() {
            let mut exchange = Exchange::new(Wanted::Part(RANGE));
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
    fn bytes_behind_an_answer_are_an_error() {
        let mut exchange = Exchange::new(Wanted::Part(RANGE));
        assert!(exchange.feed(&[ANSWER, b"e"].concat()).is_err());
        let mut exchange = Exchange::new(Wanted::Part(RANGE));
        exchange.feed(&ANSWER[..ANSWER.len() - 1]).unwrap();
        assert_eq!(exchange.left(), Some(1));
        assert!(exchange.passed(2).is_err());
    }

    #[test]
    fn another_answer_than_the_wanted_one_is_an_error() {
        let other = ContentRange { last: 6, ..RANGE };
        for wanted in [Wanted::Whole(4), Wanted::Part(other), Wanted::Status(200)] {
            assert!(Exchange::new(wanted).feed(ANSWER).is_err(), "{wanted:?}");
        }
        for (wanted, answer) in [
            (Wanted::Whole(4), "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n"),
            (Wanted::Whole(4), "HTTP/1.1 200 OK\r\n\r\n"),
            (Wanted::Part(RANGE), "HTTP/1.1 206 OK\r\nContent-Length: 4\r\n\r\n"),
            (
                Wanted::Part(RANGE),
                "HTTP/1.1 206 OK\r\nContent-Length: 3\r\nContent-Range: bytes 2-5/9\r\n\r\n",
            ),
        ] {
            assert!(Exchange::new(wanted).feed(answer.as_bytes()).is_err(), "{answer}");
        }
    }

    #[test]
    fn an_endless_head_is_an_error() {
        let mut exchange = Exchange::new(Wanted::Status(200));
        let piece = [b'a'; 1000];
        exchange.feed(b"HTTP/1.1 200 OK\r\nA: ").unwrap();
        let fed = (0..20).take_while(|_| exchange.feed(&piece).is_ok()).count();
        assert_eq!(fed, (MAX_HEAD - 1) / 1000);
    }
}
