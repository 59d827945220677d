//! Reads directory records (ECMA-119, 9.1).
//!
//! ```text
//! 0  1 length of the record      18 7 date            28 4 volume sequence, both-endian
//! 1  1 extended attributes       25 1 flags           32 1 length of the name
//! 2  8 sector, both-endian       26 1 interleave unit 33 n name, then a pad byte if n is even
//! 10 8 data length, both-endian  27 1 interleave gap        system use area
//! ```

use std::ops::Range;

use super::finding::VolumeReader;
use crate::checked_fields::slice_at;
use crate::error::Result;
use crate::extent::{Extent, Sector};
use crate::source::Source;

const FLAG_DIRECTORY: u8 = 2;
const FLAG_MORE_EXTENTS: u8 = 128;
/// Total length of the fields before the name.
const FIXED_LEN: usize = 33;

/// A directory record, which describes one file or directory.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct DirectoryRecord {
    /// Offset of the record in the image.
    pub position: u64,
    /// Length of the record in bytes.
    pub len: u8,
    /// First sector of the data.
    pub sector: Sector,
    /// Length of the data in bytes.
    pub data_len: u32,
    /// File flags. Bit 1 marks a directory.
    pub flags: u8,
    /// The encoded name. The one-byte names 0 and 1 stand for the directory itself and its parent.
    pub name: Vec<u8>,
    /// The system use area, as a range in the record.
    pub system_use: Range<usize>,
}

impl DirectoryRecord {
    /// Parses the record at the start of `bytes`, which end at the end of the sector. `position` is the offset of
    /// `bytes` in the image.
    pub(super) fn parse(reader: &mut VolumeReader<'_>, bytes: &[u8], position: u64) -> Result<Self> {
        let source = reader.source;
        let short = || source.malformed(position, "directory record", "34 bytes", bytes.len());
        let byte = |offset: usize| bytes.get(offset).copied().ok_or_else(short);
        let len = usize::from(byte(0)?);
        let name_len = usize::from(byte(32)?);
        let name_end = FIXED_LEN + name_len;
        if len < name_end.max(FIXED_LEN + 1) || len > bytes.len() {
            let expected = format!("{} to {}", name_end.max(FIXED_LEN + 1), bytes.len());
            return Err(source.malformed(position, "length of a directory record", expected, len));
        }
        let record = Self {
            position,
            len: byte(0)?,
            sector: Sector(reader.both_endian_u32(bytes, 2, position)?),
            data_len: reader.both_endian_u32(bytes, 10, position)?,
            flags: byte(25)?,
            name: slice_at(bytes, FIXED_LEN, name_len)?.to_vec(),
            // After a name of even length, a record may end without the pad byte.
            system_use: (name_end + (name_len + 1) % 2).min(len)..len,
        };
        let unsupported = [
            (byte(1)?, 1, "extended attribute length"),
            (byte(26)?, 26, "interleave unit"),
            (byte(27)?, 27, "interleave gap"),
            (record.flags & FLAG_MORE_EXTENTS, 25, "flags (a file of several extents)"),
        ];
        for (found, offset, what) in unsupported {
            if found != 0 {
                return Err(source.malformed(position + offset, what, "none", found));
            }
        }
        record.check_extent(source)?;
        Ok(record)
    }

    fn check_extent(&self, source: &Source) -> Result<()> {
        if self.data_len == 0 {
            // Mastering tools write an arbitrary sector for an empty file.
            return Ok(());
        }
        let extent = self.extent();
        if self.sector < Sector(16) || extent.end() > source.len() {
            let expected = format!("sector 16 or above and an end within {} bytes", source.len());
            let actual = format!("sector {}, end {}", self.sector, extent.end());
            return Err(source.malformed(
                self.position + 2,
                "extent of a directory record",
                expected,
                actual,
            ));
        }
        Ok(())
    }

    /// Returns the offset of the system use area in the image.
    pub(super) fn system_use_at(&self) -> u64 {
        self.position + self.system_use.start as u64
    }

    /// Returns the extent of the data.
    #[must_use]
    pub fn extent(&self) -> Extent {
        Extent::at_sector(self.sector, self.data_len)
    }

    pub(crate) fn is_directory(&self) -> bool {
        self.flags & FLAG_DIRECTORY != 0
    }
}

/// Returns `true` for the names of the directory itself and of its parent, which come before all others. In images made
/// on big-endian machines, both names are 0.
pub(crate) fn is_self_or_parent(name: &[u8]) -> bool {
    matches!(name, [0 | 1])
}

/// Decodes an ISO 9660 name like `coreos-installer` does. The result has no version `;1` and no dot before an empty
/// extension, and it ends at a NUL. `;` and `/` become dots. Bytes that are not valid in names become U+FFFD, so that
/// one invalid name does not prevent reading other files.
pub(crate) fn decode_iso_name(name: &[u8]) -> String {
    let name = name.strip_suffix(b";1").unwrap_or(name);
    let name = name.strip_suffix(b".").unwrap_or(name);
    let decode = |byte: u8| match byte {
        b';' | b'/' => '.',
        b' '..=b'~' => char::from(byte),
        _ => char::REPLACEMENT_CHARACTER,
    };
    name.iter().copied().take_while(|byte| *byte != 0).map(decode).collect()
}

/// Decodes a Joliet name, without its version.
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
    fn iso_name_has_no_version() {
        assert_eq!(decode_iso_name(b"VMLINUZ.;1"), "VMLINUZ");
        assert_eq!(decode_iso_name(b"KARGS.JSO;1"), "KARGS.JSO");
        assert_eq!(decode_iso_name(b"FOO;2"), "FOO.2");
        assert_eq!(decode_iso_name(b"A\0B"), "A");
        assert_eq!(decode_iso_name(b"A\xFFB"), "A\u{FFFD}B");
    }

    #[test]
    fn joliet_name_is_ucs2() {
        assert_eq!(decode_joliet_name(b"\0k\0a\0.\0;\0;\x001"), "ka.;");
    }

    #[test]
    fn difference_between_byte_orders_is_a_finding() {
        let source = Source::from_bytes("test", Vec::new());
        let mut reader = VolumeReader { source: &source, findings: Vec::new() };
        let value = reader.both_endian_u32(&[1, 0, 0, 0, 0, 0, 0, 2], 0, 100);
        assert_eq!(value.unwrap(), 1);
        assert_eq!(reader.findings[0].offset, 100);
    }

    #[test]
    fn reading_past_the_end_of_a_record_is_an_internal_error() {
        let source = Source::from_bytes("test", Vec::new());
        let mut reader = VolumeReader { source: &source, findings: Vec::new() };
        let failed = reader.both_endian_u32(&[0; 8], 1, 100);
        assert!(matches!(failed, Err(crate::Error::Internal { offset: 101, .. })));
        let failed = reader.both_endian_u16(&[0; 4], 1, 100);
        assert!(matches!(failed, Err(crate::Error::Internal { offset: 101, .. })));
    }

    #[test]
    fn rejects_records_that_end_in_their_fixed_fields() {
        let source = Source::from_bytes("test", vec![0; 4096]);
        let mut reader = VolumeReader { source: &source, findings: Vec::new() };
        for len in 0..34 {
            let failed = DirectoryRecord::parse(&mut reader, &vec![34; len], 100);
            assert!(matches!(failed, Err(crate::Error::Malformed { offset: 100, .. })), "{len}");
        }
    }
}
