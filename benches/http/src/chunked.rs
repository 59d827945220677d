//! Decodes the chunked transfer coding (RFC 9112, section 7.1). Kindling sends long lists in this coding, because their
//! length is unknown at the start. The decoder does no input or output.
//!
//! The decoder does not trust the server: chunk extensions and trailers, which Kindling does not send, are errors.

use anyhow::{Result, bail, ensure};

/// Maximum number of digits of a chunk size: enough for a `u64`.
const MAX_DIGITS: usize = 16;

#[derive(Debug, Default)]
pub(crate) struct ChunkedBody {
    expected: ExpectedByte,
    /// Number of decoded bytes so far.
    len: u64,
}

/// The next expected byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ExpectedByte {
    /// A digit of a chunk size, or the CR after the size.
    Size {
        digits: usize,
        value: u64,
    },
    /// The LF after a chunk size.
    SizeEnd(u64),
    /// A byte of chunk data; the value is the number of remaining bytes.
    Data(u64),
    /// The CR after the chunk data. The last chunk has no data.
    DataEnd {
        is_last: bool,
    },
    DataLineFeed {
        is_last: bool,
    },
    /// Nothing: the body is complete.
    Nothing,
}

impl Default for ExpectedByte {
    fn default() -> Self {
        Self::Size { digits: 0, value: 0 }
    }
}

impl ChunkedBody {
    /// Returns `true` if the last chunk has arrived.
    pub(crate) fn is_done(&self) -> bool {
        self.expected == ExpectedByte::Nothing
    }

    /// Returns the length of the decoded body so far.
    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    /// Decodes received bytes, and passes the chunk data to `sink`.
    ///
    /// # Errors
    ///
    /// Returns an error if the coding is invalid, if bytes follow the last chunk, or if `sink` returns one.
    pub(crate) fn feed(&mut self, mut bytes: &[u8], sink: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()> {
        while let Some((&byte, rest)) = bytes.split_first() {
            if let ExpectedByte::Data(left) = self.expected {
                let len = usize::try_from(left).unwrap_or(usize::MAX).min(bytes.len());
                let (data, rest) = bytes.split_at(len);
                sink(data)?;
                let data_len = u64::try_from(len)?;
                self.len += data_len;
                self.expected = match left - data_len {
                    0 => ExpectedByte::DataEnd { is_last: false },
                    left => ExpectedByte::Data(left),
                };
                bytes = rest;
            } else {
                self.expected = self.after(byte)?;
                bytes = rest;
            }
        }
        Ok(())
    }

    /// Returns the next state after a byte of the framing.
    fn after(&self, byte: u8) -> Result<ExpectedByte> {
        Ok(match (self.expected, byte) {
            (ExpectedByte::Size { digits: 1.., value }, b'\r') => ExpectedByte::SizeEnd(value),
            (ExpectedByte::Size { digits, value }, _) => {
                let digit = char::from(byte).to_digit(16);
                let Some(digit) = digit else { bail!("{byte:#04x} in the length of a chunk") };
                ensure!(digits < MAX_DIGITS, "the length of a chunk has more than {MAX_DIGITS} digits");
                ExpectedByte::Size { digits: digits + 1, value: value << 4 | u64::from(digit) }
            }
            (ExpectedByte::SizeEnd(0), b'\n') => ExpectedByte::DataEnd { is_last: true },
            (ExpectedByte::SizeEnd(len), b'\n') => ExpectedByte::Data(len),
            (ExpectedByte::DataEnd { is_last }, b'\r') => ExpectedByte::DataLineFeed { is_last },
            (ExpectedByte::DataLineFeed { is_last: true }, b'\n') => ExpectedByte::Nothing,
            (ExpectedByte::DataLineFeed { is_last: false }, b'\n') => ExpectedByte::default(),
            (ExpectedByte::Nothing, _) => bail!("unexpected bytes after the response"),
            (expected, _) => bail!("{byte:#04x} in a chunked body, expected {expected:?}"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const BODY: &[u8] = b"3\r\nabc\r\n0A\r\n0123456789\r\n0\r\n\r\n";

    fn decoded(pieces: &[&[u8]]) -> Result<(Vec<u8>, ChunkedBody)> {
        let (mut decoded_bytes, mut body) = (Vec::new(), ChunkedBody::default());
        for piece in pieces {
            body.feed(piece, &mut |data| {
                decoded_bytes.extend_from_slice(data);
                Ok(())
            })?;
        }
        Ok((decoded_bytes, body))
    }

    #[test]
    fn body_is_decoded_in_any_fragmentation() {
        for size in 1..=BODY.len() {
            let pieces: Vec<&[u8]> = BODY.chunks(size).collect();
            let (decoded_bytes, body) = decoded(&pieces).unwrap();
            assert_eq!(decoded_bytes, b"abc0123456789", "pieces of {size}");
            assert!(body.is_done() && body.len() == 13);
        }
    }

    #[test]
    fn truncated_body_is_incomplete() {
        for len in 0..BODY.len() {
            assert!(!decoded(&[&BODY[..len]]).unwrap().1.is_done(), "{len}");
        }
    }

    #[test]
    fn rejects_invalid_chunks() {
        let bodies: &[&[u8]] = &[
            b"\r\n",
            b"g\r\n",
            b"-1\r\n",
            b" 1\r\n",
            b"1;a=b\r\n",
            b"1\n",
            b"1\r\r",
            b"1\r\nab",
            b"1\r\na\n",
            b"0\r\nA: b\r\n\r\n",
            b"0\r\n\r\n0",
            b"00000000000000001\r\n",
        ];
        for body in bodies {
            assert!(decoded(&[body]).is_err(), "{}", String::from_utf8_lossy(body));
        }
        assert!(decoded(&[b"ffffffffffffffff\r\nabc"]).is_ok());
    }

    proptest! {
        #[test]
        fn any_bytes_are_decoded_or_rejected(bytes in proptest::collection::vec(any::<u8>(), 0..100)) {
            let _ = decoded(&[&bytes]);
        }

        #[test]
        fn chunks_join_to_the_body(parts in proptest::collection::vec("[a-z]{1,40}", 0..10), size in 1..50_usize) {
            let mut text = Vec::new();
            for part in &parts {
                text.extend(format!("{:x}\r\n{part}\r\n", part.len()).into_bytes());
            }
            text.extend(b"0\r\n\r\n");
            let pieces: Vec<&[u8]> = text.chunks(size).collect();
            let (decoded_bytes, body) = decoded(&pieces).unwrap();
            prop_assert!(body.is_done());
            prop_assert_eq!(decoded_bytes, parts.concat().into_bytes());
        }
    }
}
