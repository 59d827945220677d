//! Reads numbers at fixed offsets of a byte slice, and counts leading zeros.
//!
//! The functions that read a number return `None` if the slice ends before the number does.

#[inline]
pub(crate) fn array_at<const N: usize>(bytes: &[u8], offset: usize) -> Option<[u8; N]> {
    bytes.get(offset..offset.checked_add(N)?)?.try_into().ok()
}

#[inline]
pub(crate) fn u16_le(bytes: &[u8], offset: usize) -> Option<u16> {
    array_at(bytes, offset).map(u16::from_le_bytes)
}

#[inline]
pub(crate) fn u16_be(bytes: &[u8], offset: usize) -> Option<u16> {
    array_at(bytes, offset).map(u16::from_be_bytes)
}

#[inline]
pub(crate) fn u32_le(bytes: &[u8], offset: usize) -> Option<u32> {
    array_at(bytes, offset).map(u32::from_le_bytes)
}

#[inline]
pub(crate) fn u32_be(bytes: &[u8], offset: usize) -> Option<u32> {
    array_at(bytes, offset).map(u32::from_be_bytes)
}

#[inline]
pub(crate) fn u64_le(bytes: &[u8], offset: usize) -> Option<u64> {
    array_at(bytes, offset).map(u64::from_le_bytes)
}

/// Returns the first `len` bytes of a buffer, or the whole buffer if it is shorter.
#[inline]
pub(crate) fn prefix_mut(buf: &mut [u8], len: u64) -> &mut [u8] {
    let len = usize::try_from(len).map_or(buf.len(), |len| len.min(buf.len()));
    buf.split_at_mut(len).0
}

/// Returns the number of zeros at the start of `bytes`. Areas and gaps between files are mostly zeros, so this compares
/// whole blocks first, which is several times as fast as comparing each byte.
#[inline]
pub(crate) fn count_leading_zeros(bytes: &[u8]) -> usize {
    const BLOCK_LEN: usize = 64;
    let (blocks, _) = bytes.as_chunks::<BLOCK_LEN>();
    let whole = BLOCK_LEN * blocks.iter().take_while(|block| **block == [0; BLOCK_LEN]).count();
    whole + bytes.iter().skip(whole).take_while(|byte| **byte == 0).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn count_leading_zeros_stops_at_the_first_other_byte() {
        for len in [0, 1, 63, 64, 65, 128, 200] {
            let zeros = vec![0; len];
            assert_eq!(count_leading_zeros(&zeros), len);
            assert_eq!(count_leading_zeros(&[&zeros[..], &[7; 100]].concat()), len);
        }
    }

    #[test]
    fn prefix_mut_is_limited_by_the_buffer() {
        let mut buf = [0; 5];
        for (len, expected) in [(0, 0), (4, 4), (5, 5), (6, 5), (u64::MAX, 5)] {
            assert_eq!(prefix_mut(&mut buf, len).len(), expected);
        }
    }
}
