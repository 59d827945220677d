//! Decodes LZ4 blocks. A block is a list of sequences; each sequence is a run of literals and a match, which copies
//! bytes that are already decoded.
//!
//! ```text
//! token     high half: length of the literals; low half: length of the match - 4; for a half of 15, the following
//!           bytes are added, up to and including the first that is not 255
//! literals
//! distance  2 bytes, little-endian, counted back from the end of the decoded bytes
//! ```
//!
//! EROFS needs a decoder that stops after `limit` bytes, for two reasons. An extent may be shorter than its block,
//! because `mkfs.erofs` cuts extents at cluster boundaries. And without the zero-padding feature, zeros follow a block.
//! `lz4_flex` decodes only whole blocks with a known end and fails in both cases, so this module has its own decoder.

use std::io;

const MIN_MATCH: usize = 4;

/// Decodes the first `limit` bytes, or all bytes if the decoded block is shorter.
pub(super) fn decode(mut input: &[u8], limit: usize) -> io::Result<Vec<u8>> {
    let mut output = Vec::with_capacity(limit);
    while output.len() < limit {
        let Some((token, rest)) = input.split_first() else { break };
        input = rest;
        let literals = read_length(usize::from(token >> 4), &mut input)?;
        let copy_len = literals.min(limit - output.len());
        let (copied, rest) = input.split_at_checked(copy_len).ok_or(io::ErrorKind::UnexpectedEof)?;
        output.extend_from_slice(copied);
        if output.len() == limit {
            break;
        }
        input = rest;
        // The last sequence of a block has no match.
        let Some((distance, rest)) = input.split_first_chunk() else { break };
        input = rest;
        let distance = usize::from(u16::from_le_bytes(*distance));
        let len = read_length(usize::from(token & 15), &mut input)?.saturating_add(MIN_MATCH);
        let copy_len = len.min(limit - output.len());
        append_match(&mut output, distance, copy_len)?;
    }
    Ok(output)
}

fn read_length(first: usize, input: &mut &[u8]) -> io::Result<usize> {
    let mut length = first;
    let mut continues = first == 15;
    while continues {
        let (more, rest) = input.split_first().ok_or(io::ErrorKind::UnexpectedEof)?;
        *input = rest;
        length = length.saturating_add(usize::from(*more));
        continues = *more == 255;
    }
    Ok(length)
}

/// Copies `len` decoded bytes from `distance` bytes before the end to the end. A match may overlap the copied bytes.
fn append_match(output: &mut Vec<u8>, distance: usize, len: usize) -> io::Result<()> {
    let start = output.len().checked_sub(distance).filter(|_| distance > 0);
    let start = start.ok_or_else(|| io::Error::other(format!("match {distance} bytes back")))?;
    let mut rest = len;
    while rest > 0 {
        let step = rest.min(output.len() - start);
        output.extend_from_within(start..start + step);
        rest -= step;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literals_and_matches_are_decoded() {
        // "ab", then a match of 9 bytes from 2 bytes before the end, then "c".
        let block = [0x25, b'a', b'b', 2, 0, 0x10, b'c'];
        assert_eq!(decode(&block, 100).unwrap(), b"abababababac");
        assert_eq!(decode(&block, 5).unwrap(), b"ababa");
        assert_eq!(decode(&block, 1).unwrap(), b"a");
    }

    /// An EROFS extent may end within a literal or a match, with zeros or other bytes after it.
    #[test]
    fn decode_stops_at_the_limit_and_ignores_later_bytes() {
        let block = [0x25, b'a', b'b', 2, 0, 0x10, b'c'];
        for limit in 0..=12 {
            let padded = [&block[..], &[0; 9]].concat();
            assert_eq!(decode(&padded, limit).unwrap(), b"abababababac"[..limit]);
        }
    }

    #[test]
    fn rejects_match_offsets_before_the_output() {
        assert!(decode(&[0x10, b'a', 2, 0], 100).is_err());
        assert!(decode(&[0x10, b'a', 0, 0], 100).is_err());
    }

    #[test]
    fn long_length_continues_in_further_bytes() {
        let mut block = vec![0x1F, b'z', 1, 0, 255, 255, 7];
        assert_eq!(decode(&block, 10_000).unwrap(), vec![b'z'; 1 + 4 + 15 + 255 + 255 + 7]);
        block.truncate(6);
        assert!(decode(&block, 10_000).is_err());
    }
}
