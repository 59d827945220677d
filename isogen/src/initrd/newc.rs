//! The `newc` cpio format: one header of 110 ASCII bytes per member.
//!
//! ```text
//! 0   6   magic 070701, or 070702 with a checksum that nobody checks
//! 6   8   inode           14 8 mode           22 8 user            30 8 group
//! 38  8   links           46 8 time           54 8 length of data  62 8 device major
//! 70  8   device minor    78 8 rdev major     86 8 rdev minor      94 8 length of name with its NUL
//! 102 8   checksum
//! 110     name, NUL, zeros up to a multiple of four; data, zeros up to a multiple of four
//! ```
//!
//! All numbers are eight hexadecimal digits. A member called `TRAILER!!!` ends the archive.

/// Bytes in a header.
pub const HEADER_LEN: usize = 110;
/// The name of the member that ends an archive.
pub const TRAILER: &str = "TRAILER!!!";
/// The mode of a regular file that only its owner may read: configs may hold secrets.
pub const FILE_MODE: u32 = 0o100_600;
/// The mode of a program that everybody may execute.
pub const PROGRAM_MODE: u32 = 0o100_755;
/// The mode of a directory.
pub const DIRECTORY_MODE: u32 = 0o040_755;
/// The mode of a symbolic link.
pub(super) const LINK_MODE: u32 = 0o120_777;

const TYPE_MASK: u32 = 0o170_000;
pub(super) const TYPE_REGULAR: u32 = 0o100_000;

/// The fields of a header that matter to a reader.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// File type and permissions.
    pub mode: u32,
    /// Bytes of data.
    pub data_len: u32,
    /// Bytes of the name, with its NUL.
    pub name_len: u32,
}

/// Why a header could not be read: the offset of the field in it, its name, and what stands there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadField {
    /// Offset in the header.
    pub offset: usize,
    /// Name of the field.
    pub what: &'static str,
    /// What the format asks for.
    pub expected: &'static str,
    /// What stands there.
    pub found: String,
}

impl Header {
    /// Reads a header.
    ///
    /// # Errors
    ///
    /// Fails with the field that is not as the format asks.
    pub fn parse(bytes: &[u8; HEADER_LEN]) -> Result<Self, BadField> {
        let magic = bytes.get(..6).unwrap_or_default();
        if magic != b"070701" && magic != b"070702" {
            return Err(BadField {
                offset: 0,
                what: "cpio magic",
                expected: "070701 or 070702",
                found: magic.escape_ascii().to_string(),
            });
        }
        Ok(Self {
            mode: hex(bytes, 14, "cpio mode")?,
            data_len: hex(bytes, 54, "cpio data length")?,
            name_len: hex(bytes, 94, "cpio name length")?,
        })
    }

    /// Tells whether the member is a regular file.
    #[must_use]
    pub fn is_file(&self) -> bool {
        self.mode & TYPE_MASK == TYPE_REGULAR
    }
}

fn hex(bytes: &[u8; HEADER_LEN], offset: usize, what: &'static str) -> Result<u32, BadField> {
    let digits = bytes.get(offset..offset + 8).unwrap_or_default();
    let value = digits
        .iter()
        .try_fold(0_u32, |value, &digit| char::from(digit).to_digit(16).map(|digit| value << 4 | digit));
    value.ok_or_else(|| BadField {
        offset,
        what,
        expected: "eight hexadecimal digits",
        found: digits.escape_ascii().to_string(),
    })
}

/// The zeros that bring `len` to a multiple of four.
#[must_use]
pub fn padding(len: u64) -> &'static [u8] {
    match len % 4 {
        1 => &[0; 3],
        2 => &[0; 2],
        3 => &[0; 1],
        _ => &[],
    }
}

/// A member about to be written.
#[derive(Debug, Clone, Copy)]
pub struct Member<'a> {
    /// The name, without a NUL.
    pub name: &'a str,
    /// A number that tells members apart.
    pub inode: u32,
    /// File type and permissions.
    pub mode: u32,
    /// Bytes of data.
    pub data_len: u32,
}

impl Member<'_> {
    /// The header with the name and the padding behind it. User, group, time and device are zero, the link count one.
    #[must_use]
    pub fn to_header(&self) -> Vec<u8> {
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
    fn a_header_reads_back() {
        let member = Member { name: "config.ign", inode: 7, mode: FILE_MODE, data_len: 0xBEEF };
        let bytes = member.to_header();
        assert_eq!(bytes.len() % 4, 0);
        let header = Header::parse(bytes[..HEADER_LEN].try_into().unwrap()).unwrap();
        assert_eq!(header, Header { mode: FILE_MODE, data_len: 0xBEEF, name_len: 11 });
        assert!(header.is_file());
    }

    #[test]
    fn a_bad_digit_is_named() {
        let mut bytes = Member { name: "a", inode: 0, mode: 0, data_len: 0 }.to_header();
        bytes[58] = b'x';
        let error = Header::parse(bytes[..HEADER_LEN].try_into().unwrap()).unwrap_err();
        assert_eq!((error.offset, error.what), (54, "cpio data length"));
    }

    #[test]
    fn a_plus_sign_is_not_a_digit() {
        let mut bytes = Member { name: "a", inode: 0, mode: 0, data_len: 0 }.to_header();
        bytes[14] = b'+';
        assert!(Header::parse(bytes[..HEADER_LEN].try_into().unwrap()).is_err());
    }
}
