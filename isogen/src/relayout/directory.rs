//! Emitting the directories of both trees again.
//!
//! Sizes are settled first, since a directory that outgrows its sectors, or stands among files that move, gets new ones
//! and then stands at another place in its parent, in its children and in the path tables; records are written
//! afterwards.

use std::collections::{BTreeMap, BTreeSet};

use super::fields::{both_endian, patch, zeros};
use super::placement::{NewFile, Place, Placement};
use crate::base::BaseImage;
use crate::bytes_at::{u32_be, u32_le};
use crate::error::{Error, Result};
use crate::extent::{Extent, SECTOR_SIZE, Sector};
use crate::plan::Patch;
use crate::volume::{
    Entry, EntryId, Kind, MAX_DIRECTORY_LEN, MAX_PATH_TABLE_LEN, Record, Tree, VolumeDescriptor,
    decode_iso_name,
};

/// Offset of the length of a path table in a volume descriptor.
const PATH_TABLE_LEN_AT: u64 = 132;
/// Offset of the root directory's record in a volume descriptor.
const ROOT_RECORD: u64 = 156;

/// The changes of descriptors, directories and path tables.
pub(super) fn patches(image: &BaseImage, placement: &mut Placement) -> Result<Vec<Patch>> {
    let volume = image.volume();
    let trees = [
        Some((volume.primary(), volume.tree(), false)),
        volume.joliet().zip(volume.joliet_tree()).map(|(d, t)| (d, t, true)),
    ];
    let mut emitted = Vec::new();
    for (descriptor, tree, joliet) in trees.into_iter().flatten() {
        emitted.push(Hierarchy { image, descriptor, tree, joliet }.settle(placement)?);
    }
    let mut patches = Vec::new();
    for (hierarchy, directories) in emitted {
        patches.extend(hierarchy.emit(&directories, placement.kept())?);
    }
    Ok(patches)
}

/// One of the two trees.
struct Hierarchy<'a> {
    image: &'a BaseImage,
    descriptor: &'a VolumeDescriptor,
    tree: &'a Tree,
    joliet: bool,
}

/// A directory in its new form.
struct NewDirectory {
    old: Extent,
    old_sector: Sector,
    sector: Sector,
    /// Bytes as the records state them.
    len: u32,
    records: Vec<RawRecord>,
}

/// A record as it is going to be written; that of a directory still has its old place.
struct RawRecord {
    bytes: Vec<u8>,
    is_directory: bool,
}

impl RawRecord {
    fn set_place(&mut self, sector: Sector, len: u32) {
        for (at, number) in [(2, sector.0), (10, len)] {
            if let Some(field) = self.bytes.get_mut(at..at + 8) {
                field.copy_from_slice(&both_endian(number));
            }
        }
    }

    fn sector(&self) -> Sector {
        Sector(u32_le(&self.bytes, 2).unwrap_or_default())
    }

    /// The raw name; those of a directory itself and its parent come before all others.
    fn name(&self) -> &[u8] {
        let len = self.bytes.get(32).copied().map_or(0, usize::from);
        self.bytes.get(33..33 + len).unwrap_or_default()
    }
}

impl<'a> Hierarchy<'a> {
    /// Makes the records of every directory and gives those that grow a new place.
    fn settle(self, placement: &mut Placement) -> Result<(Self, Vec<NewDirectory>)> {
        let mut directories = Vec::new();
        for (id, entry) in self.tree.entries().filter(|(_, entry)| entry.kind == Kind::Directory) {
            let records = self.records(id, entry, placement)?;
            let needed = packed_len(&records);
            let old = entry.extent;
            let (mut sector, mut len) = (entry.record.sector, entry.record.data_len);
            if needed > old.len() || old.end() > placement.kept() {
                len =
                    u32::try_from(needed).ok().filter(|len| *len <= MAX_DIRECTORY_LEN).ok_or_else(|| {
                        let expected = format!("at most {MAX_DIRECTORY_LEN} bytes");
                        let what = "directory with its new files";
                        self.image.source().malformed(entry.record.position, what, expected, needed)
                    })?;
                sector = placement.reserve(self.image, needed / SECTOR_SIZE)?;
            }
            directories.push(NewDirectory { old, old_sector: entry.record.sector, sector, len, records });
        }
        Ok((self, directories))
    }

    /// The records of a directory: those that stay, with the new places of files, and those of new files.
    fn records(&self, id: EntryId, entry: &Entry, placement: &Placement) -> Result<Vec<RawRecord>> {
        let mut records = Vec::new();
        let dots = entry.directory.iter().flat_map(|directory| &directory.dots);
        for dot in dots {
            records.push(self.raw(dot, true)?);
        }
        for (child_id, child) in self.tree.children(id) {
            let mut raw = self.raw(&child.record, child.kind == Kind::Directory)?;
            match placement.place(self.image, self.tree, (child_id, child))? {
                Place::Dropped => continue,
                Place::At(sector, len) => raw.set_place(sector, len),
                Place::Unchanged => {}
            }
            records.push(raw);
        }
        let mut taken: BTreeSet<String> = records.iter().map(|it| decode_iso_name(it.name())).collect();
        let path = self.tree.path(id);
        for file in &placement.new {
            let (parent, name) = file.path.rsplit_once('/').unwrap_or(("", &file.path));
            let exists = || self.tree.find_id(&file.path).is_some_and(|it| self.tree.path(it) == file.path);
            if parent == path && !exists() {
                let record = self.new_record(id, file, (name, &mut taken))?;
                let at = records.iter().position(|other| !is_dot(other) && other.name() > record.name());
                records.insert(at.unwrap_or(records.len()), record);
            }
        }
        Ok(records)
    }

    fn raw(&self, record: &Record, is_directory: bool) -> Result<RawRecord> {
        let extent = Extent::new(record.position, u64::from(record.len));
        let bytes =
            extent.map(|extent| self.image.source().read_extent(extent)).transpose()?.unwrap_or_default();
        Ok(RawRecord { bytes, is_directory })
    }

    /// A record for a file that the base does not have, made after one that it has: same owner, mode and times.
    fn new_record(
        &self,
        directory: EntryId,
        file: &NewFile,
        (name, taken): (&str, &mut BTreeSet<String>),
    ) -> Result<RawRecord> {
        let is_file = |entry: &&Entry| entry.kind == Kind::File;
        let sibling = self.tree.children(directory).map(|(_, entry)| entry).find(is_file);
        let template = sibling.or_else(|| self.tree.entries().map(|(_, entry)| entry).find(is_file));
        let refused = |reason| Error::Refused { what: "file name", value: name.to_owned(), reason };
        let template =
            template.ok_or_else(|| refused("the image has no file to take the form of records from"))?;
        let raw = self.raw(&template.record, false)?.bytes;
        let raw_name =
            if self.joliet { self.joliet_name(name, template)? } else { iso_name(name, template, taken)? };
        let name_len = u8::try_from(raw_name.len()).map_err(|_| refused("it is too long"))?;

        let mut bytes = raw.get(..33).unwrap_or_default().to_vec();
        for (at, value) in [(25, 0), (32, name_len)] {
            bytes.get_mut(at..=at).unwrap_or_default().fill(value);
        }
        bytes.extend(&raw_name);
        if bytes.len() % 2 == 1 {
            bytes.push(0);
        }
        if !self.joliet {
            bytes.extend(system_use(&raw, template.record.system_use.start, name));
        }
        if bytes.len() % 2 == 1 {
            bytes.push(0);
        }
        let len =
            u8::try_from(bytes.len()).map_err(|_| refused("its directory record would pass 255 bytes"))?;
        bytes.get_mut(..1).unwrap_or_default().fill(len);
        let mut record = RawRecord { bytes, is_directory: false };
        record.set_place(file.sector(), u32::try_from(file.extent.len()).unwrap_or(u32::MAX));
        Ok(record)
    }

    fn joliet_name(&self, name: &str, template: &Entry) -> Result<Vec<u8>> {
        /// Longest name, in UCS-2 units: what the record length leaves.
        const MAX_UNITS: usize = 103;
        let version = if template.record.name.ends_with(&[0, b';', 0, b'1']) { ";1" } else { "" };
        let units: Vec<u16> = format!("{name}{version}").encode_utf16().collect();
        if units.len() > MAX_UNITS {
            let reason = "a Joliet name has at most 103 characters";
            return Err(Error::Refused { what: "file name", value: name.to_owned(), reason });
        }
        Ok(units.into_iter().flat_map(u16::to_be_bytes).collect())
    }

    /// The changed bytes of all directories, of the path tables and of the descriptor.
    fn emit(&self, directories: &[NewDirectory], kept: u64) -> Result<Vec<Patch>> {
        let places: BTreeMap<Sector, (Sector, u32)> =
            directories.iter().map(|it| (it.old_sector, (it.sector, it.len))).collect();
        let mut patches = Vec::new();
        for directory in directories {
            let bytes = directory.pack(&places);
            if directory.sector == directory.old_sector {
                patches.extend(self.change(directory.old, bytes)?);
                continue;
            }
            patches.push(patch(directory.sector.offset(), bytes));
            if directory.old.end() <= kept {
                patches.push(zeros(directory.old));
            }
        }
        let root = self.descriptor.root.sector;
        let moved: BTreeMap<Sector, Sector> = directories
            .iter()
            .filter(|it| it.sector != it.old_sector)
            .map(|it| (it.old_sector, it.sector))
            .collect();
        if let Some((sector, len)) = places.get(&root).filter(|_| moved.contains_key(&root)) {
            let at = self.descriptor.sector.offset() + ROOT_RECORD;
            patches.push(patch(at + 2, both_endian(sector.0)));
            patches.push(patch(at + 10, both_endian(*len)));
        }
        if !moved.is_empty() {
            patches.extend(self.path_tables(&moved)?);
        }
        Ok(patches)
    }

    /// A patch for a directory that stays, if it changes.
    fn change(&self, old: Extent, mut bytes: Vec<u8>) -> Result<Option<Patch>> {
        bytes.resize(usize::try_from(old.len()).unwrap_or_default(), 0);
        let before = self.image.source().read_extent(old)?;
        Ok((before != bytes).then(|| patch(old.offset(), bytes)))
    }

    fn path_tables(&self, moved: &BTreeMap<Sector, Sector>) -> Result<Vec<Patch>> {
        let tables = self.descriptor.path_tables;
        if tables.len > MAX_PATH_TABLE_LEN {
            let expected = format!("at most {MAX_PATH_TABLE_LEN} bytes");
            let at = self.descriptor.sector.offset() + PATH_TABLE_LEN_AT;
            return Err(self.image.source().malformed(at, "path table", expected, tables.len));
        }
        let mut patches = Vec::new();
        for (table, little) in [(tables.little_endian, true), (tables.big_endian, false)] {
            let mut bytes = self.image.source().read_extent(Extent::at_sector(table, tables.len))?;
            let mut at = 0;
            while let Some(name_len @ 1..) = bytes.get(at).copied() {
                let old = if little { u32_le(&bytes, at + 2) } else { u32_be(&bytes, at + 2) };
                let new = old.and_then(|old| moved.get(&Sector(old))).map(|sector| sector.0);
                let number = new.map(|new| if little { new.to_le_bytes() } else { new.to_be_bytes() });
                if let (Some(number), Some(field)) = (number, bytes.get_mut(at + 2..at + 6)) {
                    field.copy_from_slice(&number);
                }
                at += 8 + usize::from(name_len) + usize::from(name_len % 2);
            }
            patches.push(patch(table.offset(), bytes));
        }
        Ok(patches)
    }
}

impl NewDirectory {
    /// The bytes of the directory, whole sectors; directories that its records name are looked up in `places`.
    fn pack(&self, places: &BTreeMap<Sector, (Sector, u32)>) -> Vec<u8> {
        let mut bytes = Vec::new();
        for record in &self.records {
            let mut raw = RawRecord { bytes: record.bytes.clone(), is_directory: record.is_directory };
            if let Some((sector, len)) = places.get(&raw.sector()).filter(|_| raw.is_directory) {
                raw.set_place(*sector, *len);
            }
            pad_for(&mut bytes, raw.bytes.len());
            bytes.extend(raw.bytes);
        }
        let len = bytes.len().next_multiple_of(SECTOR_LEN);
        bytes.resize(len, 0);
        bytes
    }
}

const SECTOR_LEN: usize = 2048;

/// Fills up the sector where a record of `len` bytes would cross its end.
fn pad_for(bytes: &mut Vec<u8>, len: usize) {
    let used = bytes.len() % SECTOR_LEN;
    if used + len > SECTOR_LEN {
        bytes.resize(bytes.len() + SECTOR_LEN - used, 0);
    }
}

fn packed_len(records: &[RawRecord]) -> u64 {
    let packed = records.iter().fold(0_usize, |at, record| {
        let used = at % SECTOR_LEN;
        let at = if used + record.bytes.len() > SECTOR_LEN { at + SECTOR_LEN - used } else { at };
        at + record.bytes.len()
    });
    packed.next_multiple_of(SECTOR_LEN) as u64
}

fn is_dot(record: &RawRecord) -> bool {
    matches!(record.name(), [0 | 1])
}

/// An 8.3 name that is free in its directory, with a version where others have one.
fn iso_name(name: &str, template: &Entry, taken: &mut BTreeSet<String>) -> Result<Vec<u8>> {
    let clean = |part: &str, len: usize| -> String {
        let allowed = part.to_ascii_uppercase();
        allowed.chars().map(|it| if it.is_ascii_alphanumeric() { it } else { '_' }).take(len).collect()
    };
    // A dot in front begins a name, not an extension.
    let (stem, extension) = name.rsplit_once('.').filter(|(stem, _)| !stem.is_empty()).unwrap_or((name, ""));
    let extension = clean(extension, 3);
    let spell = |stem: String| if extension.is_empty() { stem } else { format!("{stem}.{extension}") };
    let numbered = (0..1000_u32).map(|number| match number {
        0 => spell(clean(stem, 8)),
        number => spell(format!("{}{number:03}", clean(stem, 5))),
    });
    let mut free = numbered.filter(|candidate| !candidate.is_empty() && !taken.contains(candidate));
    let reason = "no short name is free for it";
    let short =
        free.next().ok_or_else(|| Error::Refused { what: "file name", value: name.to_owned(), reason })?;
    let dot = if extension.is_empty() { "." } else { "" };
    let version = if template.record.name.ends_with(b";1") { ";1" } else { "" };
    let raw = format!("{short}{dot}{version}").into_bytes();
    taken.insert(short);
    Ok(raw)
}

/// The system use area of a new file: mode, owner and times as the template has them, and a name of its own.
fn system_use(template: &[u8], start: usize, name: &str) -> Vec<u8> {
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
    // Where files have modes they have names, though perhaps in a continuation.
    if !area.is_empty() {
        let len = u8::try_from(name.len() + 5).unwrap_or(u8::MAX);
        area.extend([b'N', b'M', len, 1, 0]);
        area.extend(name.as_bytes());
    }
    area
}
