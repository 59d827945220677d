//! Where every file of the new layout goes.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::{Contents, FileOperations, PADDING_SECTORS, sector, sectors};
use crate::base::BaseImage;
use crate::extent::{Extent, SECTOR_SIZE, Sector};
use crate::plan::{Plan, Segment};
use crate::volume::{Entry, EntryId, Kind, Tree};
use crate::{Error, Result};

/// A file that is not in the base in this form.
#[derive(Debug)]
pub(super) struct NewFile {
    pub(super) path: String,
    pub(super) contents: Contents,
    pub(super) extent: Extent,
}

/// The new layout of the files.
#[derive(Debug)]
pub(super) struct Placement {
    /// The first byte that is not where it was.
    kept: u64,
    /// Where extents of the base go that move.
    moved: BTreeMap<Extent, Sector>,
    /// New and replaced files, in the order of their paths.
    pub(super) new: Vec<NewFile>,
    /// Paths that are gone.
    pub(super) dropped: BTreeSet<String>,
    /// The first sector behind the last file.
    pub(super) data_end: u64,
}

/// What an entry of a tree is in the new layout.
pub(super) enum Place {
    /// It is gone.
    Dropped,
    /// Its data is here.
    At(Sector, u32),
}

impl Placement {
    pub(super) fn new(image: &BaseImage, operations: &FileOperations) -> Result<Self> {
        let tree = image.volume().tree();
        let mut touched = BTreeSet::new();
        let mut placement =
            Self { kept: 0, moved: BTreeMap::new(), new: Vec::new(), dropped: BTreeSet::new(), data_end: 0 };
        for (path, contents) in &operations.files {
            let existing =
                tree.find_id(path).filter(|id| tree.entry(*id).is_some_and(|it| it.kind == Kind::File));
            let path = existing.map_or_else(|| normal(path), |id| tree.path(id));
            touched.extend(existing);
            match contents {
                Some(contents) => placement.new.push(NewFile {
                    path,
                    contents: contents.clone(),
                    extent: Extent::at_sector(Sector(0), 0),
                }),
                None if existing.is_some() => drop(placement.dropped.insert(path)),
                None => return Err(Error::NotFound { file: image.source().name().to_owned(), path }),
            }
        }
        placement.close_gaps(image, &touched)?;
        placement.place_new(image)?;
        Ok(placement)
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
                continue;
            }
            if extent.overlaps(last) || extent.offset() < self.kept {
                let found = format!("{extent}, which overlaps the file at {last}");
                return Err(image.refuse_layout(
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

    /// Where the extent that begins at a sector is now.
    pub(super) fn moved_sector(&self, old: Sector) -> Option<Sector> {
        let (_, new) = self.moved.iter().find(|(extent, _)| extent.offset() == old.offset())?;
        Some(*new)
    }

    /// Where an entry of either tree is now; none where it stays.
    pub(super) fn place(&self, tree: &Tree, id: EntryId, entry: &Entry) -> Option<Place> {
        let path = tree.path(id);
        if self.dropped.contains(&path) {
            return Some(Place::Dropped);
        }
        let at = |extent: Extent, len| {
            Some(Place::At(Sector(u32::try_from(extent.offset() / SECTOR_SIZE).ok()?), len))
        };
        if let Some(file) = self.new.iter().find(|file| file.path == path) {
            return at(file.extent, u32::try_from(file.extent.len()).ok()?);
        }
        self.moved.get(&entry.extent).map(|sector| Place::At(*sector, entry.record.data_len))
    }

    /// The new layout, with the old metadata.
    pub(super) fn plan(&self, image: &BaseImage) -> Plan {
        let mut segments = vec![base(0, self.kept)];
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

/// A path without empty components, as the trees spell theirs.
fn normal(path: &str) -> String {
    path.split('/').filter(|part| !part.is_empty() && *part != ".").collect::<Vec<_>>().join("/")
}

/// Makes sure that directories, path tables and catalogue stand before the first gap; gives where they end.
fn check_metadata(image: &BaseImage, first_gap: Option<u64>) -> Result<u64> {
    let volume = image.volume();
    let mut structures: Vec<(Extent, &'static str)> = Vec::new();
    let descriptors = [Some(volume.primary()), volume.joliet()];
    for descriptor in descriptors.into_iter().flatten() {
        let tables = descriptor.path_tables;
        structures.extend(
            [tables.little_endian, tables.big_endian]
                .map(|at| (Extent::at_sector(at, tables.len), "path table")),
        );
    }
    for tree in [Some(volume.tree()), volume.joliet_tree()].into_iter().flatten() {
        let directories = tree.entries().filter(|(_, entry)| entry.kind == Kind::Directory);
        structures.extend(directories.map(|(_, entry)| (entry.extent, "directory")));
    }
    structures.extend(
        image.boot_catalog().map(|catalog| (Extent::at_sector(catalog.sector, 2048), "boot catalogue")),
    );
    let end = structures.iter().map(|(extent, _)| extent.end()).max().unwrap_or_default();
    let behind = structures.iter().find(|(extent, _)| first_gap.is_some_and(|gap| extent.end() > gap));
    match behind {
        Some((extent, what)) => Err(image.refuse_layout(
            extent.offset(),
            what,
            "a place before the first file that goes",
            format!("{extent}"),
        )),
        None => Ok(end),
    }
}
