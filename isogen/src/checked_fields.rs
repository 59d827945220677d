//! Reads and writes fields of binary structures that this crate builds, at computed offsets.
//!
//! All functions return [`Error::Internal`](crate::error::Error::Internal) if the field is outside of the structure, or
//! if the value does not fit into the field.

use crate::error::{OrInternal, Result};

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

/// Encodes a number in both byte orders, the format of numbers in volume descriptors and directory records.
#[inline]
pub(crate) fn both_endian(number: u32) -> [u8; 8] {
    let [a, b, c, d] = number.to_le_bytes();
    [a, b, c, d, d, c, b, a]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Error;

    #[test]
    fn writers_change_only_their_field() {
        let mut bytes = [0xAA; 16];
        put_u8(&mut bytes, 0, 255).unwrap();
        put_slice(&mut bytes, 2, &[1, 2, 3, 4]).unwrap();
        put_slice(&mut bytes, 8, &both_endian(0x0403_0201)).unwrap();
        assert_eq!(bytes, [255, 0xAA, 1, 2, 3, 4, 0xAA, 0xAA, 1, 2, 3, 4, 4, 3, 2, 1]);
    }

    #[test]
    fn writing_past_the_end_of_a_structure_is_an_internal_error() {
        let mut bytes = [0; 8];
        let failed = [
            put_u8(&mut bytes, 8, 1),
            put_slice(&mut bytes, 5, &[0; 4]),
            put_slice(&mut bytes, 1, &both_endian(1)),
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
        let text = put_u8(&mut bytes, 0, 256).unwrap_err().to_string();
        assert_eq!(text, "internal error at byte 0: value too large for its field");
        assert_eq!(bytes, [0; 8]);
    }
}
