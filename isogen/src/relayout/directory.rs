//! Emits the directories of both trees again.
//!
//! Sizes come first: a directory that outgrows its sectors, or is among files that move, gets new sectors. These go
//! into the records of its parent and its children and into the path tables, so records are packed afterwards.

use std::collections::{BTreeMap, BTreeSet};

use super::fields::{both_endian, patch, zeros};
use super::placement::{Location, PlacedFile, Placement};
use super::raw_record::{RawRecord, iso_name, joliet_name, refused_name, system_use};
use crate::base::BaseImage;
use crate::bytes_at::{u32_be, u32_le};
use crate::error::Result;
use crate::extent::{Extent, SECTOR_SIZE, Sector};
use crate::plan::Patch;
use crate::volume::{
    Entry, EntryId, Kind, MAX_DIRECTORY_LEN, MAX_PATH_TABLE_LEN, Record, Tree, VolumeDescriptor,
    decode_iso_name,
};

const SECTOR_LEN: usize = 2048;
/// Offset of the length of a path table in a volume descriptor.
const PATH_TABLE_LEN_AT: u64 = 132;
/// Offset of the root directory's record in a volume descriptor.
const ROOT_RECORD: u64 = 156;

/// Returns the changes of volume descriptors, directories and path tables.
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

/// A directory after the re-layout.
struct NewDirectory {
    old: Extent,
    old_sector: Sector,
    sector: Sector,
    /// Bytes, as its records state them.
    len: u32,
    records: Vec<RawRecord>,
}

impl<'a> Hierarchy<'a> {
    /// Builds the records of every directory and reserves new sectors for those that must move.
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

    /// Returns the records of a directory: those that stay, with the new sectors of files, and those of new files.
    fn records(&self, id: EntryId, entry: &Entry, placement: &Placement) -> Result<Vec<RawRecord>> {
        let mut records = Vec::new();
        let dots = entry.directory.iter().flat_map(|directory| &directory.dots);
        for dot in dots {
            records.push(self.raw(dot, true)?);
        }
        for (child_id, child) in self.tree.children(id) {
            let mut raw = self.raw(&child.record, child.kind == Kind::Directory)?;
            match placement.location(self.image, self.tree, (child_id, child))? {
                Location::Dropped => continue,
                Location::At(sector, len) => raw.set_extent(sector, len),
                Location::Unchanged => {}
            }
            records.push(raw);
        }
        let mut taken: BTreeSet<String> = records.iter().map(|it| decode_iso_name(it.name())).collect();
        let path = self.tree.path(id);
        for file in &placement.new {
            let (parent, name) = file.path.rsplit_once('/').unwrap_or(("", &file.path));
            let exists = || self.tree.find_id(&file.path).is_some_and(|it| self.tree.path(it) == file.path);
            if parent == path && !exists() {
                let record = self.new_record(id, file, name, &mut taken)?;
                let at = records.iter().position(|other| !other.is_dot() && other.name() > record.name());
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

    /// Builds the record of a file that the base image does not have, with owner, mode and times of one that it has.
    fn new_record(
        &self,
        directory: EntryId,
        file: &PlacedFile,
        name: &str,
        taken: &mut BTreeSet<String>,
    ) -> Result<RawRecord> {
        let missing = || refused_name(name, "the image has no file to take the form of records from");
        let template = self.template(directory).ok_or_else(missing)?;
        let template_bytes = self.raw(&template.record, false)?.bytes;
        let (raw_name, system_use) = if self.joliet {
            (joliet_name(name, template)?, Vec::new())
        } else {
            let area = system_use(&template_bytes, template.record.system_use.start, name);
            (iso_name(name, template, taken)?, area)
        };
        let record = RawRecord::new_file(&template_bytes, &raw_name, &system_use);
        let mut record = record.map_err(|reason| refused_name(name, reason))?;
        record.set_extent(file.sector(), u32::try_from(file.extent.len()).unwrap_or(u32::MAX));
        Ok(record)
    }

    /// Returns a file of the directory, or of another one if it has no files.
    fn template(&self, directory: EntryId) -> Option<&Entry> {
        let is_file = |entry: &&Entry| entry.kind == Kind::File;
        let sibling = self.tree.children(directory).map(|(_, entry)| entry).find(is_file);
        sibling.or_else(|| self.tree.entries().map(|(_, entry)| entry).find(is_file))
    }

    /// Returns the changes of all directories, of the path tables and of the volume descriptor.
    fn emit(&self, directories: &[NewDirectory], kept: u64) -> Result<Vec<Patch>> {
        let extents: BTreeMap<Sector, (Sector, u32)> =
            directories.iter().map(|it| (it.old_sector, (it.sector, it.len))).collect();
        let mut patches = Vec::new();
        for directory in directories {
            let bytes = directory.pack(&extents);
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
        if let Some((sector, len)) = extents.get(&root).filter(|_| moved.contains_key(&root)) {
            let at = self.descriptor.sector.offset() + ROOT_RECORD;
            patches.push(patch(at + 2, both_endian(sector.0)));
            patches.push(patch(at + 10, both_endian(*len)));
        }
        if !moved.is_empty() {
            patches.extend(self.path_tables(&moved)?);
        }
        Ok(patches)
    }

    /// Returns the change of a directory that keeps its sectors, if its bytes differ.
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
    /// Packs the records into whole sectors. `extents` maps the old sector of a directory to its new sector and length.
    fn pack(&self, extents: &BTreeMap<Sector, (Sector, u32)>) -> Vec<u8> {
        let mut bytes = Vec::new();
        for record in &self.records {
            let mut raw = record.clone();
            if let Some((sector, len)) = extents.get(&raw.sector()).filter(|_| raw.is_directory) {
                raw.set_extent(*sector, *len);
            }
            pad_for(&mut bytes, raw.bytes.len());
            bytes.extend(raw.bytes);
        }
        let len = bytes.len().next_multiple_of(SECTOR_LEN);
        bytes.resize(len, 0);
        bytes
    }
}

/// Pads to the end of the sector if a record of `len` bytes would cross it.
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
