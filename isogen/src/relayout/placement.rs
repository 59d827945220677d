//! Assigns sectors to all files of the new layout.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::changes::{Contents, FileOperations};
use super::fields::{PADDING_SECTORS, sector, sectors};
use crate::base::BaseImage;
use crate::error::{Error, Result};
use crate::extent::{Extent, SECTOR_SIZE, Sector};
use crate::plan::{Plan, Segment};
use crate::volume::{Entry, EntryId, Kind, Tree};

/// A new or replaced file and its extent in the new layout.
#[derive(Debug)]
pub(super) struct PlacedFile {
    pub(super) path: String,
    pub(super) contents: Contents,
    pub(super) extent: Extent,
}

impl PlacedFile {
    pub(super) fn sector(&self) -> Sector {
        Sector(u32::try_from(self.extent.offset() / SECTOR_SIZE).unwrap_or(u32::MAX))
    }
}

/// The sectors of all files in the new layout.
#[derive(Debug, Default)]
pub(super) struct Placement {
    /// The end of the bytes that keep their offset.
    kept: u64,
    /// The new sectors of base extents that move.
    moved: BTreeMap<Extent, Sector>,
    /// Base extents whose files were all dropped or replaced.
    gone: BTreeSet<Extent>,
    /// New and replaced files, in the order of their paths.
    pub(super) new: Vec<PlacedFile>,
    /// Paths of dropped files.
    pub(super) dropped: BTreeSet<String>,
    /// The first sector after the last file.
    pub(super) data_end: u64,
}

/// The location of a directory entry's data in the new layout.
pub(super) enum Location {
    Unchanged,
    Dropped,
    /// First sector and length.
    At(Sector, u32),
}

impl Placement {
    /// Assigns sectors for an image with changed files.
    pub(super) fn new(image: &BaseImage, operations: &FileOperations) -> Result<Self> {
        let tree = image.volume().tree();
        let mut touched = BTreeSet::new();
        let mut named = BTreeSet::new();
        let mut placement = Self::default();
        for (path, contents) in &operations.files {
            let existing = existing_file(tree, path)?;
            let name = match (existing, contents) {
                (Some(id), _) => tree.path(id),
                (None, Some(_)) => new_path(image, path)?,
                (None, None) => return Err(not_found(image, path)),
            };
            if !named.insert(name.clone()) {
                return Err(refused(path, "another operation names the same file"));
            }
            touched.extend(existing);
            match contents {
                Some(contents) => placement.add(image, name, contents)?,
                None => drop(placement.dropped.insert(name)),
            }
        }
        placement.close_gaps(image, &touched)?;
        placement.place_new(image)?;
        Ok(placement)
    }

    fn add(&mut self, image: &BaseImage, path: String, contents: &Contents) -> Result<()> {
        let outside =
            |segment: &Segment| matches!(segment, Segment::Base(base) if base.end() > image.source().len());
        if contents.0.iter().any(outside) {
            return Err(refused(&path, "its contents refer to bytes behind the end of the base"));
        }
        let extent = Extent::at_sector(Sector(0), 0);
        self.new.push(PlacedFile { path, contents: contents.clone(), extent });
        Ok(())
    }

    /// Moves files up, in their order, to close the gaps of dropped and replaced files.
    fn close_gaps(&mut self, image: &BaseImage, touched: &BTreeSet<EntryId>) -> Result<()> {
        let files = image.volume().files_by_extent();
        // Hard links share an extent, which is gone if all of its names are.
        let is_gone = |names: &[EntryId]| names.iter().all(|id| touched.contains(id));
        self.gone = files.iter().filter(|(_, names)| is_gone(names)).map(|(extent, _)| *extent).collect();
        let first_gap = self.gone.first().map(|extent| extent.offset());
        let metadata_end = check_metadata(image, first_gap)?;
        let files_end = files.keys().map(|extent| extent.end()).max().unwrap_or_default();
        self.kept = first_gap.unwrap_or(sectors(files_end.max(metadata_end)) * SECTOR_SIZE);
        self.data_end = self.kept / SECTOR_SIZE;
        let mut moving = files.into_keys().collect::<Vec<_>>();
        moving.retain(|extent| extent.end() > self.kept && !self.gone.contains(extent));
        check_apart(image, &moving, self.kept)?;
        for extent in moving {
            let sector = self.reserve(image, sectors(extent.len()))?;
            self.moved.insert(extent, sector);
        }
        Ok(())
    }

    /// Places new and replaced files after all others.
    fn place_new(&mut self, image: &BaseImage) -> Result<()> {
        let mut new = std::mem::take(&mut self.new);
        new.sort_by(|one, other| one.path.cmp(&other.path));
        for file in &mut new {
            let len = u32::try_from(file.contents.len()).map_err(|_| Error::Refused {
                what: "file",
                value: format!("{} of {} bytes", file.path, file.contents.len()),
                reason: "a file of an ISO image has less than 4 GiB",
            })?;
            file.extent = Extent::at_sector(self.reserve(image, sectors(u64::from(len)))?, len);
        }
        self.new = new;
        Ok(())
    }

    /// Reserves sectors after those that are already assigned.
    pub(super) fn reserve(&mut self, image: &BaseImage, count: u64) -> Result<Sector> {
        let first = sector(image, self.data_end)?;
        self.data_end += count;
        sector(image, self.data_end + PADDING_SECTORS)?;
        Ok(first)
    }

    /// Returns the new offset of a base extent if the file that contains it moves.
    pub(super) fn moved_offset(&self, extent: Extent) -> Option<u64> {
        let (old, new) = self.moved.iter().find(|(old, _)| old.contains(extent))?;
        Some(new.offset() + (extent.offset() - old.offset()))
    }

    /// Returns the end of the bytes that keep their offset.
    pub(super) fn kept(&self) -> u64 {
        self.kept
    }

    /// Returns `true` if all files at a base extent were dropped or replaced.
    pub(super) fn is_gone(&self, extent: Extent) -> bool {
        self.gone.contains(&extent)
    }

    /// Returns the new sector of a base extent that moves.
    pub(super) fn moved_sector(&self, old: Extent) -> Option<Sector> {
        self.moved.get(&old).copied()
    }

    /// Returns the location of an entry of either tree.
    pub(super) fn location(
        &self,
        image: &BaseImage,
        tree: &Tree,
        (id, entry): (EntryId, &Entry),
    ) -> Result<Location> {
        if entry.kind != Kind::File {
            return Ok(Location::Unchanged);
        }
        let path = tree.path(id);
        if self.dropped.contains(&path) {
            return Ok(Location::Dropped);
        }
        if let Some(file) = self.new_file(&path) {
            return Ok(Location::At(file.sector(), u32::try_from(file.extent.len()).unwrap_or(u32::MAX)));
        }
        if let Some(sector) = self.moved.get(&entry.extent) {
            return Ok(Location::At(*sector, entry.record.data_len));
        }
        if entry.extent.is_empty() {
            // Mastering tools give an empty file the sector of the next file. Keep it inside the volume.
            let inside = u64::from(entry.record.sector.0) < self.data_end;
            let kept = Sector(u32::try_from(self.kept / SECTOR_SIZE).unwrap_or(u32::MAX));
            return Ok(if inside { Location::Unchanged } else { Location::At(kept, 0) });
        }
        // The other tree may spell the name differently, or not contain the file.
        if entry.extent.end() > self.kept {
            let expected = "a file that both trees have, under the same name";
            let found = format!("{path} at {}", entry.extent);
            return Err(image.source().malformed(
                entry.record.position,
                "record of a file that moves",
                expected,
                found,
            ));
        }
        Ok(Location::Unchanged)
    }

    /// Returns the new or replaced file at a path.
    pub(super) fn new_file(&self, path: &str) -> Option<&PlacedFile> {
        let index = self.new.binary_search_by(|file| file.path.as_str().cmp(path)).ok()?;
        self.new.get(index)
    }

    /// Plans the new layout with the old metadata.
    pub(super) fn plan(&self, image: &BaseImage) -> Plan {
        // The last sector of an image that ends with a file may be incomplete.
        let whole = self.kept.min(image.source().len());
        let mut segments = vec![base(0, whole), Segment::Zero(self.kept - whole)];
        let mut moved: Vec<_> = self.moved.iter().collect();
        moved.sort_by_key(|(_, sector)| **sector);
        let fill = |segments: &mut Vec<Segment>, contents: Vec<Segment>| {
            let len: u64 = contents.iter().map(Segment::len).sum();
            segments.extend(contents);
            segments.push(Segment::Zero(sectors(len) * SECTOR_SIZE - len));
        };
        for (extent, _) in moved {
            fill(&mut segments, vec![Segment::Base(*extent)]);
        }
        for file in &self.new {
            fill(&mut segments, file.contents.0.clone());
        }
        let len: u64 = segments.iter().map(Segment::len).sum();
        segments.push(Segment::Zero((self.data_end + PADDING_SECTORS) * SECTOR_SIZE - len));
        Plan::of(Arc::clone(image.source()), segments)
    }

    /// Returns the number of sectors of the new volume.
    pub(super) fn volume_sectors(&self) -> u64 {
        self.data_end + PADDING_SECTORS
    }
}

/// Returns an error if files that move share bytes with each other or with bytes that stay.
fn check_apart(image: &BaseImage, moving: &[Extent], kept: u64) -> Result<()> {
    let mut last = Extent::at_sector(Sector(0), 0);
    for extent in moving {
        if extent.overlaps(last) || extent.offset() < kept {
            let found = format!("{extent}, which overlaps the file at {last}");
            let what = "file that has to move";
            return Err(image.source().malformed(extent.offset(), what, "bytes of its own", found));
        }
        last = *extent;
    }
    Ok(())
}

fn base(offset: u64, len: u64) -> Segment {
    Extent::new(offset, len).map_or(Segment::Zero(0), Segment::Base)
}

fn refused(path: &str, reason: &'static str) -> Error {
    Error::Refused { what: "file", value: path.to_owned(), reason }
}

fn not_found(image: &BaseImage, path: &str) -> Error {
    Error::NotFound { file: image.source().name().to_owned(), path: path.to_owned() }
}

/// Returns the entry at a path, by its Rock Ridge or Joliet name or its whole ISO name, case-insensitively.
/// (`Tree::find_id` alone is too lenient: it finds other names with the same first eight characters.)
pub(super) fn existing(tree: &Tree, path: &str) -> Option<EntryId> {
    let parts = path.split('/').filter(|part| !part.is_empty() && *part != ".");
    let wanted = parts.collect::<Vec<_>>().join("/");
    let id = tree.find_id(&wanted)?;
    let spelt = |found: String| found.eq_ignore_ascii_case(&wanted);
    (spelt(tree.path(id)) || spelt(tree.iso_path(id))).then_some(id)
}

/// Returns the file at a path, `None` if the path does not exist.
fn existing_file(tree: &Tree, path: &str) -> Result<Option<EntryId>> {
    let found = existing(tree, path);
    match found.and_then(|id| tree.entry(id)).map(|entry| entry.kind) {
        None | Some(Kind::File) => Ok(found),
        Some(Kind::Directory) => Err(refused(path, "it is a directory")),
        Some(Kind::Special) => Err(refused(path, "it is no regular file")),
    }
}

/// Returns the path of a new file as the trees will spell it.
fn new_path(image: &BaseImage, path: &str) -> Result<String> {
    /// Characters that Joliet reserves.
    const RESERVED: [char; 5] = ['*', ':', ';', '?', '\\'];
    let tree = image.volume().tree();
    let (parent, name) = path.rsplit_once('/').unwrap_or(("", path));
    if ["", ".", ".."].contains(&name) {
        return Err(refused(path, "it has no name"));
    }
    if name.contains(|it: char| it.is_control() || RESERVED.contains(&it)) {
        return Err(refused(path, "a name has no control characters and none of * : ; ? \\"));
    }
    let is_directory = |id: &EntryId| tree.entry(*id).is_some_and(|entry| entry.kind == Kind::Directory);
    let parent = existing(tree, parent).filter(is_directory).ok_or_else(|| not_found(image, parent))?;
    match tree.path(parent) {
        root if root.is_empty() => Ok(name.to_owned()),
        parent => Ok(format!("{parent}/{name}")),
    }
}

/// Returns the end of the metadata: path tables, continuations, boot catalogue and directories.
///
/// # Errors
///
/// Returns an error if one of them is after the first gap. Directories may be: an earlier re-layout may have put them
/// there, and they move.
fn check_metadata(image: &BaseImage, first_gap: Option<u64>) -> Result<u64> {
    let volume = image.volume();
    check_no_udf(image)?;
    let mut structures: Vec<(Extent, &'static str)> = Vec::new();
    let descriptors = [Some(volume.primary()), volume.joliet()];
    for descriptor in descriptors.into_iter().flatten() {
        let tables = descriptor.path_tables;
        structures.extend(
            [tables.little_endian, tables.big_endian]
                .map(|at| (Extent::at_sector(at, tables.len), "path table")),
        );
    }
    let continuations = volume.tree().continuations();
    structures.extend(continuations.map(|extent| (extent, "Rock Ridge continuation")));
    structures.extend(
        image.boot_catalog().map(|catalog| (Extent::at_sector(catalog.sector, 2048), "boot catalogue")),
    );
    let trees = [Some(volume.tree()), volume.joliet_tree()].into_iter().flatten();
    let directories = trees.flat_map(Tree::entries).filter(|(_, entry)| entry.kind == Kind::Directory);
    let ends = structures.iter().map(|(extent, _)| *extent).chain(directories.map(|(_, entry)| entry.extent));
    let end = ends.map(Extent::end).max().unwrap_or_default();
    let late = structures.iter().find(|(extent, _)| first_gap.is_some_and(|gap| extent.end() > gap));
    match late {
        Some((extent, what)) => Err(image.source().malformed(
            extent.offset(),
            what,
            "a place before the first file that goes",
            extent,
        )),
        None => Ok(end),
    }
}

/// Rejects UDF. Linux prefers its tree, which would still refer to the old sectors. UDF descriptors directly follow
/// those of ISO 9660.
fn check_no_udf(image: &BaseImage) -> Result<()> {
    let start = Extent::at_sector(image.volume().descriptors_end(), 6);
    if start.end() <= image.source().len() && image.source().read_extent(start)?.ends_with(b"BEA01") {
        let expected = "none but those of ISO 9660";
        return Err(image.source().malformed(start.offset(), "volume descriptors", expected, "UDF"));
    }
    Ok(())
}
