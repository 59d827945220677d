//! Reads and writes fields at fixed offsets of a byte slice, and counts leading zeros.
//!
//! Readers return `None` if the slice ends before the field. Writers return [`Error::Internal`](crate::Error::Internal)
//! if the slice ends before the field or the value does not fit into it: callers compute both.

use crate::error::{OrInternal, Result};

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

#[inline]
pub(crate) fn u64_be(bytes: &[u8], offset: usize) -> Option<u64> {
    array_at(bytes, offset).map(u64::from_be_bytes)
}

/// Returns the field of `len` bytes at `offset`.
#[inline]
pub(crate) fn slice_at(bytes: &[u8], offset: usize, len: usize) -> Result<&[u8]> {
    let field = offset.checked_add(len).and_then(|end| bytes.get(offset..end));
    field.or_internal("field outside of its structure", offset as u64)
}

#[inline]
pub(crate) fn put_slice(bytes: &mut [u8], offset: usize, value: &[u8]) -> Result<()> {
    let field = offset.checked_add(value.len()).and_then(|end| bytes.get_mut(offset..end));
    field.or_internal("field outside of its structure", offset as u64)?.copy_from_slice(value);
    Ok(())
}

#[inline]
pub(crate) fn put_u8(bytes: &mut [u8], offset: usize, value: usize) -> Result<()> {
    let value = u8::try_from(value).or_internal("value too large for its field", offset as u64)?;
    put_slice(bytes, offset, &[value])
}

#[inline]
pub(crate) fn put_u32_le(bytes: &mut [u8], offset: usize, value: u64) -> Result<()> {
    let value = u32::try_from(value).or_internal("value too large for its field", offset as u64)?;
    put_slice(bytes, offset, &value.to_le_bytes())
}

/// Writes a number in both byte orders, as volume descriptors and directory records have it.
#[inline]
pub(crate) fn put_both_endian(bytes: &mut [u8], offset: usize, value: u32) -> Result<()> {
    put_slice(bytes, offset, &both_endian(value))
}

/// Encodes a number in both byte orders.
#[inline]
pub(crate) fn both_endian(number: u32) -> [u8; 8] {
    let [a, b, c, d] = number.to_le_bytes();
    [a, b, c, d, d, c, b, a]
}

/// Returns the first `len` bytes of a buffer, or the whole buffer if it is shorter.
#[inline]
pub(crate) fn prefix_mut(buf: &mut [u8], len: u64) -> &mut [u8] {
    let len = usize::try_from(len).map_or(buf.len(), |len| len.min(buf.len()));
    buf.split_at_mut(len).0
}

/// Returns the number of zeros at the start of `bytes`. Areas and gaps between files are mostly zeros, so whole blocks
/// are compared first, which is several times as fast as comparing each byte.
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
    use crate::error::Error;

    #[test]
    fn zeros_at_start_stops_at_the_first_other_byte() {
        for len in [0, 1, 63, 64, 65, 128, 200] {
            let zeros = vec![0; len];
            assert_eq!(count_leading_zeros(&zeros), len);
            assert_eq!(count_leading_zeros(&[&zeros[..], &[7; 100]].concat()), len);
        }
    }

    #[test]
    fn at_most_is_limited_by_the_buffer() {
        let mut buf = [0; 5];
        for (len, expected) in [(0, 0), (4, 4), (5, 5), (6, 5), (u64::MAX, 5)] {
            assert_eq!(prefix_mut(&mut buf, len).len(), expected);
        }
    }

    #[test]
    fn writers_write_their_field_only() {
        let mut bytes = [0xAA; 16];
        put_u8(&mut bytes, 0, 255).unwrap();
        put_u32_le(&mut bytes, 2, 0x0403_0201).unwrap();
        put_both_endian(&mut bytes, 8, 0x0403_0201).unwrap();
        assert_eq!(bytes, [255, 0xAA, 1, 2, 3, 4, 0xAA, 0xAA, 1, 2, 3, 4, 4, 3, 2, 1]);
    }

    #[test]
    fn writers_outside_of_the_structure_are_internal_errors() {
        let mut bytes = [0; 8];
        let failed = [
            put_u8(&mut bytes, 8, 1),
            put_u32_le(&mut bytes, 5, 1),
            put_both_endian(&mut bytes, 1, 1),
            put_slice(&mut bytes, usize::MAX, &[1]),
            slice_at(&bytes, 4, 5).map(drop),
        ];
        for failed in failed {
            let what = "field outside of its structure";
            assert!(
                matches!(failed, Err(Error::Internal { what: found, .. }) if found == what),
                "{failed:?}"
            );
        }
        assert_eq!(bytes, [0; 8]);
    }

    #[test]
    fn values_too_large_for_their_field_are_internal_errors() {
        let mut bytes = [0; 8];
        for failed in [put_u8(&mut bytes, 0, 256), put_u32_le(&mut bytes, 0, 1 << 32)] {
            let text = failed.unwrap_err().to_string();
            assert_eq!(text, "internal error at byte 0: value too large for its field");
        }
        assert_eq!(bytes, [0; 8]);
    }
}
