//! System use areas: the Rock Ridge names and modes that boot loaders and people see (SUSP 1.10, RRIP 1.10).
//!
//! An entry is a two-letter signature, its length, a version byte and data. `CE` goes on in another place of the image.

use crate::bytes_at::u32_le;
use crate::error::Result;
use crate::extent::{Extent, Sector};
use crate::source::Source;

/// Most continuations of one record. Real images need one.
const MAX_CONTINUATIONS: usize = 8;
/// Most bytes of a continuation: it lies within one sector.
const MAX_CONTINUATION_LEN: u32 = 2048;
/// Longest name, as in every Unix file system.
const MAX_NAME_LEN: usize = 255;

/// What a system use area tells of a record.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct SystemUse {
    /// The name, of a Rock Ridge volume.
    pub(super) name: Option<Vec<u8>>,
    /// File type and permissions, of a Rock Ridge volume.
    pub(super) mode: Option<u32>,
    /// Bytes to skip at the start of each area, as the root's own record says.
    pub(super) skip: Option<u8>,
    /// Where the area went on.
    pub(super) continuations: Vec<Extent>,
}

/// Reads an area of `bytes` that stands at `position`.
pub(super) fn read(source: &Source, bytes: &[u8], position: u64) -> Result<SystemUse> {
    let mut found = SystemUse::default();
    let mut next = read_entries(source, bytes, position, &mut found)?;
    let mut continuations = 0;
    while let Some(extent) = next {
        if continuations == MAX_CONTINUATIONS {
            let found = "more, perhaps a loop";
            return Err(source.malformed(position, "Rock Ridge continuations", MAX_CONTINUATIONS, found));
        }
        continuations += 1;
        found.continuations.push(extent);
        next = read_entries(source, &source.read_extent(extent)?, extent.offset(), &mut found)?;
    }
    Ok(found)
}

/// Reads the entries of one stretch and gives where the area goes on.
fn read_entries(
    source: &Source,
    bytes: &[u8],
    position: u64,
    found: &mut SystemUse,
) -> Result<Option<Extent>> {
    let mut next = None;
    let mut offset = 0;
    // An entry shorter than its own header ends the area; so does padding.
    while let Some(&[first, second, len, _]) = bytes.get(offset..offset + 4) {
        let Some(data) = bytes.get(offset + 4..offset + usize::from(len)) else { break };
        match (first, second) {
            (b'S', b'P') if data.get(..2) == Some(&[0xBE, 0xEF]) => found.skip = data.get(2).copied(),
            (b'P', b'X') => found.mode = u32_le(data, 0),
            (b'N', b'M') => add_name(source, data, position + offset as u64, found)?,
            (b'C', b'E') => next = Some(continuation(source, data, position + offset as u64)?),
            (b'S', b'T') => break,
            _ => {}
        }
        offset += usize::from(len);
    }
    Ok(next)
}

fn add_name(source: &Source, data: &[u8], position: u64, found: &mut SystemUse) -> Result<()> {
    let [flags, part @ ..] = data else { return Ok(()) };
    // Flags 2 and 4 stand for the directory itself and its parent, which have no name.
    if flags & 6 != 0 {
        return Ok(());
    }
    let name = found.name.get_or_insert_default();
    name.extend_from_slice(part);
    if name.len() > MAX_NAME_LEN {
        return Err(source.malformed(position, "Rock Ridge name", "at most 255 bytes", name.len()));
    }
    if name.iter().any(|byte| matches!(byte, b'/' | 0)) {
        return Err(source.malformed(position, "Rock Ridge name", "no slash or NUL", name.escape_ascii()));
    }
    Ok(())
}

fn continuation(source: &Source, data: &[u8], position: u64) -> Result<Extent> {
    let [sector, offset, len] = [0, 8, 16].map(|field| u32_le(data, field).unwrap_or_default());
    let area = Extent::new(Sector(sector).offset() + u64::from(offset), u64::from(len));
    match area {
        Some(area) if len <= MAX_CONTINUATION_LEN && area.end() <= source.len() => Ok(area),
        _ => {
            let found = format!("sector {sector}, offset {offset}, length {len}");
            Err(source.malformed(
                position,
                "Rock Ridge continuation",
                "at most 2048 bytes of the image",
                found,
            ))
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
    fn names_in_parts_are_joined() {
        let found = read_bytes(b"NM\x07\x01\x01abNM\x06\x01\x00c").unwrap();
        assert_eq!(found.name.unwrap(), b"abc");
    }

    #[test]
    fn hostile_names_are_refused() {
        assert!(read_bytes(b"NM\x08\x01\x00a/b").is_err());
        assert!(read_bytes(b"NM\x07\x01\x00a\0").is_err());
    }

    #[test]
    fn a_loop_of_continuations_ends() {
        let mut bytes = b"CE\x1C\x01".to_vec();
        bytes.extend([0; 16]);
        bytes.extend(28_u32.to_le_bytes());
        bytes.extend([0; 4]);
        let error = read_bytes(&bytes).unwrap_err().to_string();
        assert!(error.contains("continuations"), "{error}");
    }

    #[test]
    fn an_entry_past_the_end_is_left_out() {
        assert_eq!(read_bytes(b"NM\xFF\x01\x00abc").unwrap(), SystemUse::default());
        assert_eq!(read_bytes(b"NM\x00\x01").unwrap(), SystemUse::default());
    }
}
