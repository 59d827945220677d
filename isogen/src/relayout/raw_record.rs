//! Encodes directory records, including the records of new files.

use std::collections::BTreeSet;

use crate::bytes_at::u32_le;
use crate::checked_fields::{both_endian, put_slice, put_u8, slice_at};
use crate::error::{Error, OrInternal, Result};
use crate::extent::Sector;
use crate::volume::TreeEntry;

/// Offsets of fields in a record (ECMA-119, 9.1).
const SECTOR_AT: usize = 2;
const DATA_LEN_AT: usize = 10;
const FLAGS_AT: usize = 25;
const NAME_LEN_AT: usize = 32;
const NAME_AT: usize = 33;
/// Maximum length of a Joliet name in UCS-2 units, which follows from the maximum record length.
const MAX_JOLIET_UNITS: usize = 103;
const MAX_RECORD_LEN: usize = 255;
const RECORD_TOO_LONG: &str = "its directory record would exceed 255 bytes";

/// An encoded directory record. The record of a subdirectory contains the old sector until the directory is packed.
#[derive(Clone)]
pub(super) struct RawRecord {
    pub(super) bytes: Vec<u8>,
    pub(super) is_directory: bool,
}

impl RawRecord {
    /// Builds the record of a new file at `path` with the encoded name `name`. Flags, length and name are new; all
    /// other fields are copied from the record `template`.
    ///
    /// # Errors
    ///
    /// Returns an error if the record would be too long.
    pub(super) fn new_file(path: &str, template: &[u8], name: &[u8], system_use: &[u8]) -> Result<Self> {
        let mut bytes = slice_at(template, 0, NAME_AT)?.to_vec();
        for part in [name, system_use] {
            bytes.extend(part);
            bytes.resize(bytes.len().next_multiple_of(2), 0);
        }
        let len = bytes.len();
        if len > MAX_RECORD_LEN {
            return Err(invalid_name(path, RECORD_TOO_LONG));
        }
        for (at, value) in [(0, len), (FLAGS_AT, 0), (NAME_LEN_AT, name.len())] {
            put_u8(&mut bytes, at, value)?;
        }
        Ok(Self { bytes, is_directory: false })
    }

    pub(super) fn set_extent(&mut self, sector: Sector, len: u32) -> Result<()> {
        put_slice(&mut self.bytes, SECTOR_AT, &both_endian(sector.0))?;
        put_slice(&mut self.bytes, DATA_LEN_AT, &both_endian(len))
    }

    pub(super) fn sector(&self) -> Result<Sector> {
        u32_le(&self.bytes, SECTOR_AT).map(Sector).or_internal("short directory record", SECTOR_AT as u64)
    }

    pub(super) fn name(&self) -> Result<&[u8]> {
        let len = *self.bytes.get(NAME_LEN_AT).or_internal("short directory record", NAME_LEN_AT as u64)?;
        slice_at(&self.bytes, NAME_AT, usize::from(len))
    }
}

/// Encodes a Joliet name. It ends in a version if the name of the file `template` ends in one.
pub(super) fn encode_joliet_name(name: &str, template: &TreeEntry) -> Result<Vec<u8>> {
    let version = if template.record.name.ends_with(&[0, b';', 0, b'1']) { ";1" } else { "" };
    let units: Vec<u16> = format!("{name}{version}").encode_utf16().collect();
    if units.len() > MAX_JOLIET_UNITS {
        return Err(invalid_name(name, "a Joliet name has at most 103 characters"));
    }
    Ok(units.into_iter().flat_map(u16::to_be_bytes).collect())
}

/// Encodes an 8.3 name that is not in `used_names`, and adds it to `used_names`. It ends in a version if the name of
/// the file `template` ends in one.
pub(super) fn encode_iso_name(
    name: &str,
    template: &TreeEntry,
    used_names: &mut BTreeSet<String>,
) -> Result<Vec<u8>> {
    let clean = |part: &str, len: usize| -> String {
        let allowed = part.to_ascii_uppercase();
        allowed.chars().map(|it| if it.is_ascii_alphanumeric() { it } else { '_' }).take(len).collect()
    };
    // A leading dot does not start an extension.
    let (stem, extension) = name.rsplit_once('.').filter(|(stem, _)| !stem.is_empty()).unwrap_or((name, ""));
    let extension = clean(extension, 3);
    let spell = |stem: String| if extension.is_empty() { stem } else { format!("{stem}.{extension}") };
    let numbered = (0..1000_u32).map(|number| match number {
        0 => spell(clean(stem, 8)),
        number => spell(format!("{}{number:03}", clean(stem, 5))),
    });
    let mut free = numbered.filter(|candidate| !candidate.is_empty() && !used_names.contains(candidate));
    let short = free.next().ok_or_else(|| invalid_name(name, "no short name is free for it"))?;
    let dot = if extension.is_empty() { "." } else { "" };
    let version = if template.record.name.ends_with(b";1") { ";1" } else { "" };
    let raw = format!("{short}{dot}{version}").into_bytes();
    used_names.insert(short);
    Ok(raw)
}

/// Returns the system use area of a new file. Mode, owner and times are copied from the record `template`, whose area
/// begins at `start`. The name is new.
pub(super) fn new_system_use(template: &[u8], start: usize, name: &str) -> Result<Vec<u8>> {
    let mut area = Vec::new();
    let mut at = start;
    while let Some(&[first, second, len, _]) = template.get(at..at + 4) {
        // A short entry, or an entry that exceeds the record, ends the area. Readers do the same.
        let entry = template.get(at..at + usize::from(len)).filter(|entry| entry.len() >= 4);
        let Some(entry) = entry else { break };
        if matches!((first, second), (b'R', b'R') | (b'P', b'X') | (b'T', b'F')) {
            area.extend(entry);
        }
        at += usize::from(len);
    }
    // Add a name if the template has one. A file with a mode has a Rock Ridge name, but the name of the template may be
    // in a continuation, so check for the copied entries instead.
    if !area.is_empty() {
        let len = u8::try_from(name.len() + 5).map_err(|_| invalid_name(name, RECORD_TOO_LONG))?;
        area.extend([b'N', b'M', len, 1, 0]);
        area.extend(name.as_bytes());
    }
    Ok(area)
}

pub(super) fn invalid_name(name: &str, reason: &'static str) -> Error {
    Error::InvalidEdit { what: "file name", value: name.to_owned(), reason }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_internal<T>(result: Result<T>) -> bool {
        matches!(result, Err(Error::Internal { .. }))
    }

    #[test]
    fn short_records_are_internal_errors() {
        let mut record = RawRecord { bytes: vec![0; 5], is_directory: false };
        assert!(is_internal(record.set_extent(Sector(1), 1)));
        assert!(is_internal(record.sector()));
        assert!(is_internal(record.name()));
        assert!(is_internal(RawRecord::new_file("a", &record.bytes, b"A", b"")));
        // The length field of the name is greater than the record.
        record.bytes = vec![9; 40];
        assert!(is_internal(record.name()));
    }

    #[test]
    fn new_file_has_its_name_and_length() {
        let record = RawRecord::new_file("a", &[7; 60], b"A.;1", b"xy").unwrap();
        assert_eq!((record.bytes[0], record.bytes.len()), (40, 40));
        assert_eq!(record.name().unwrap(), b"A.;1");
    }

    #[test]
    fn rejects_names_that_no_record_can_store() {
        let long = "n".repeat(251);
        let template = [&[0; 34][..], b"PX\x04\x01"].concat();
        let system_use = new_system_use(&template, 34, &long).map(drop);
        let record = RawRecord::new_file(&long, &template, b"N", long.as_bytes()).map(drop);
        for failed in [system_use, record] {
            assert!(matches!(failed, Err(Error::InvalidEdit { reason: RECORD_TOO_LONG, .. })), "{failed:?}");
        }
    }
}
