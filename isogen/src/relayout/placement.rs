//! Where every file of the new layout goes.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::changes::{Contents, FileOperations};
use super::fields::{PADDING_SECTORS, sector, sectors};
use crate::base::BaseImage;
use crate::error::{Error, Result};
use crate::extent::{Extent, SECTOR_SIZE, Sector};
use crate::plan::{Plan, Segment};
use crate::volume::{Entry, EntryId, Kind, Tree};

/// A file that is not in the base in this form.
#[derive(Debug)]
pub(super) struct NewFile {
    pub(super) path: String,
    pub(super) contents: Contents,
    pub(super) extent: Extent,
}

impl NewFile {
    pub(super) fn sector(&self) -> Sector {
        Sector(u32::try_from(self.extent.offset() / SECTOR_SIZE).unwrap_or(u32::MAX))
    }
}

/// The new layout of the files.
#[derive(Debug)]
pub(super) struct Placement {
    /// The first byte that is not where it was.
    kept: u64,
    /// Where extents of the base go that move.
    moved: BTreeMap<Extent, Sector>,
    /// Extents of the base that no file has any more.
    gone: BTreeSet<Extent>,
    /// New and replaced files, in the order of their paths.
    pub(super) new: Vec<NewFile>,
    /// Paths that are gone.
    pub(super) dropped: BTreeSet<String>,
    /// The first sector behind the last file.
    pub(super) data_end: u64,
}

/// What an entry of a tree is in the new layout.
pub(super) enum Place {
    /// Where it was.
    Unchanged,
    /// It is gone.
    Dropped,
    /// Its data is here.
    At(Sector, u32),
}

impl Placement {
    pub(super) fn new(image: &BaseImage, operations: &FileOperations) -> Result<Self> {
        let tree = image.volume().tree();
        let mut touched = BTreeSet::new();
        let mut named = BTreeSet::new();
        let mut placement = Self {
            kept: 0,
            moved: BTreeMap::new(),
            gone: BTreeSet::new(),
            new: Vec::new(),
            dropped: BTreeSet::new(),
            data_end: 0,
        };
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
        self.new.push(NewFile { path, contents: contents.clone(), extent });
        Ok(())
    }

    /// Gives every extent that stays its place: the ones behind a gap move up, in their order.
    fn close_gaps(&mut self, image: &BaseImage, touched: &BTreeSet<EntryId>) -> Result<()> {
        let files = image.volume().files_by_extent();
        // An extent goes when all of its names go: hard links share one.
        let gone = |names: &[EntryId]| names.iter().all(|id| touched.contains(id));
        let first_gap = files.iter().find(|(_, names)| gone(names)).map(|(extent, _)| extent.offset());
        let metadata_end = check_metadata(image, first_gap)?;
        let data_end = files.keys().map(|extent| extent.end()).max().unwrap_or_default().max(metadata_end);
        self.kept = first_gap.unwrap_or(sectors(data_end) * SECTOR_SIZE);
        let mut next = self.kept / SECTOR_SIZE;
        let mut last = Extent::at_sector(Sector(0), 0);
        for (extent, names) in files.iter().filter(|(extent, _)| extent.end() > self.kept) {
            if gone(names) {
                self.gone.insert(*extent);
                continue;
            }
            if extent.overlaps(last) || extent.offset() < self.kept {
                let found = format!("{extent}, which overlaps the file at {last}");
                return Err(image.source().malformed(
                    extent.offset(),
                    "file that has to move",
                    "bytes of its own",
                    found,
                ));
            }
            last = *extent;
            self.moved.insert(*extent, sector(image, next)?);
            next += sectors(extent.len());
        }
        self.data_end = next;
        Ok(())
    }

    fn place_new(&mut self, image: &BaseImage) -> Result<()> {
        self.new.sort_by(|one, other| one.path.cmp(&other.path));
        for file in &mut self.new {
            let len = u32::try_from(file.contents.len()).map_err(|_| Error::Refused {
                what: "file",
                value: format!("{} of {} bytes", file.path, file.contents.len()),
                reason: "a file of an ISO image has less than 4 GiB",
            })?;
            file.extent = Extent::at_sector(sector(image, self.data_end)?, len);
            self.data_end += sectors(u64::from(len));
        }
        sector(image, self.data_end + PADDING_SECTORS).map(drop)
    }

    /// Reserves sectors behind the files, for a directory that has to move.
    pub(super) fn reserve(&mut self, image: &BaseImage, count: u64) -> Result<Sector> {
        let place = sector(image, self.data_end)?;
        self.data_end += count;
        sector(image, self.data_end + PADDING_SECTORS)?;
        Ok(place)
    }

    /// Where a byte of the base is now, if the file around it moved.
    pub(super) fn moved_offset(&self, extent: Extent) -> Option<u64> {
        let (old, new) = self.moved.iter().find(|(old, _)| old.contains(extent))?;
        Some(new.offset() + (extent.offset() - old.offset()))
    }

    /// The first byte that is not where it was.
    pub(super) fn kept(&self) -> u64 {
        self.kept
    }

    /// Tells whether no file has these bytes any more.
    pub(super) fn is_gone(&self, extent: Extent) -> bool {
        self.gone.contains(&extent)
    }

    /// Where a file's bytes of the base are now.
    pub(super) fn moved_sector(&self, old: Extent) -> Option<Sector> {
        self.moved.get(&old).copied()
    }

    /// Where an entry of either tree is now.
    pub(super) fn place(
        &self,
        image: &BaseImage,
        tree: &Tree,
        (id, entry): (EntryId, &Entry),
    ) -> Result<Place> {
        if entry.kind != Kind::File {
            return Ok(Place::Unchanged);
        }
        let path = tree.path(id);
        if self.dropped.contains(&path) {
            return Ok(Place::Dropped);
        }
        if let Some(file) = self.new_file(&path) {
            return Ok(Place::At(file.sector(), u32::try_from(file.extent.len()).unwrap_or(u32::MAX)));
        }
        if let Some(sector) = self.moved.get(&entry.extent) {
            return Ok(Place::At(*sector, entry.record.data_len));
        }
        if entry.extent.is_empty() {
            // Makers give it the place of what follows; it shall not stand behind the end.
            let inside = u64::from(entry.record.sector.0) < self.data_end;
            let kept = Sector(u32::try_from(self.kept / SECTOR_SIZE).unwrap_or(u32::MAX));
            return Ok(if inside { Place::Unchanged } else { Place::At(kept, 0) });
        }
        // A tree may spell a name in its own way, or lead to bytes that the other one does not know.
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
        Ok(Place::Unchanged)
    }

    /// The new or replaced file at a path.
    pub(super) fn new_file(&self, path: &str) -> Option<&NewFile> {
        let index = self.new.binary_search_by(|file| file.path.as_str().cmp(path)).ok()?;
        self.new.get(index)
    }

    /// The new layout, with the old metadata.
    pub(super) fn plan(&self, image: &BaseImage) -> Plan {
        // Nobody pads the last sector of an image that ends with a file.
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

    /// Sectors of the new volume.
    pub(super) fn volume_sectors(&self) -> u64 {
        self.data_end + PADDING_SECTORS
    }
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

/// The entry that a path spells out: by the name that people see or by the whole ISO name, in whatever case. (Looking it
/// up in the tree alone is too lenient: names that agree in their first eight characters would be one.)
pub(super) fn existing(tree: &Tree, path: &str) -> Option<EntryId> {
    let parts = path.split('/').filter(|part| !part.is_empty() && *part != ".");
    let wanted = parts.collect::<Vec<_>>().join("/");
    let id = tree.find_id(&wanted)?;
    let spelt = |found: String| found.eq_ignore_ascii_case(&wanted);
    (spelt(tree.path(id)) || spelt(tree.iso_path(id))).then_some(id)
}

/// The file at a path, where there is one.
fn existing_file(tree: &Tree, path: &str) -> Result<Option<EntryId>> {
    let found = existing(tree, path);
    match found.and_then(|id| tree.entry(id)).map(|entry| entry.kind) {
        None | Some(Kind::File) => Ok(found),
        Some(Kind::Directory) => Err(refused(path, "it is a directory")),
        Some(Kind::Special) => Err(refused(path, "it is no regular file")),
    }
}

/// The path of a file that the base does not have, as the trees are going to spell it.
fn new_path(image: &BaseImage, path: &str) -> Result<String> {
    /// What Joliet keeps for itself.
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

/// Makes sure that path tables, continuations and catalogue stand before the first gap; gives where they and the
/// directories end. A directory behind the gap moves with the files: an earlier new layout may have put it there.
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
    let behind = structures.iter().find(|(extent, _)| first_gap.is_some_and(|gap| extent.end() > gap));
    match behind {
        Some((extent, what)) => Err(image.source().malformed(
            extent.offset(),
            what,
            "a place before the first file that goes",
            extent,
        )),
        None => Ok(end),
    }
}

/// Makes sure that the files have no third tree: where an image has UDF too, Linux prefers it, and it would go on naming the
/// old places. Its descriptors stand right behind those of ISO 9660.
fn check_no_udf(image: &BaseImage) -> Result<()> {
    let start = Extent::at_sector(image.volume().descriptors_end(), 6);
    if start.end() <= image.source().len() && image.source().read_extent(start)?.ends_with(b"BEA01") {
        let expected = "none but those of ISO 9660";
        return Err(image.source().malformed(start.offset(), "volume descriptors", expected, "UDF"));
    }
    Ok(())
}
