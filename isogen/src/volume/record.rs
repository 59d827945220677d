//! Directory records (ECMA-119, 9.1).
//!
//! ```text
//! 0  1 length of the record      18 7 date            28 4 volume sequence, both-endian
//! 1  1 extended attributes       25 1 flags           32 1 length of the name
//! 2  8 sector, both-endian       26 1 interleave unit 33 n name, then a pad byte where n is even
//! 10 8 data length, both-endian  27 1 interleave gap        system use area
//! ```

use std::ops::Range;

use super::finding::Finding;
use crate::bytes_at::{u16_be, u16_le, u32_be, u32_le};
use crate::error::Result;
use crate::extent::{Extent, Sector};
use crate::source::Source;

const FLAG_DIRECTORY: u8 = 2;
const FLAG_MORE_EXTENTS: u8 = 128;
/// Bytes before the name.
const FIXED_LEN: usize = 33;

/// One directory record, and where in the image it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// Where the record stands in the image.
    pub position: u64,
    /// Bytes of the record.
    pub len: u8,
    /// The sector at which the data begins.
    pub sector: Sector,
    /// Bytes of data.
    pub data_len: u32,
    /// The file flags.
    pub flags: u8,
    /// The raw name; one byte 0 or 1 for the directory itself or its parent.
    pub name: Vec<u8>,
    /// The system use area, as a range of the record's bytes.
    pub system_use: Range<usize>,
}

impl Record {
    /// Reads the record at the start of `bytes`, which end with the sector; `position` is where they stand.
    pub(super) fn parse(
        source: &Source,
        bytes: &[u8],
        position: u64,
        findings: &mut Vec<Finding>,
    ) -> Result<Self> {
        let len = usize::from(bytes.first().copied().unwrap_or_default());
        let name_len = usize::from(bytes.get(32).copied().unwrap_or_default());
        let name_end = FIXED_LEN + name_len;
        if len < name_end.max(FIXED_LEN + 1) || len > bytes.len() {
            let expected = format!("{} to {}", name_end.max(FIXED_LEN + 1), bytes.len());
            return Err(source.malformed(position, "length of a directory record", expected, len));
        }
        let byte = |offset: usize| bytes.get(offset).copied().unwrap_or_default();
        let record = Self {
            position,
            len: byte(0),
            sector: Sector(both_endian_u32(bytes, 2, position, findings).unwrap_or_default()),
            data_len: both_endian_u32(bytes, 10, position, findings).unwrap_or_default(),
            flags: byte(25),
            name: bytes.get(FIXED_LEN..name_end).unwrap_or_default().to_vec(),
            // The record may end with an even name and leave out its pad byte.
            system_use: (name_end + (name_len + 1) % 2).min(len)..len,
        };
        let unsupported = [
            (byte(1) != 0, 1, "extended attribute length", byte(1)),
            (byte(26) != 0, 26, "interleave unit", byte(26)),
            (byte(27) != 0, 27, "interleave gap", byte(27)),
            (record.flags & FLAG_MORE_EXTENTS != 0, 25, "flags (a file of several extents)", record.flags),
        ];
        for (met, offset, what, found) in unsupported {
            if met {
                return Err(source.malformed(position + offset, what, "none", found));
            }
        }
        record.check_extent(source)?;
        Ok(record)
    }

    fn check_extent(&self, source: &Source) -> Result<()> {
        if self.data_len == 0 {
            // Makers give empty files any sector they like.
            return Ok(());
        }
        let extent = self.extent();
        if self.sector < Sector(16) || extent.end() > source.len() {
            let expected = format!("sector 16 or above and an end within {} bytes", source.len());
            let found = format!("sector {}, end {}", self.sector, extent.end());
            return Err(source.malformed(self.position + 2, "extent of a directory record", expected, found));
        }
        Ok(())
    }

    /// Where the data is.
    #[must_use]
    pub fn extent(&self) -> Extent {
        Extent::at_sector(self.sector, self.data_len)
    }

    /// Tells whether it describes a directory.
    #[must_use]
    pub fn is_directory(&self) -> bool {
        self.flags & FLAG_DIRECTORY != 0
    }

    /// Tells whether it is the record of the directory itself or of its parent. Images made on big-endian machines
    /// call both of them 0.
    #[must_use]
    pub fn is_self_or_parent(&self) -> bool {
        matches!(self.name.as_slice(), [0 | 1])
    }
}

/// Reads a number that stands twice, in both byte orders; the little-endian one counts, a difference is noted.
pub(super) fn both_endian_u32(
    bytes: &[u8],
    offset: usize,
    at: u64,
    findings: &mut Vec<Finding>,
) -> Option<u32> {
    let (little, big) = (u32_le(bytes, offset)?, u32_be(bytes, offset + 4)?);
    note_difference(u64::from(little), u64::from(big), at + offset as u64, findings);
    Some(little)
}

pub(super) fn both_endian_u16(
    bytes: &[u8],
    offset: usize,
    at: u64,
    findings: &mut Vec<Finding>,
) -> Option<u16> {
    let (little, big) = (u16_le(bytes, offset)?, u16_be(bytes, offset + 2)?);
    note_difference(u64::from(little), u64::from(big), at + offset as u64, findings);
    Some(little)
}

/// Most findings that are kept: enough to see a pattern, too few to fill memory.
const MAX_FINDINGS: usize = 100;

fn note_difference(little: u64, big: u64, offset: u64, findings: &mut Vec<Finding>) {
    if little != big && findings.len() < MAX_FINDINGS {
        let message = format!("the little-endian copy of a number is {little}, the big-endian one {big}");
        findings.push(Finding { offset, message });
    }
}

/// An ISO 9660 name as `coreos-installer` spells it: without the version and the dot of an empty extension, `;` and
/// `/` as dots, ended by a NUL. Bytes that no name should hold become U+FFFD: odd names must not keep anybody from
/// reading other files.
#[must_use]
pub fn decode_iso_name(name: &[u8]) -> String {
    let name = name.strip_suffix(b";1").unwrap_or(name);
    let name = name.strip_suffix(b".").unwrap_or(name);
    let decode = |byte: u8| match byte {
        b';' | b'/' => '.',
        b' '..=b'~' => char::from(byte),
        _ => char::REPLACEMENT_CHARACTER,
    };
    name.iter().copied().take_while(|byte| *byte != 0).map(decode).collect()
}

/// A Joliet name, without its version.
pub(super) fn decode_joliet_name(name: &[u8]) -> String {
    let name = decode_ucs2(name);
    name.strip_suffix(";1").unwrap_or(&name).replace('/', "\u{FFFD}")
}

pub(super) fn decode_ucs2(bytes: &[u8]) -> String {
    let units = bytes.as_chunks::<2>().0.iter().map(|unit| u16::from_be_bytes(*unit));
    char::decode_utf16(units).map(|unit| unit.unwrap_or(char::REPLACEMENT_CHARACTER)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn iso_names_lose_their_version() {
        assert_eq!(decode_iso_name(b"VMLINUZ.;1"), "VMLINUZ");
        assert_eq!(decode_iso_name(b"KARGS.JSO;1"), "KARGS.JSO");
        assert_eq!(decode_iso_name(b"FOO;2"), "FOO.2");
        assert_eq!(decode_iso_name(b"A\0B"), "A");
        assert_eq!(decode_iso_name(b"A\xFFB"), "A\u{FFFD}B");
    }

    #[test]
    fn joliet_names_are_ucs2() {
        assert_eq!(decode_joliet_name(b"\0k\0a\0.\0;\0;\x001"), "ka.;");
    }

    #[test]
    fn a_difference_of_the_copies_is_noted_and_little_endian_counts() {
        let mut findings = Vec::new();
        let value = both_endian_u32(&[1, 0, 0, 0, 0, 0, 0, 2], 0, 100, &mut findings);
        assert_eq!(value, Some(1));
        assert_eq!(findings[0].offset, 100);
    }
}
