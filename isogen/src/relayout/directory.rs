//! Updates the directories and path tables of both directory trees.
//!
//! The first step determines the sizes. A directory gets new sectors if it outgrows its old sectors or if it is after
//! the first file that moves. New sectors change the records in the parent and the children of a directory, and the
//! path tables. Therefore, the second step packs the records.

use std::collections::{BTreeMap, BTreeSet};

use super::fields::{bytes_patch, to_sector, zero_patch};
use super::placement::{PlacedFile, Placement};
use super::raw_record::{RawRecord, encode_iso_name, encode_joliet_name, invalid_name, new_system_use};
use crate::base::BaseImage;
use crate::bytes_at::{u32_be, u32_le};
use crate::checked_fields::{both_endian, put_slice};
use crate::error::{Error, OrInternal, Result};
use crate::extent::{Extent, SECTOR_SIZE, Sector};
use crate::plan::Patch;
use crate::volume::{
    DirectoryRecord, DirectoryTree, EntryId, EntryKind, MAX_DIRECTORY_LEN, MAX_PATH_TABLE_LEN,
    TreeDescriptor, TreeEntry, decode_iso_name, is_self_or_parent,
};

const SECTOR_LEN: usize = 2048;
/// Offset of the path table's length in a volume descriptor.
const PATH_TABLE_LEN_AT: u64 = 132;
/// Offset of the root directory's record in a volume descriptor.
const ROOT_RECORD_AT: u64 = 156;

/// Returns the patches of volume descriptors, directories and path tables.
pub(super) fn directory_patches(image: &BaseImage, placement: &mut Placement) -> Result<Vec<Patch>> {
    let mut rewritten = Vec::new();
    for (descriptor, tree) in image.volume().trees() {
        let rewrite = TreeRewrite { image, descriptor, tree };
        rewritten.push((rewrite.assign_sectors(placement)?, rewrite));
    }
    let mut patches = Vec::new();
    for (directories, rewrite) in rewritten {
        patches.extend(rewrite.patches(&directories, placement.kept_end)?);
    }
    Ok(patches)
}

/// One of the two directory trees, during the re-layout.
struct TreeRewrite<'a> {
    image: &'a BaseImage,
    descriptor: &'a TreeDescriptor,
    tree: &'a DirectoryTree,
}

/// The location of an entry's data in the new image.
enum DataLocation {
    Unchanged,
    Dropped,
    /// Contains the first sector and the length.
    At(Sector, u32),
}

/// A directory after the re-layout.
struct NewDirectory {
    old: Extent,
    old_sector: Sector,
    sector: Sector,
    /// Length in bytes, which the records of the directory state.
    len: u32,
    /// Length of the reserved sectors in bytes.
    reserved: u64,
    records: Vec<RawRecord>,
}

impl TreeRewrite<'_> {
    /// Builds the records of every directory and reserves new sectors for the directories that must move.
    fn assign_sectors(&self, placement: &mut Placement) -> Result<Vec<NewDirectory>> {
        let mut directories = Vec::new();
        for (id, entry) in self.tree.directories() {
            let records = self.new_records(id, entry, placement)?;
            let needed = packed_len(&records);
            let (old, old_sector) = (entry.extent, entry.record.sector);
            let (mut sector, mut len, mut reserved) = (old_sector, entry.record.data_len, old.len());
            if needed > old.len() || old.end() > placement.kept_end {
                let accepted = u32::try_from(needed).ok().filter(|len| *len <= MAX_DIRECTORY_LEN);
                len = accepted.ok_or_else(|| {
                    let value = format!("/{}", self.tree.path(id));
                    let reason = "with its new files, it would exceed the 1 MiB that readers accept";
                    Error::InvalidEdit { what: "directory", value, reason }
                })?;
                sector = placement.reserve_sectors(needed / SECTOR_SIZE)?;
                reserved = needed;
            }
            directories.push(NewDirectory { old, old_sector, sector, len, reserved, records });
        }
        Ok(directories)
    }

    /// Returns the records of a directory in the new image: remaining records, with the new sectors of files, and the
    /// records of new files.
    fn new_records(&self, id: EntryId, entry: &TreeEntry, placement: &Placement) -> Result<Vec<RawRecord>> {
        let mut records = Vec::new();
        let own_records = entry.directory.iter().flat_map(|directory| &directory.self_and_parent);
        for record in own_records {
            records.push(self.read_raw_record(record, true)?);
        }
        for (child_id, child) in self.tree.children(id) {
            let mut raw = self.read_raw_record(&child.record, child.kind == EntryKind::Directory)?;
            match self.location(placement, child_id, child)? {
                DataLocation::Dropped => continue,
                DataLocation::At(sector, len) => raw.set_extent(sector, len)?,
                DataLocation::Unchanged => {}
            }
            records.push(raw);
        }
        self.add_new_files(id, placement, &mut records)?;
        Ok(records)
    }

    fn location(&self, placement: &Placement, id: EntryId, entry: &TreeEntry) -> Result<DataLocation> {
        if entry.kind != EntryKind::File {
            return Ok(DataLocation::Unchanged);
        }
        let path = self.tree.path(id);
        if placement.dropped_paths.contains(&path) {
            return Ok(DataLocation::Dropped);
        }
        if let Some(file) = placement.new_file(&path) {
            return Ok(DataLocation::At(file.sector, file.len));
        }
        if let Some(sector) = placement.moved_extents.get(&entry.extent) {
            return Ok(DataLocation::At(*sector, entry.record.data_len));
        }
        // Mastering tools assign the sector of the next file to an empty file. If the new volume ends before that
        // sector, assign another sector inside the volume.
        if entry.extent.is_empty() && u64::from(entry.record.sector.0) >= placement.data_end {
            return Ok(DataLocation::At(to_sector(placement.kept_end / SECTOR_SIZE)?, 0));
        }
        // The two trees have different names for the file, or only one tree contains it. The new location of the file
        // is unknown, so the image is rejected.
        if !entry.extent.is_empty() && entry.extent.end() > placement.kept_end {
            let what = "record of a file that moves";
            let expected = "a file that both trees have, under the same name";
            let (at, found) = (entry.record.position, format!("{path} at {}", entry.extent));
            return Err(self.image.source().malformed(at, what, expected, found));
        }
        Ok(DataLocation::Unchanged)
    }

    /// Adds records for the new files in a directory, sorted by name.
    fn add_new_files(
        &self,
        directory: EntryId,
        placement: &Placement,
        records: &mut Vec<RawRecord>,
    ) -> Result<()> {
        let names = records.iter().map(|record| Ok(record.name()?.to_vec()));
        let mut names = names.collect::<Result<Vec<_>>>()?;
        let mut used_names: BTreeSet<String> = names.iter().map(|name| decode_iso_name(name)).collect();
        let path = self.tree.path(directory);
        for file in &placement.new_files {
            // A path without a slash is in the root directory.
            let (parent, name) = file.path.rsplit_once('/').unwrap_or(("", &file.path));
            let exists = || self.tree.find_id(&file.path).is_some_and(|it| self.tree.path(it) == file.path);
            if parent == path && !exists() {
                let record = self.new_record(directory, file, name, &mut used_names)?;
                let name = record.name()?.to_vec();
                let after = names.iter().position(|other| !is_self_or_parent(other) && *other > name);
                let at = after.unwrap_or(records.len());
                names.insert(at, name);
                records.insert(at, record);
            }
        }
        Ok(())
    }

    fn read_raw_record(&self, record: &DirectoryRecord, is_directory: bool) -> Result<RawRecord> {
        let extent = Extent::new(record.position, u64::from(record.len));
        let extent = extent.or_internal("offset of a directory record", record.position)?;
        Ok(RawRecord { bytes: self.image.source().read_extent(extent)?, is_directory })
    }

    /// Builds the record of a new file. Owner, mode and times come from an existing file.
    fn new_record(
        &self,
        directory: EntryId,
        file: &PlacedFile,
        name: &str,
        used_names: &mut BTreeSet<String>,
    ) -> Result<RawRecord> {
        let missing =
            || invalid_name(name, "the image has no file whose directory record can be the template");
        let template = self.template_file(directory).ok_or_else(missing)?;
        let template_bytes = self.read_raw_record(&template.record, false)?.bytes;
        let (raw_name, system_use) = if self.descriptor.joliet.is_some() {
            (encode_joliet_name(name, template)?, Vec::new())
        } else {
            let area = new_system_use(&template_bytes, template.record.system_use.start, name)?;
            (encode_iso_name(name, template, used_names)?, area)
        };
        let mut record = RawRecord::new_file(name, &template_bytes, &raw_name, &system_use)?;
        record.set_extent(file.sector, file.len)?;
        Ok(record)
    }

    /// Returns a file of the directory, or a file of another directory if the directory has no files.
    fn template_file(&self, directory: EntryId) -> Option<&TreeEntry> {
        let mut siblings = self.tree.children(directory).map(|(_, entry)| entry);
        let sibling = siblings.find(|entry| entry.kind == EntryKind::File);
        sibling.or_else(|| self.tree.files().map(|(_, file)| file).next())
    }

    /// Returns the patches of all directories, the path tables and the volume descriptor.
    fn patches(&self, directories: &[NewDirectory], kept_end: u64) -> Result<Vec<Patch>> {
        let extents: BTreeMap<Sector, (Sector, u32)> =
            directories.iter().map(|it| (it.old_sector, (it.sector, it.len))).collect();
        let mut patches = Vec::new();
        for directory in directories {
            let bytes = directory.pack(&extents)?;
            if directory.sector == directory.old_sector {
                patches.extend(self.changed_directory(directory.old, bytes)?);
                continue;
            }
            patches.push(bytes_patch(directory.sector.offset(), bytes));
            if directory.old.end() <= kept_end {
                patches.push(zero_patch(directory.old));
            }
        }
        let root = self.descriptor.root.sector;
        let moved = directories.iter().filter(|it| it.sector != it.old_sector);
        let moved: BTreeMap<Sector, Sector> = moved.map(|it| (it.old_sector, it.sector)).collect();
        if let Some((sector, len)) = extents.get(&root).filter(|_| moved.contains_key(&root)) {
            let at = self.descriptor.sector.offset() + ROOT_RECORD_AT;
            patches.push(bytes_patch(at + 2, both_endian(sector.0)));
            patches.push(bytes_patch(at + 10, both_endian(*len)));
        }
        if !moved.is_empty() {
            patches.extend(self.path_table_patches(&moved)?);
        }
        Ok(patches)
    }

    /// Returns the patch of a directory that keeps its sectors, or `None` if its bytes do not change.
    fn changed_directory(&self, old: Extent, mut bytes: Vec<u8>) -> Result<Option<Patch>> {
        bytes.resize(usize::try_from(old.len()).or_internal("length of a directory", old.offset())?, 0);
        let before = self.image.source().read_extent(old)?;
        Ok((before != bytes).then(|| bytes_patch(old.offset(), bytes)))
    }

    /// Returns the patches of path tables for directories that move.
    fn path_table_patches(&self, moved: &BTreeMap<Sector, Sector>) -> Result<Vec<Patch>> {
        let tables = self.descriptor.path_tables;
        if tables.len > MAX_PATH_TABLE_LEN {
            let expected = format!("at most {MAX_PATH_TABLE_LEN} bytes");
            let at = self.descriptor.sector.offset() + PATH_TABLE_LEN_AT;
            return Err(self.image.source().malformed(at, "path table", expected, tables.len));
        }
        let mut patches = Vec::new();
        for (table, is_little_endian) in [(tables.little_endian, true), (tables.big_endian, false)] {
            let encode = |n: u32| if is_little_endian { n.to_le_bytes() } else { n.to_be_bytes() };
            let mut bytes = self.image.source().read_extent(Extent::at_sector(table, tables.len))?;
            let mut at = 0;
            while let Some(name_len @ 1..) = bytes.get(at).copied() {
                let old = if is_little_endian { u32_le(&bytes, at + 2) } else { u32_be(&bytes, at + 2) };
                let old = old.ok_or_else(|| {
                    let at = table.offset() + at as u64;
                    self.image.source().malformed(at, "path table", "whole records", "the end of the table")
                })?;
                if let Some(Sector(new)) = moved.get(&Sector(old)) {
                    put_slice(&mut bytes, at + 2, &encode(*new))?;
                }
                at += 8 + usize::from(name_len) + usize::from(name_len % 2);
            }
            patches.push(bytes_patch(table.offset(), bytes));
        }
        Ok(patches)
    }
}

impl NewDirectory {
    /// Packs the records into whole sectors. `extents` maps the old sector of a directory to its new sector and length.
    fn pack(&self, extents: &BTreeMap<Sector, (Sector, u32)>) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        for record in &self.records {
            let mut raw = record.clone();
            if let Some((sector, len)) = extents.get(&raw.sector()?).filter(|_| raw.is_directory) {
                raw.set_extent(*sector, *len)?;
            }
            bytes.resize(record_start(bytes.len(), raw.bytes.len()), 0);
            bytes.extend(raw.bytes);
        }
        let len = bytes.len().next_multiple_of(SECTOR_LEN);
        bytes.resize(len, 0);
        if len as u64 > self.reserved {
            let (what, offset) = ("directory larger than its sectors", self.sector.offset());
            return Err(Error::Internal { what, offset });
        }
        Ok(bytes)
    }
}

/// Returns the start of a record of `len` bytes that follows `end` bytes. A record that would cross a sector boundary
/// begins at the next sector.
fn record_start(end: usize, len: usize) -> usize {
    if end % SECTOR_LEN + len > SECTOR_LEN { end.next_multiple_of(SECTOR_LEN) } else { end }
}

fn packed_len(records: &[RawRecord]) -> u64 {
    let lens = records.iter().map(|record| record.bytes.len());
    lens.fold(0, |end, len| record_start(end, len) + len).next_multiple_of(SECTOR_LEN) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn directory(reserved: u64) -> NewDirectory {
        let record = RawRecord { bytes: vec![1; 40], is_directory: false };
        let sector = Sector(20);
        let old = Extent::at_sector(sector, 2048);
        NewDirectory { old, old_sector: sector, sector, len: 2048, reserved, records: vec![record; 100] }
    }

    #[test]
    fn pack_fills_whole_sectors() {
        let directory = directory(4096);
        let bytes = directory.pack(&BTreeMap::new()).unwrap();
        assert_eq!(bytes.len() as u64, packed_len(&directory.records));
        assert_eq!(bytes.len(), 4096);
    }

    #[test]
    fn pack_beyond_the_reserved_sectors_is_an_internal_error() {
        let error = directory(2048).pack(&BTreeMap::new()).unwrap_err();
        assert!(matches!(error, Error::Internal { offset: 40_960, .. }), "{error}");
    }
}
