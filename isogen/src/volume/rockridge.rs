//! Reads system use areas for the names and modes of Rock Ridge (SUSP 1.10, RRIP 1.10). Boot loaders and users see
//! these names.
//!
//! An entry of an area is a two-letter signature, its length, a version byte and data. A `CE` entry contains the
//! position of a continuation of the area.

use crate::bytes_at::u32_le;
use crate::error::Result;
use crate::extent::{Extent, Sector};
use crate::source::Source;

/// Maximum number of continuations of one record. Published images need one.
const MAX_CONTINUATIONS: usize = 8;
/// Maximum length of a continuation, which is within one sector.
const MAX_CONTINUATION_LEN: u32 = 2048;
/// Length of an entry's fields before its data.
const HEADER_LEN: usize = 4;
/// Maximum length of a name, as in Unix file systems.
const MAX_NAME_LEN: usize = 255;

/// The parsed entries of a record's system use area.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct SystemUse {
    pub(super) name: Option<Vec<u8>>,
    /// Rock Ridge file type and permissions.
    pub(super) mode: Option<u32>,
    /// Number of bytes to skip at the start of each area. Only the root directory's own record contains it.
    pub(super) skip_len: Option<u8>,
    pub(super) continuations: Vec<Extent>,
}

/// Parses an area and its continuations. `position` is the offset of `bytes` in the image.
pub(super) fn read(source: &Source, bytes: &[u8], position: u64) -> Result<SystemUse> {
    let mut system_use = SystemUse::default();
    let mut next = system_use.add_entries(source, bytes, position)?;
    while let Some(extent) = next {
        if system_use.continuations.len() == MAX_CONTINUATIONS {
            let actual = "more, perhaps a loop";
            return Err(source.malformed(position, "Rock Ridge continuations", MAX_CONTINUATIONS, actual));
        }
        system_use.continuations.push(extent);
        next = system_use.add_entries(source, &source.read_extent(extent)?, extent.offset())?;
    }
    Ok(system_use)
}

impl SystemUse {
    /// Adds the entries of the area or of one continuation. Returns the position of the next continuation, if any.
    fn add_entries(&mut self, source: &Source, bytes: &[u8], position: u64) -> Result<Option<Extent>> {
        let mut next = None;
        let mut offset = 0;
        // An entry shorter than its header ends the area. Padding looks like such an entry.
        while let Some(&[first, second, len, _]) = bytes.get(offset..offset + 4) {
            let Some(data) = bytes.get(offset + 4..offset + usize::from(len)) else { break };
            let at = position + offset as u64;
            match (first, second) {
                (b'S', b'P') if data.get(..2) == Some(&[0xBE, 0xEF]) => self.skip_len = data.get(2).copied(),
                (b'P', b'X') => self.mode = u32_le(data, 0),
                (b'N', b'M') => self.add_name(source, data, at)?,
                (b'C', b'E') => next = Some(parse_continuation(source, data, at)?),
                (b'S', b'T') => break,
                _ => {}
            }
            offset += usize::from(len);
        }
        Ok(next)
    }

    fn add_name(&mut self, source: &Source, data: &[u8], position: u64) -> Result<()> {
        let [flags, part @ ..] = data else { return Ok(()) };
        // Flags 2 and 4 mark the entries of the directory itself and of its parent, which have no name.
        if flags & 6 != 0 {
            return Ok(());
        }
        let name = self.name.get_or_insert_default();
        name.extend_from_slice(part);
        if name.len() > MAX_NAME_LEN {
            return Err(source.malformed(position, "Rock Ridge name", "at most 255 bytes", name.len()));
        }
        if name.iter().any(|byte| matches!(byte, b'/' | 0)) {
            return Err(source.malformed(
                position,
                "Rock Ridge name",
                "no slash or NUL",
                name.escape_ascii(),
            ));
        }
        Ok(())
    }
}

fn parse_continuation(source: &Source, data: &[u8], position: u64) -> Result<Extent> {
    let what = "Rock Ridge continuation";
    let fields = u32_le(data, 0).zip(u32_le(data, 8)).zip(u32_le(data, 16));
    let Some(((sector, offset), len)) = fields else {
        return Err(source.malformed(position, what, "28 bytes", data.len() + HEADER_LEN));
    };
    let area = Extent::new(Sector(sector).offset() + u64::from(offset), u64::from(len));
    match area {
        Some(area) if len <= MAX_CONTINUATION_LEN && area.end() <= source.len() => Ok(area),
        _ => {
            let actual = format!("sector {sector}, offset {offset}, length {len}");
            Err(source.malformed(position, what, "at most 2048 bytes of the image", actual))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_bytes(bytes: &[u8]) -> Result<SystemUse> {
        read(&Source::from_bytes("test", bytes.to_vec()), bytes, 0)
    }

    #[test]
    fn parts_of_a_name_are_joined() {
        let system_use = read_bytes(b"NM\x07\x01\x01abNM\x06\x01\x00c").unwrap();
        assert_eq!(system_use.name.unwrap(), b"abc");
    }

    #[test]
    fn rejects_names_with_slash_or_nul() {
        assert!(read_bytes(b"NM\x08\x01\x00a/b").is_err());
        assert!(read_bytes(b"NM\x07\x01\x00a\0").is_err());
    }

    #[test]
    fn rejects_loops_of_continuations() {
        let mut bytes = b"CE\x1C\x01".to_vec();
        bytes.extend([0; 16]);
        bytes.extend(28_u32.to_le_bytes());
        bytes.extend([0; 4]);
        let error = read_bytes(&bytes).unwrap_err().to_string();
        assert!(error.contains("continuations"), "{error}");
    }

    #[test]
    fn rejects_short_continuations() {
        let mut bytes = b"CE\x17\x01".to_vec();
        bytes.extend([0; 19]);
        let error = read_bytes(&bytes).unwrap_err().to_string();
        assert!(error.contains("byte 0: Rock Ridge continuation: expected 28 bytes, found 23"), "{error}");
    }

    #[test]
    fn entry_past_the_end_is_ignored() {
        assert_eq!(read_bytes(b"NM\xFF\x01\x00abc").unwrap(), SystemUse::default());
        assert_eq!(read_bytes(b"NM\x00\x01").unwrap(), SystemUse::default());
    }
}
