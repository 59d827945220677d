//! Directory records in their encoded form, and records of new files.

use std::collections::BTreeSet;

use super::fields::both_endian;
use crate::bytes_at::u32_le;
use crate::error::{Error, Result};
use crate::extent::Sector;
use crate::volume::Entry;

/// Offsets in a record (ECMA-119, 9.1).
const SECTOR_AT: usize = 2;
const DATA_LEN_AT: usize = 10;
const FLAGS_AT: usize = 25;
const NAME_LEN_AT: usize = 32;
const NAME_AT: usize = 33;
/// The longest Joliet name in UCS-2 units: the record length leaves no more.
const MAX_JOLIET_UNITS: usize = 103;

/// An encoded record. That of a directory has its old sector until the directory is packed.
#[derive(Clone)]
pub(super) struct RawRecord {
    pub(super) bytes: Vec<u8>,
    pub(super) is_directory: bool,
}

impl RawRecord {
    /// Builds the record of a new file. All fields but flags, length and name are those of the record `template`.
    ///
    /// # Errors
    ///
    /// Returns the reason if the record would be too long.
    pub(super) fn new_file(template: &[u8], name: &[u8], system_use: &[u8]) -> Result<Self, &'static str> {
        let name_len = u8::try_from(name.len()).map_err(|_| "it is too long")?;
        let mut bytes = template.get(..NAME_AT).unwrap_or_default().to_vec();
        bytes.extend(name);
        pad_to_even(&mut bytes);
        bytes.extend(system_use);
        pad_to_even(&mut bytes);
        let len = u8::try_from(bytes.len()).map_err(|_| "its directory record would pass 255 bytes")?;
        for (at, value) in [(0, len), (FLAGS_AT, 0), (NAME_LEN_AT, name_len)] {
            if let Some(field) = bytes.get_mut(at) {
                *field = value;
            }
        }
        Ok(Self { bytes, is_directory: false })
    }

    pub(super) fn set_extent(&mut self, sector: Sector, len: u32) {
        for (at, number) in [(SECTOR_AT, sector.0), (DATA_LEN_AT, len)] {
            if let Some(field) = self.bytes.get_mut(at..at + 8) {
                field.copy_from_slice(&both_endian(number));
            }
        }
    }

    pub(super) fn sector(&self) -> Sector {
        Sector(u32_le(&self.bytes, SECTOR_AT).unwrap_or_default())
    }

    /// Returns the encoded name.
    pub(super) fn name(&self) -> &[u8] {
        let len = self.bytes.get(NAME_LEN_AT).copied().map_or(0, usize::from);
        self.bytes.get(NAME_AT..NAME_AT + len).unwrap_or_default()
    }

    /// Returns `true` for the records of the directory itself and its parent, which come before all others.
    pub(super) fn is_dot(&self) -> bool {
        matches!(self.name(), [0 | 1])
    }
}

fn pad_to_even(bytes: &mut Vec<u8>) {
    if bytes.len() % 2 == 1 {
        bytes.push(0);
    }
}

/// Encodes a Joliet name, with a version if the name of the file `template` has one.
pub(super) fn joliet_name(name: &str, template: &Entry) -> Result<Vec<u8>> {
    let version = if template.record.name.ends_with(&[0, b';', 0, b'1']) { ";1" } else { "" };
    let units: Vec<u16> = format!("{name}{version}").encode_utf16().collect();
    if units.len() > MAX_JOLIET_UNITS {
        return Err(refused_name(name, "a Joliet name has at most 103 characters"));
    }
    Ok(units.into_iter().flat_map(u16::to_be_bytes).collect())
}

/// Encodes an 8.3 name that is not in `taken`, with a version if the name of the file `template` has one. Adds it to
/// `taken`.
pub(super) fn iso_name(name: &str, template: &Entry, taken: &mut BTreeSet<String>) -> Result<Vec<u8>> {
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
    let mut free = numbered.filter(|candidate| !candidate.is_empty() && !taken.contains(candidate));
    let short = free.next().ok_or_else(|| refused_name(name, "no short name is free for it"))?;
    let dot = if extension.is_empty() { "." } else { "" };
    let version = if template.record.name.ends_with(b";1") { ";1" } else { "" };
    let raw = format!("{short}{dot}{version}").into_bytes();
    taken.insert(short);
    Ok(raw)
}

/// Returns the system use area of a new file: mode, owner and times of the record `template`, and the new name. The
/// area of `template` begins at `start`.
pub(super) fn system_use(template: &[u8], start: usize, name: &str) -> Vec<u8> {
    let mut area = Vec::new();
    let mut at = start;
    while let Some(&[first, second, len, _]) = template.get(at..at + 4) {
        if len < 4 {
            break;
        }
        let entry = template.get(at..at + usize::from(len)).unwrap_or_default();
        if matches!((first, second), (b'R', b'R') | (b'P', b'X') | (b'T', b'F')) {
            area.extend(entry);
        }
        at += usize::from(len);
    }
    // A file with a mode has a name, though perhaps in a continuation.
    if !area.is_empty() {
        let len = u8::try_from(name.len() + 5).unwrap_or(u8::MAX);
        area.extend([b'N', b'M', len, 1, 0]);
        area.extend(name.as_bytes());
    }
    area
}

pub(super) fn refused_name(name: &str, reason: &'static str) -> Error {
    Error::Refused { what: "file name", value: name.to_owned(), reason }
}
