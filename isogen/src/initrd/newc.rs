//! The `newc` cpio format: one header of 110 ASCII bytes per member.
//!
//! ```text
//! 0   6   magic 070701, or 070702 with a checksum, which this reader ignores
//! 6   8   inode           14 8 mode           22 8 user            30 8 group
//! 38  8   links           46 8 time           54 8 length of data  62 8 device major
//! 70  8   device minor    78 8 rdev major     86 8 rdev minor      94 8 length of name with its NUL
//! 102 8   checksum
//! 110     name, NUL, zeros up to a multiple of four; data, zeros up to a multiple of four
//! ```
//!
//! All numbers are eight hexadecimal digits. A member with the name `TRAILER!!!` ends the archive.

use crate::bytes_at::array_at;

pub(crate) const HEADER_LEN: usize = 110;
/// The name of the member that ends an archive.
pub(crate) const TRAILER: &str = "TRAILER!!!";
/// The mode of a regular file that only its owner may read, because configs may contain secrets.
pub(crate) const FILE_MODE: u32 = 0o100_600;
/// The mode of a program that every user may execute.
pub(crate) const PROGRAM_MODE: u32 = 0o100_755;
pub(crate) const DIRECTORY_MODE: u32 = 0o040_755;
pub(super) const LINK_MODE: u32 = 0o120_777;

const MAGIC_LEN: usize = 6;
const TYPE_MASK: u32 = 0o170_000;
pub(super) const TYPE_REGULAR: u32 = 0o100_000;

/// The fields of a header that a reader needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CpioHeader {
    /// File type and permissions.
    pub(crate) mode: u32,
    /// Length of the data in bytes.
    pub(crate) data_len: u32,
    /// Length of the name in bytes, including its NUL.
    pub(crate) name_len: u32,
}

/// A header field that violates the format.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct InvalidField {
    /// Offset in the header.
    pub(crate) offset: usize,
    pub(crate) what: &'static str,
    pub(crate) expected: &'static str,
    pub(crate) found: String,
}

impl CpioHeader {
    /// Parses a header.
    ///
    /// # Errors
    ///
    /// Returns an error for the first field that violates the format.
    pub(crate) fn parse(bytes: &[u8; HEADER_LEN]) -> Result<Self, InvalidField> {
        let (magic, _) = bytes.split_at(MAGIC_LEN);
        if magic != b"070701" && magic != b"070702" {
            let actual = magic.escape_ascii().to_string();
            return Err(InvalidField {
                offset: 0,
                what: "cpio magic",
                expected: "070701 or 070702",
                found: actual,
            });
        }
        Ok(Self {
            mode: parse_hex(bytes, 14, "cpio mode")?,
            data_len: parse_hex(bytes, 54, "cpio data length")?,
            name_len: parse_hex(bytes, 94, "cpio name length")?,
        })
    }

    pub(crate) fn is_file(&self) -> bool {
        self.mode & TYPE_MASK == TYPE_REGULAR
    }
}

fn parse_hex(bytes: &[u8; HEADER_LEN], offset: usize, what: &'static str) -> Result<u32, InvalidField> {
    let invalid =
        |actual: String| InvalidField { offset, what, expected: "eight hexadecimal digits", found: actual };
    let digits: [u8; 8] =
        array_at(bytes, offset).ok_or_else(|| invalid("the end of the header".to_owned()))?;
    let value = digits
        .iter()
        .try_fold(0_u32, |value, &digit| char::from(digit).to_digit(16).map(|digit| value << 4 | digit));
    value.ok_or_else(|| invalid(digits.escape_ascii().to_string()))
}

/// Returns the zeros that pad data of `len` bytes to a multiple of four.
pub(crate) fn padding(len: u64) -> &'static [u8] {
    match len % 4 {
        1 => &[0; 3],
        2 => &[0; 2],
        3 => &[0; 1],
        _ => &[],
    }
}

/// The header values of a member to write.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CpioMember<'a> {
    /// Name of the member, without a NUL.
    pub(crate) name: &'a str,
    /// The inode number, which must differ between members.
    pub(crate) inode: u32,
    /// File type and permissions.
    pub(crate) mode: u32,
    pub(crate) data_len: u32,
}

impl CpioMember<'_> {
    /// Encodes the header, followed by the name and its padding. User, group, time and device are 0, and the link count
    /// is 1.
    pub(crate) fn to_header(self) -> Vec<u8> {
        let name_len = self.name.len() + 1;
        let mut header = format!(
            "070701{:08x}{:08x}{:08x}{:08x}{:08x}{:08x}{:08x}{:08x}{:08x}{:08x}{:08x}{name_len:08x}{:08x}",
            self.inode, self.mode, 0, 0, 1, 0, self.data_len, 0, 0, 0, 0, 0
        )
        .into_bytes();
        header.extend_from_slice(self.name.as_bytes());
        header.push(0);
        header.extend_from_slice(padding(header.len() as u64));
        header
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn header_round_trips() {
        let member = CpioMember { name: "config.ign", inode: 7, mode: FILE_MODE, data_len: 0xBEEF };
        let bytes = member.to_header();
        assert_eq!(bytes.len() % 4, 0);
        let header = CpioHeader::parse(bytes[..HEADER_LEN].try_into().unwrap()).unwrap();
        assert_eq!(header, CpioHeader { mode: FILE_MODE, data_len: 0xBEEF, name_len: 11 });
        assert!(header.is_file());
    }

    #[test]
    fn error_for_invalid_digits_contains_the_field() {
        let mut bytes = CpioMember { name: "a", inode: 0, mode: 0, data_len: 0 }.to_header();
        bytes[58] = b'x';
        let error = CpioHeader::parse(bytes[..HEADER_LEN].try_into().unwrap()).unwrap_err();
        assert_eq!((error.offset, error.what), (54, "cpio data length"));
    }

    #[test]
    fn rejects_plus_sign_as_digit() {
        let mut bytes = CpioMember { name: "a", inode: 0, mode: 0, data_len: 0 }.to_header();
        bytes[14] = b'+';
        assert!(CpioHeader::parse(bytes[..HEADER_LEN].try_into().unwrap()).is_err());
    }
}
