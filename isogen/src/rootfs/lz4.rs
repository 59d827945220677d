//! The LZ4 block format: runs of literals, each followed by a match in what was decoded before.
//!
//! ```text
//! token     high half: literals, low half: match length - 4; 15 goes on in further bytes, each added, 255 goes on again
//! literals
//! distance  2 bytes, little endian, counted back from the end of what was decoded
//! ```
//!
//! A block does not tell its decoded length, and EROFS may want the beginning of one only, or know nothing of where its
//! input ends. So this decoder stops as soon as it has enough, which a decoder of whole blocks would call an error.

use std::io;

/// Shortest match.
const MIN_MATCH: usize = 4;

/// Decodes the first `limit` bytes, or all of them where there are fewer.
pub(super) fn decode(mut input: &[u8], limit: usize) -> io::Result<Vec<u8>> {
    let mut output = Vec::with_capacity(limit);
    while output.len() < limit {
        let Some((token, rest)) = input.split_first() else { break };
        input = rest;
        let literals = length(usize::from(token >> 4), &mut input)?;
        let wanted = literals.min(limit - output.len());
        output.extend_from_slice(input.get(..wanted).ok_or(io::ErrorKind::UnexpectedEof)?);
        if output.len() == limit {
            break;
        }
        input = input.get(literals..).unwrap_or_default();
        // The last run of a block has no match.
        let Some((distance, rest)) = input.split_first_chunk() else { break };
        input = rest;
        let distance = usize::from(u16::from_le_bytes(*distance));
        let len = length(usize::from(token & 15), &mut input)?.saturating_add(MIN_MATCH);
        let wanted = len.min(limit - output.len());
        repeat(&mut output, distance, wanted)?;
    }
    Ok(output)
}

fn length(first: usize, input: &mut &[u8]) -> io::Result<usize> {
    let mut length = first;
    let mut goes_on = first == 15;
    while goes_on {
        let (more, rest) = input.split_first().ok_or(io::ErrorKind::UnexpectedEof)?;
        *input = rest;
        length = length.saturating_add(usize::from(*more));
        goes_on = *more == 255;
    }
    Ok(length)
}

/// Appends `len` bytes from `distance` bytes back; a match may reach into what it appends itself.
fn repeat(output: &mut Vec<u8>, distance: usize, len: usize) -> io::Result<()> {
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
    fn literals_and_matches() {
        // "ab", then 9 bytes from 2 back, then "c".
        let block = [0x25, b'a', b'b', 2, 0, 0x10, b'c'];
        assert_eq!(decode(&block, 100).unwrap(), b"abababababac");
        assert_eq!(decode(&block, 5).unwrap(), b"ababa");
        assert_eq!(decode(&block, 1).unwrap(), b"a");
    }

    #[test]
    fn matches_before_the_start_are_refused() {
        assert!(decode(&[0x10, b'a', 2, 0], 100).is_err());
        assert!(decode(&[0x10, b'a', 0, 0], 100).is_err());
    }

    #[test]
    fn long_lengths_go_on() {
        let mut block = vec![0x1F, b'z', 1, 0, 255, 255, 7];
        assert_eq!(decode(&block, 10_000).unwrap(), vec![b'z'; 1 + 4 + 15 + 255 + 255 + 7]);
        block.truncate(6);
        assert!(decode(&block, 10_000).is_err());
    }
}
