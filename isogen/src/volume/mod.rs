//! ISO 9660 volumes: descriptors, both directory trees, and the offsets of all directory records.
//!
//! The reader follows ECMA-119 for the volume, SUSP and RRIP 1.x for Rock Ridge, and the Joliet specification for the
//! second tree. It supports the images of CoreOS builders and similar images: one volume, 2048-byte blocks, files of
//! one extent. It does not support UDF, zisofs, or files with several extents.
//!
//! [`Volume::read`] reads all structures. The result is a table in memory with the offset of each descriptor and
//! directory record, for code that changes them.

mod descriptor;
mod finding;
mod record;
mod rockridge;
mod tree;

use std::collections::BTreeMap;

pub(crate) use descriptor::MAX_PATH_TABLE_LEN;
pub use descriptor::{JolietLevel, PathTables, TreeDescriptor, VolumeDescriptor};
pub use finding::VolumeFinding;
pub use record::DirectoryRecord;
pub(crate) use record::{decode_iso_name, is_self_or_parent};
pub(crate) use tree::MAX_DIRECTORY_LEN;
pub use tree::{DirectoryTree, EntryId, EntryKind, TreeEntry};

use self::finding::VolumeReader;
use crate::error::{Error, Result};
use crate::extent::{Extent, SECTOR_SIZE, Sector};
use crate::source::Source;

/// An ISO 9660 volume. Its structures have been read and checked.
#[derive(Debug)]
pub struct Volume {
    descriptors: Vec<VolumeDescriptor>,
    descriptors_end: Sector,
    primary: TreeDescriptor,
    joliet: Option<TreeDescriptor>,
    tree: DirectoryTree,
    joliet_tree: Option<DirectoryTree>,
    findings: Vec<VolumeFinding>,
}

impl Volume {
    /// Reads the descriptors and the directories of a volume.
    ///
    /// # Errors
    ///
    /// Returns an error with the position and the value if the volume is incomplete, violates the format or exceeds a
    /// limit.
    pub fn read(source: &Source) -> Result<Self> {
        let mut reader = VolumeReader { source, findings: Vec::new() };
        let (descriptors, descriptors_end) = descriptor::read_all(&mut reader)?;
        let primary = descriptors.iter().find_map(VolumeDescriptor::as_primary).cloned();
        let primary = primary.ok_or_else(|| {
            let actual = "none before the terminator";
            source.malformed(16 * SECTOR_SIZE, "volume descriptors", "a primary one", actual)
        })?;
        let expected = u64::from(primary.space_size) * SECTOR_SIZE;
        if source.len() < expected {
            return Err(Error::Incomplete { file: source.name().to_owned(), expected, found: source.len() });
        }
        let joliet = descriptors.iter().find_map(VolumeDescriptor::as_joliet).cloned();
        let tree = DirectoryTree::read(&mut reader, &primary)?;
        let joliet_tree =
            joliet.as_ref().map(|joliet| DirectoryTree::read(&mut reader, joliet)).transpose()?;
        let findings = reader.findings;
        Ok(Self { descriptors, descriptors_end, primary, joliet, tree, joliet_tree, findings })
    }

    /// Returns all descriptors before the terminator, in the order of their sectors.
    #[must_use]
    pub fn descriptors(&self) -> &[VolumeDescriptor] {
        &self.descriptors
    }

    /// Returns the first sector after the terminator.
    pub(crate) fn descriptors_end(&self) -> Sector {
        self.descriptors_end
    }

    /// Returns the primary volume descriptor.
    #[must_use]
    pub fn primary(&self) -> &TreeDescriptor {
        &self.primary
    }

    /// Returns the supplementary descriptor of the Joliet tree, or `None` if the volume has no Joliet tree.
    #[must_use]
    pub fn joliet(&self) -> Option<&TreeDescriptor> {
        self.joliet.as_ref()
    }

    /// Returns the volume identifier.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.primary.volume_id
    }

    /// Returns the primary directory tree.
    #[must_use]
    pub fn tree(&self) -> &DirectoryTree {
        &self.tree
    }

    /// Returns the Joliet directory tree, or `None` if the volume has none.
    #[must_use]
    pub fn joliet_tree(&self) -> Option<&DirectoryTree> {
        self.joliet_tree.as_ref()
    }

    /// Returns the directory trees with their descriptors: the primary one, then the Joliet one.
    pub(crate) fn trees(&self) -> impl Iterator<Item = (&TreeDescriptor, &DirectoryTree)> {
        std::iter::once((&self.primary, &self.tree)).chain(self.joliet.iter().zip(&self.joliet_tree))
    }

    /// Returns the irregularities that do not prevent the use of the volume.
    #[must_use]
    pub fn findings(&self) -> &[VolumeFinding] {
        &self.findings
    }

    /// Returns the file at a path of Rock Ridge or ISO 9660 names, or `None` if the path is not a file.
    #[must_use]
    pub fn file(&self, path: &str) -> Option<&TreeEntry> {
        self.tree.find(path).filter(|entry| entry.kind == EntryKind::File)
    }

    /// Returns the files of each extent, in the order of the image. Hard links share an extent. Empty files are not
    /// included.
    pub(crate) fn files_by_extent(&self) -> BTreeMap<Extent, Vec<EntryId>> {
        let mut files: BTreeMap<Extent, Vec<EntryId>> = BTreeMap::new();
        for (id, file) in self.tree.files().filter(|(_, file)| !file.extent.is_empty()) {
            files.entry(file.extent).or_default().push(id);
        }
        files
    }
}
