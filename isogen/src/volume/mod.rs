//! ISO 9660 volumes: descriptors, both directory trees, and where each record of them stands.
//!
//! Follows ECMA-119 for the volume, SUSP and RRIP 1.x for the Rock Ridge names, and the Joliet specification for the
//! second tree. It reads the images that CoreOS builders and other makers of CoreOS-shaped images write: one volume,
//! 2048-byte blocks, files of one extent. It does not read UDF, zisofs, or files in several extents.
//!
//! Everything is read once, by [`Volume::read`]; afterwards a volume is a table in memory that knows the byte position
//! of each descriptor and directory record, as somebody who rewrites them needs to.

mod descriptor;
mod finding;
mod record;
mod rockridge;
mod tree;

use std::collections::BTreeMap;

pub(crate) use descriptor::MAX_PATH_TABLE_LEN;
pub use descriptor::{Descriptor, JolietLevel, PathTables, VolumeDescriptor};
pub use finding::Finding;
pub use record::{Record, decode_iso_name};
pub(crate) use tree::MAX_DIRECTORY_LEN;
pub use tree::{Directory, Entry, EntryId, Kind, Tree};

use crate::error::{Error, Result};
use crate::extent::{Extent, SECTOR_SIZE, Sector};
use crate::source::Source;

/// An ISO 9660 volume, read and checked.
#[derive(Debug)]
pub struct Volume {
    descriptors: Vec<Descriptor>,
    primary: VolumeDescriptor,
    joliet: Option<VolumeDescriptor>,
    tree: Tree,
    joliet_tree: Option<Tree>,
    findings: Vec<Finding>,
}

impl Volume {
    /// Reads descriptors and directories.
    ///
    /// # Errors
    ///
    /// Fails with the place and the values where the volume is not complete, breaks the format or passes a limit.
    pub fn read(source: &Source) -> Result<Self> {
        let mut findings = Vec::new();
        let descriptors = descriptor::read_all(source, &mut findings)?;
        let primary = descriptors.iter().find_map(Descriptor::as_primary).cloned().ok_or_else(|| {
            source.malformed(
                16 * SECTOR_SIZE,
                "volume descriptors",
                "a primary one",
                "none before the terminator",
            )
        })?;
        check_complete(source, &primary)?;
        let joliet = descriptors.iter().find_map(Descriptor::as_joliet).cloned();
        let tree = Tree::read(source, &primary, &mut findings)?;
        let joliet_tree =
            joliet.as_ref().map(|descriptor| Tree::read(source, descriptor, &mut findings)).transpose()?;
        Ok(Self { descriptors, primary, joliet, tree, joliet_tree, findings })
    }

    /// All descriptors up to the terminator, in the order of the image.
    #[must_use]
    pub fn descriptors(&self) -> &[Descriptor] {
        &self.descriptors
    }

    /// The first sector behind the terminator.
    pub(crate) fn descriptors_end(&self) -> Sector {
        // They are at most `MAX_DESCRIPTORS`.
        let count = u32::try_from(self.descriptors.len()).unwrap_or_default();
        Sector(descriptor::FIRST + count + 1)
    }

    /// The primary volume descriptor.
    #[must_use]
    pub fn primary(&self) -> &VolumeDescriptor {
        &self.primary
    }

    /// The Joliet descriptor.
    #[must_use]
    pub fn joliet(&self) -> Option<&VolumeDescriptor> {
        self.joliet.as_ref()
    }

    /// The volume identifier.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.primary.volume_id
    }

    /// The primary tree.
    #[must_use]
    pub fn tree(&self) -> &Tree {
        &self.tree
    }

    /// The Joliet tree.
    #[must_use]
    pub fn joliet_tree(&self) -> Option<&Tree> {
        self.joliet_tree.as_ref()
    }

    /// What is odd about the volume, yet bearable.
    #[must_use]
    pub fn findings(&self) -> &[Finding] {
        &self.findings
    }

    /// The file at a path, by Rock Ridge or ISO name.
    #[must_use]
    pub fn file(&self, path: &str) -> Option<&Entry> {
        self.tree.find(path).filter(|entry| entry.kind == Kind::File)
    }

    /// The files that name each extent, in the order of the image: hard links share one. Empty files have none.
    #[must_use]
    pub fn files_by_extent(&self) -> BTreeMap<Extent, Vec<EntryId>> {
        let mut files: BTreeMap<Extent, Vec<EntryId>> = BTreeMap::new();
        for (id, entry) in self.tree.entries() {
            if entry.kind == Kind::File && !entry.extent.is_empty() {
                files.entry(entry.extent).or_default().push(id);
            }
        }
        files
    }
}

fn check_complete(source: &Source, primary: &VolumeDescriptor) -> Result<()> {
    let expected = u64::from(primary.space_size) * SECTOR_SIZE;
    if source.len() < expected {
        return Err(Error::Incomplete { file: source.name().to_owned(), expected, found: source.len() });
    }
    Ok(())
}
