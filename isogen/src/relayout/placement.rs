//! Assigns sectors to all files of the new image.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::changes::{FileContents, FileOperations};
use super::fields::{PADDING_SECTORS, to_sector};
use crate::base::BaseImage;
use crate::error::{Error, OrInternal, Result};
use crate::extent::{Extent, SECTOR_SIZE, Sector};
use crate::plan::{Plan, Segment};
use crate::volume::{DirectoryTree, EntryId, EntryKind};

/// A new or replaced file and its extent in the new image.
#[derive(Debug)]
pub(super) struct PlacedFile {
    pub(super) path: String,
    pub(super) contents: FileContents,
    pub(super) sector: Sector,
    /// Length of the contents in bytes.
    pub(super) len: u32,
}

/// The sectors of all files in the new image.
#[derive(Debug, Default)]
pub(super) struct Placement {
    /// End of the bytes that keep their offset.
    pub(super) kept_end: u64,
    /// The new sectors of base extents that move.
    pub(super) moved_extents: BTreeMap<Extent, Sector>,
    /// Base extents whose files were all dropped or replaced.
    pub(super) removed_extents: BTreeSet<Extent>,
    /// New and replaced files, sorted by path.
    pub(super) new_files: Vec<PlacedFile>,
    pub(super) dropped_paths: BTreeSet<String>,
    /// First sector after the last file.
    pub(super) data_end: u64,
}

impl Placement {
    /// Assigns sectors for an image with changed files.
    pub(super) fn new(image: &BaseImage, operations: &FileOperations) -> Result<Self> {
        let tree = image.volume().tree();
        let mut changed_entries = BTreeSet::new();
        let mut paths = BTreeSet::new();
        let mut placement = Self::default();
        for (path, contents) in &operations.files {
            let existing = find_file(tree, path)?;
            let name = match (existing, contents) {
                (Some(id), _) => tree.path(id),
                (None, Some(_)) => new_file_path(image, path)?,
                (None, None) => return Err(image.source().not_found(path)),
            };
            if !paths.insert(name.clone()) {
                return Err(invalid_file(path, "another operation names the same file"));
            }
            changed_entries.extend(existing);
            match contents {
                Some(contents) => placement.add_file(image, name, contents)?,
                None => drop(placement.dropped_paths.insert(name)),
            }
        }
        placement.close_gaps(image, &changed_entries)?;
        placement.place_new()?;
        Ok(placement)
    }

    fn add_file(&mut self, image: &BaseImage, path: String, contents: &FileContents) -> Result<()> {
        let outside =
            |segment: &Segment| matches!(segment, Segment::Base(base) if base.end() > image.source().len());
        if contents.0.iter().any(outside) {
            return Err(invalid_file(&path, "its contents refer to bytes after the end of the base image"));
        }
        let len = contents.len();
        let too_long = "a file in an ISO image must be smaller than 4 GiB";
        let len =
            u32::try_from(len).map_err(|_| invalid_file(&format!("{path} of {len} bytes"), too_long))?;
        // `place_new` assigns the sector later.
        self.new_files.push(PlacedFile { path, contents: contents.clone(), sector: Sector(0), len });
        Ok(())
    }

    /// Moves files to lower offsets, in their order, to close the gaps of dropped and replaced files.
    fn close_gaps(&mut self, image: &BaseImage, changed_entries: &BTreeSet<EntryId>) -> Result<()> {
        let files = image.volume().files_by_extent();
        // Hard links share an extent, so an extent is removed only if all of its files are dropped or replaced.
        let is_gone = |names: &[EntryId]| names.iter().all(|id| changed_entries.contains(id));
        self.removed_extents =
            files.iter().filter(|(_, names)| is_gone(names)).map(|(extent, _)| *extent).collect();
        let first_gap = self.removed_extents.first().map(|extent| extent.offset());
        let metadata_end = check_metadata_stays(image, first_gap)?;
        let end = files.keys().map(|extent| extent.end()).fold(metadata_end, u64::max);
        // Without a gap, all bytes keep their offset.
        self.kept_end = first_gap.unwrap_or(end.next_multiple_of(SECTOR_SIZE));
        self.data_end = self.kept_end / SECTOR_SIZE;
        let moves = |it: &Extent| it.end() > self.kept_end && !self.removed_extents.contains(it);
        let moving: Vec<Extent> = files.into_keys().filter(moves).collect();
        check_no_overlap(image, &moving, self.kept_end)?;
        for extent in moving {
            let sector = self.reserve_sectors(extent.len().div_ceil(SECTOR_SIZE))?;
            self.moved_extents.insert(extent, sector);
        }
        Ok(())
    }

    /// Assigns sectors after all other files to new and replaced files.
    fn place_new(&mut self) -> Result<()> {
        let mut new = std::mem::take(&mut self.new_files);
        new.sort_by(|one, other| one.path.cmp(&other.path));
        for file in &mut new {
            file.sector = self.reserve_sectors(u64::from(file.len).div_ceil(SECTOR_SIZE))?;
        }
        self.new_files = new;
        Ok(())
    }

    /// Reserves `count` sectors after the sectors assigned so far.
    pub(super) fn reserve_sectors(&mut self, count: u64) -> Result<Sector> {
        let first = to_sector(self.data_end)?;
        self.data_end += count;
        to_sector(self.data_end + PADDING_SECTORS)?;
        Ok(first)
    }

    /// Returns the new offset of a base extent, or `None` if the file that contains it does not move.
    pub(super) fn moved_offset(&self, extent: Extent) -> Option<u64> {
        let (old, new) = self.moved_extents.iter().find(|(old, _)| old.contains(extent))?;
        Some(new.offset() + (extent.offset() - old.offset()))
    }

    /// Returns the new or replaced file at a path, or `None` if the path has no such file.
    pub(super) fn new_file(&self, path: &str) -> Option<&PlacedFile> {
        let index = self.new_files.binary_search_by(|file| file.path.as_str().cmp(path)).ok()?;
        self.new_files.get(index)
    }

    /// Plans the new image with the metadata of the base image.
    pub(super) fn plan(&self, image: &BaseImage) -> Result<Plan> {
        let mut layout = LayoutBuilder::default();
        // The last sector may be incomplete if the image ends with a file.
        layout.push(0, [Segment::Base(Extent::from_start(self.kept_end.min(image.source().len())))])?;
        layout.fill_to(self.kept_end)?;
        let mut moved: Vec<_> = self.moved_extents.iter().collect();
        moved.sort_by_key(|(_, sector)| **sector);
        for (extent, sector) in moved {
            layout.push(sector.offset(), [Segment::Base(*extent)])?;
        }
        for file in &self.new_files {
            layout.push(file.sector.offset(), file.contents.0.iter().cloned())?;
        }
        layout.fill_to(self.volume_sectors() * SECTOR_SIZE)?;
        Ok(Plan::new(Arc::clone(image.source()), layout.segments))
    }

    pub(super) fn volume_sectors(&self) -> u64 {
        self.data_end + PADDING_SECTORS
    }
}

/// A list of segments at assigned offsets, with zeros between them.
#[derive(Debug, Default)]
struct LayoutBuilder {
    segments: Vec<Segment>,
    len: u64,
}

impl LayoutBuilder {
    /// Appends segments at an offset.
    fn push(&mut self, offset: u64, segments: impl IntoIterator<Item = Segment>) -> Result<()> {
        self.fill_to(offset)?;
        for segment in segments {
            self.len += segment.len();
            self.segments.push(segment);
        }
        Ok(())
    }

    /// Appends zeros up to an offset.
    fn fill_to(&mut self, offset: u64) -> Result<()> {
        let zeros =
            offset.checked_sub(self.len).or_internal("file that overlaps the one before it", offset)?;
        self.segments.push(Segment::Zero(zeros));
        self.len = offset;
        Ok(())
    }
}

/// Returns an error if files that move overlap each other or bytes that do not move.
fn check_no_overlap(image: &BaseImage, moving: &[Extent], kept_end: u64) -> Result<()> {
    let mut last = Extent::at_sector(Sector(0), 0);
    for extent in moving {
        if extent.overlaps(last) || extent.offset() < kept_end {
            let (what, expected) = ("file that has to move", "a file that overlaps no other");
            let actual = format!("{extent}, which overlaps the file at {last}");
            return Err(image.source().malformed(extent.offset(), what, expected, actual));
        }
        last = *extent;
    }
    Ok(())
}

fn invalid_file(path: &str, reason: &'static str) -> Error {
    Error::InvalidEdit { what: "file", value: path.to_owned(), reason }
}

/// Returns the entry at a path. The path consists of Rock Ridge or Joliet names or complete ISO 9660 names; case is
/// ignored. (`DirectoryTree::find_id` alone is too lenient: it also finds other names with the same first eight
/// characters.)
pub(super) fn find_exact(tree: &DirectoryTree, path: &str) -> Option<EntryId> {
    let parts = path.split('/').filter(|part| !part.is_empty() && *part != ".");
    let path_text = parts.collect::<Vec<_>>().join("/");
    let id = tree.find_id(&path_text)?;
    let is_same = |spelling: String| spelling.eq_ignore_ascii_case(&path_text);
    (is_same(tree.path(id)) || is_same(tree.iso_path(id))).then_some(id)
}

/// Returns the file at a path, or `None` if the path does not exist.
fn find_file(tree: &DirectoryTree, path: &str) -> Result<Option<EntryId>> {
    let id = find_exact(tree, path);
    match id.and_then(|id| tree.entry(id)).map(|entry| entry.kind) {
        None | Some(EntryKind::File) => Ok(id),
        Some(EntryKind::Directory) => Err(invalid_file(path, "it is a directory")),
        Some(EntryKind::Special) => Err(invalid_file(path, "it is not a regular file")),
    }
}

/// Returns the path of a new file, in which the parent directories have the spelling of the tree.
fn new_file_path(image: &BaseImage, path: &str) -> Result<String> {
    /// Characters that Joliet reserves.
    const RESERVED: [char; 5] = ['*', ':', ';', '?', '\\'];
    let tree = image.volume().tree();
    // A path without a slash is in the root directory.
    let (parent, name) = path.rsplit_once('/').unwrap_or(("", path));
    if ["", ".", ".."].contains(&name) {
        return Err(invalid_file(path, "it has no name"));
    }
    if name.contains(|it: char| it.is_control() || RESERVED.contains(&it)) {
        return Err(invalid_file(path, "a name must not contain control characters or any of * : ; ? \\"));
    }
    let is_directory = |id: &EntryId| tree.entry(*id).is_some_and(|entry| entry.kind == EntryKind::Directory);
    let id = find_exact(tree, parent).filter(is_directory);
    let parent = id.ok_or_else(|| image.source().not_found(parent))?;
    match tree.path(parent) {
        root if root.is_empty() => Ok(name.to_owned()),
        parent => Ok(format!("{parent}/{name}")),
    }
}

/// Returns the end of the metadata: path tables, continuations, boot catalogue and directories.
///
/// # Errors
///
/// Returns an error if a structure other than a directory is after the first gap. An earlier re-layout may have put
/// directories there; they move, so they are allowed.
fn check_metadata_stays(image: &BaseImage, first_gap: Option<u64>) -> Result<u64> {
    let volume = image.volume();
    check_no_udf(image)?;
    let mut structures: Vec<(Extent, &'static str)> = Vec::new();
    for (descriptor, _) in volume.trees() {
        let tables = descriptor.path_tables;
        let sectors = [tables.little_endian, tables.big_endian];
        structures.extend(sectors.map(|sector| (Extent::at_sector(sector, tables.len), "path table")));
    }
    let continuations = volume.tree().continuations();
    structures.extend(continuations.map(|extent| (extent, "Rock Ridge continuation")));
    let catalog = image.boot_catalog().map(|catalog| Extent::at_sector(catalog.sector, 2048));
    structures.extend(catalog.map(|extent| (extent, "boot catalogue")));
    if let Some((extent, what)) =
        structures.iter().find(|(it, _)| first_gap.is_some_and(|gap| it.end() > gap))
    {
        let expected = "a position before the first removed file";
        return Err(image.source().malformed(extent.offset(), what, expected, extent));
    }
    let directories = volume.trees().flat_map(|(_, tree)| tree.directories());
    let ends = structures.iter().map(|(extent, _)| *extent).chain(directories.map(|(_, entry)| entry.extent));
    Ok(ends.map(Extent::end).fold(0, u64::max))
}

/// Rejects images with UDF. Linux prefers the UDF tree, which would still refer to the old sectors. UDF descriptors
/// directly follow the ISO 9660 descriptors.
fn check_no_udf(image: &BaseImage) -> Result<()> {
    let start = Extent::at_sector(image.volume().descriptors_end(), 6);
    if start.end() <= image.source().len() && image.source().read_extent(start)?.ends_with(b"BEA01") {
        let expected = "only ISO 9660 descriptors";
        return Err(image.source().malformed(start.offset(), "volume descriptors", expected, "UDF"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layout_fills_gaps_with_zeros() {
        let mut layout = LayoutBuilder::default();
        layout.push(0, [Segment::Base(Extent::from_start(5))]).unwrap();
        layout.push(2048, [Segment::Zero(3), Segment::Zero(4)]).unwrap();
        layout.fill_to(4096).unwrap();
        assert_eq!(layout.len, layout.segments.iter().map(Segment::len).sum::<u64>());
    }

    #[test]
    fn layout_of_overlapping_files_is_an_internal_error() {
        let mut layout = LayoutBuilder::default();
        layout.push(0, [Segment::Base(Extent::from_start(2049))]).unwrap();
        let error = layout.push(2048, [Segment::Zero(1)]).unwrap_err();
        assert_eq!(error.to_string(), "internal error at byte 2048: file that overlaps the one before it");
        assert!(layout.fill_to(2048).is_err());
    }

    #[test]
    fn rejects_sectors_beyond_the_volume() {
        let mut placement =
            Placement { data_end: u64::from(u32::MAX) - PADDING_SECTORS - 1, ..Default::default() };
        assert!(placement.reserve_sectors(1).is_ok());
        let error = placement.reserve_sectors(1).unwrap_err();
        assert!(matches!(error, Error::InvalidEdit { what: "size of the new image", .. }), "{error}");
    }
}
