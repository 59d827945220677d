//! Reads numbers at fixed offsets of a byte slice, in either byte order, and counts leading zeros.
//!
//! A number is `None` if the slice ends before it.

pub(crate) fn array<const N: usize>(bytes: &[u8], offset: usize) -> Option<[u8; N]> {
    bytes.get(offset..offset.checked_add(N)?)?.try_into().ok()
}

pub(crate) fn u16_le(bytes: &[u8], offset: usize) -> Option<u16> {
    array(bytes, offset).map(u16::from_le_bytes)
}

pub(crate) fn u16_be(bytes: &[u8], offset: usize) -> Option<u16> {
    array(bytes, offset).map(u16::from_be_bytes)
}

pub(crate) fn u32_le(bytes: &[u8], offset: usize) -> Option<u32> {
    array(bytes, offset).map(u32::from_le_bytes)
}

pub(crate) fn u32_be(bytes: &[u8], offset: usize) -> Option<u32> {
    array(bytes, offset).map(u32::from_be_bytes)
}

pub(crate) fn u64_le(bytes: &[u8], offset: usize) -> Option<u64> {
    array(bytes, offset).map(u64::from_le_bytes)
}

pub(crate) fn u64_be(bytes: &[u8], offset: usize) -> Option<u64> {
    array(bytes, offset).map(u64::from_be_bytes)
}

/// The number of zeros that some bytes begin with. Areas and gaps between files are mostly zeros, so whole blocks are
/// compared first: several times as fast as looking at each byte.
pub(crate) fn zeros_at_start(bytes: &[u8]) -> usize {
    const BLOCK_LEN: usize = 64;
    let (blocks, _) = bytes.as_chunks::<BLOCK_LEN>();
    let whole = BLOCK_LEN * blocks.iter().take_while(|block| **block == [0; BLOCK_LEN]).count();
    whole + bytes.iter().skip(whole).take_while(|byte| **byte == 0).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zeros_at_start_stops_at_the_first_other_byte() {
        for len in [0, 1, 63, 64, 65, 128, 200] {
            let zeros = vec![0; len];
            assert_eq!(zeros_at_start(&zeros), len);
            assert_eq!(zeros_at_start(&[&zeros[..], &[7; 100]].concat()), len);
        }
    }
}
