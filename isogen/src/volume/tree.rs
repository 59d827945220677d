//! The directory trees of a volume, as in-memory tables.

use std::collections::{BTreeMap, BTreeSet};

use super::descriptor::TreeDescriptor;
use super::finding::VolumeReader;
use super::record::{DirectoryRecord, decode_iso_name, decode_joliet_name, is_self_or_parent};
use super::rockridge;
use crate::checked_fields::slice_at;
use crate::error::{OrInternal, Result};
use crate::extent::{Extent, Sector};
use crate::source::Source;

const SECTOR_LEN: usize = 2048;
/// Maximum number of entries of a tree. CoreOS images have about thirty, and ppc64le images a few hundred.
const MAX_ENTRIES: usize = 65_536;
/// Maximum length of a directory. A directory of this length has about 8,000 records.
pub(crate) const MAX_DIRECTORY_LEN: u32 = 1 << 20;
/// Maximum total length of all directories of a tree. A malicious tree could use the same sectors many times. Published
/// trees have at most a few hundred KiB.
const MAX_TREE_LEN: u64 = 16 << 20;
/// Maximum depth of directories. ISO 9660 allows eight levels, and Rock Ridge images sometimes have more.
const MAX_DEPTH: usize = 32;

/// The index of an entry in its tree. The root directory has index 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EntryId(usize);

impl EntryId {
    /// The root directory.
    pub const ROOT: Self = Self(0);
}

/// The kind of a directory tree entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum EntryKind {
    /// A regular file.
    File,
    /// A directory, which contains other entries.
    Directory,
    /// A symbolic link or another special file of Rock Ridge, which has no data.
    Special,
}

/// An entry of a directory tree.
#[derive(Debug, Clone)]
pub struct TreeEntry {
    /// The parent directory. The parent of the root directory is the root directory.
    pub parent: EntryId,
    /// Kind of the entry.
    pub kind: EntryKind,
    /// The Rock Ridge name, or the value of `iso_name` if the entry has no Rock Ridge name. Empty for the root
    /// directory.
    pub name: String,
    /// The decoded ISO 9660 name, or the Joliet name in a Joliet tree.
    pub iso_name: String,
    /// Position of the data in the image.
    pub extent: Extent,
    /// The directory record of the entry.
    pub record: DirectoryRecord,
    /// File type and permissions from Rock Ridge; `None` without Rock Ridge.
    pub mode: Option<u32>,
    /// The contents if the entry is a directory; otherwise `None`.
    pub(crate) directory: Option<DirectoryContents>,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct DirectoryContents {
    /// The entries, in the order of their records.
    pub(crate) children: Vec<EntryId>,
    /// The records of the directory itself and of its parent.
    pub(crate) self_and_parent: Vec<DirectoryRecord>,
}

/// All files and directories of one directory tree.
#[derive(Debug)]
pub struct DirectoryTree {
    entries: Vec<TreeEntry>,
    by_name: BTreeMap<(EntryId, String), EntryId>,
    continuations: BTreeSet<Extent>,
}

impl DirectoryTree {
    pub(super) fn read(volume: &mut VolumeReader<'_>, descriptor: &TreeDescriptor) -> Result<Self> {
        let root = TreeEntry {
            parent: EntryId::ROOT,
            kind: EntryKind::Directory,
            name: String::new(),
            iso_name: String::new(),
            extent: descriptor.root.extent(),
            record: descriptor.root.clone(),
            mode: None,
            directory: Some(DirectoryContents::default()),
        };
        let tree = Self { entries: vec![root], by_name: BTreeMap::new(), continuations: BTreeSet::new() };
        let is_joliet = descriptor.joliet.is_some();
        let visited = BTreeSet::new();
        let source = volume.source;
        let mut reader = TreeReader { source, volume, is_joliet, skip_len: 0, tree, visited, len: 0 };
        let mut pending = vec![(EntryId::ROOT, 0)];
        while let Some((id, depth)) = pending.pop() {
            let directories = reader.read_directory(id, depth)?;
            pending.extend(directories.into_iter().rev().map(|id| (id, depth + 1)));
        }
        Ok(reader.tree)
    }

    /// Returns the entry with the given id, or `None` if the tree has no such entry.
    #[must_use]
    pub fn entry(&self, id: EntryId) -> Option<&TreeEntry> {
        self.entries.get(id.0)
    }

    /// Returns the extents outside of directories that contain continuations of system use areas.
    pub(crate) fn continuations(&self) -> impl Iterator<Item = Extent> {
        self.continuations.iter().copied()
    }

    /// Returns all entries with their ids. Parents come before their children.
    pub fn entries(&self) -> impl Iterator<Item = (EntryId, &TreeEntry)> {
        self.entries.iter().enumerate().map(|(index, entry)| (EntryId(index), entry))
    }

    /// Returns all regular files with their ids.
    pub(crate) fn files(&self) -> impl Iterator<Item = (EntryId, &TreeEntry)> {
        self.entries().filter(|(_, entry)| entry.kind == EntryKind::File)
    }

    /// Returns all directories with their ids. Parents come before their children.
    pub(crate) fn directories(&self) -> impl Iterator<Item = (EntryId, &TreeEntry)> {
        self.entries().filter(|(_, entry)| entry.kind == EntryKind::Directory)
    }

    /// Returns the entries of a directory, in the order of their records.
    pub fn children(&self, id: EntryId) -> impl Iterator<Item = (EntryId, &TreeEntry)> {
        let children = self.entry(id).and_then(|entry| entry.directory.as_ref());
        let children = children.map_or(&[][..], |directory| &directory.children);
        children.iter().filter_map(|id| Some((*id, self.entry(*id)?)))
    }

    /// Returns the entry at a path. Empty and `.` components are ignored. `..` leads to the parent, but never above the
    /// root. A component is first compared with the names of the entries. If no name matches, its upper-case form and
    /// then its 8.3 form are compared with the ISO 9660 names.
    #[must_use]
    pub fn find(&self, path: &str) -> Option<&TreeEntry> {
        self.find_id(path).and_then(|id| self.entry(id))
    }

    /// Returns the id of the entry at a path, like [`find`](Self::find).
    pub(crate) fn find_id(&self, path: &str) -> Option<EntryId> {
        path.split('/').try_fold(EntryId::ROOT, |at, component| match component {
            "" | "." => Some(at),
            ".." => self.entry(at).map(|entry| entry.parent),
            name => self.child(at, name),
        })
    }

    fn child(&self, directory: EntryId, name: &str) -> Option<EntryId> {
        let by_name = |name: String| self.by_name.get(&(directory, name)).copied();
        by_name(name.to_owned()).or_else(|| self.child_by_iso_name(directory, name))
    }

    fn child_by_iso_name(&self, directory: EntryId, name: &str) -> Option<EntryId> {
        let upper = name.to_ascii_uppercase();
        let short = short_name(&upper);
        let find = |name: &str| self.children(directory).find(|(_, entry)| entry.iso_name == name);
        find(&upper).or_else(|| find(&short)).map(|(id, _)| id)
    }

    /// Returns the path of an entry, without a leading slash.
    #[must_use]
    pub fn path(&self, id: EntryId) -> String {
        self.join_names(id, |entry| &entry.name)
    }

    /// Returns the path of an entry in ISO 9660 names, without a leading slash.
    #[must_use]
    pub fn iso_path(&self, id: EntryId) -> String {
        self.join_names(id, |entry| &entry.iso_name)
    }

    fn join_names<'a>(&'a self, mut id: EntryId, name: impl Fn(&'a TreeEntry) -> &'a str) -> String {
        let mut names = Vec::new();
        while id != EntryId::ROOT {
            let Some(entry) = self.entry(id) else { break };
            names.push(name(entry));
            id = entry.parent;
        }
        names.reverse();
        names.join("/")
    }
}

/// Returns the 8.3 form of an upper-case name: at most eight characters, a dot, and at most three characters.
fn short_name(name: &str) -> String {
    let cut = |part: &str, len| part.chars().take(len).collect::<String>();
    match name.rsplit_once('.') {
        Some((stem, extension)) => format!("{}.{}", cut(stem, 8), cut(extension, 3)),
        None => cut(name, 8),
    }
}

/// The state of reading a tree.
struct TreeReader<'a, 'b> {
    source: &'b Source,
    volume: &'a mut VolumeReader<'b>,
    is_joliet: bool,
    /// Number of bytes to skip in each system use area.
    skip_len: usize,
    tree: DirectoryTree,
    visited: BTreeSet<Sector>,
    /// Total length of the directories read so far.
    len: u64,
}

impl TreeReader<'_, '_> {
    /// Reads the records of a directory. Returns its subdirectories.
    fn read_directory(&mut self, id: EntryId, depth: usize) -> Result<Vec<EntryId>> {
        let entry = self.tree.entry(id).or_internal("directory without an entry", 0)?;
        let extent = self.check_directory(&entry.record.clone(), depth)?;
        let bytes = self.source.read_extent(extent)?;
        let mut directories = Vec::new();
        for (sector, records) in (0_u64..).zip(bytes.chunks(SECTOR_LEN)) {
            let mut rest = records;
            // A length of zero means that the rest of the sector is empty, because no record crosses a sector boundary.
            while rest.first().is_some_and(|len| *len != 0) {
                let position =
                    extent.offset() + sector * SECTOR_LEN as u64 + (records.len() - rest.len()) as u64;
                let record = DirectoryRecord::parse(self.volume, rest, position)?;
                let (bytes, after) = rest
                    .split_at_checked(usize::from(record.len))
                    .or_internal("directory record outside of its sector", position)?;
                directories.extend(self.add_record(id, record, bytes)?);
                rest = after;
            }
        }
        Ok(directories)
    }

    fn check_directory(&mut self, record: &DirectoryRecord, depth: usize) -> Result<Extent> {
        let malformed = |expected: String, actual: String| {
            Err(self.source.malformed(record.position, "directory", expected, actual))
        };
        if depth > MAX_DEPTH {
            return malformed(format!("at most {MAX_DEPTH} levels"), "a deeper one".into());
        }
        if record.data_len > MAX_DIRECTORY_LEN {
            return malformed(format!("at most {MAX_DIRECTORY_LEN} bytes"), record.data_len.to_string());
        }
        if record.data_len > 0 && !self.visited.insert(record.sector) {
            let actual = format!("sector {}, which another directory uses", record.sector);
            return malformed("its own sector".into(), actual);
        }
        self.len += u64::from(record.data_len);
        if self.len > MAX_TREE_LEN {
            return malformed(format!("at most {MAX_TREE_LEN} bytes of directories"), "more".into());
        }
        Ok(record.extent())
    }

    /// Adds the entry of a record. Returns the id of the entry if it is a directory.
    fn add_record(
        &mut self,
        parent: EntryId,
        record: DirectoryRecord,
        bytes: &[u8],
    ) -> Result<Option<EntryId>> {
        let area = slice_at(bytes, record.system_use.start, record.system_use.len())?;
        if is_self_or_parent(&record.name) {
            self.add_self_or_parent(parent, record, area)?;
            return Ok(None);
        }
        if self.tree.entries.len() >= MAX_ENTRIES {
            let actual = "more";
            return Err(self.source.malformed(record.position, "entries of the tree", MAX_ENTRIES, actual));
        }
        // An area shorter than the skipped bytes has no entries. A Joliet tree has no areas.
        let system_use = match area.get(self.skip_len..).filter(|_| !self.is_joliet) {
            None => rockridge::SystemUse::default(),
            Some(area) => rockridge::read(self.source, area, record.system_use_at() + self.skip_len as u64)?,
        };
        self.tree.continuations.extend(&system_use.continuations);
        let iso_name =
            if self.is_joliet { decode_joliet_name(&record.name) } else { decode_iso_name(&record.name) };
        let name = match system_use.name {
            Some(name) => String::from_utf8_lossy(&name).into_owned(),
            None => iso_name.clone(),
        };
        let kind = entry_kind(&record, system_use.mode);
        let id = EntryId(self.tree.entries.len());
        self.tree.by_name.entry((parent, name.clone())).or_insert(id);
        self.tree.entries.push(TreeEntry {
            parent,
            kind,
            name,
            iso_name,
            extent: record.extent(),
            record,
            mode: system_use.mode,
            directory: (kind == EntryKind::Directory).then(DirectoryContents::default),
        });
        self.directory_mut(parent)?.children.push(id);
        Ok((kind == EntryKind::Directory).then_some(id))
    }

    fn add_self_or_parent(&mut self, parent: EntryId, record: DirectoryRecord, area: &[u8]) -> Result<()> {
        let is_first = self.directory_mut(parent)?.self_and_parent.is_empty();
        if parent == EntryId::ROOT && is_first && !self.is_joliet {
            let system_use = rockridge::read(self.source, area, record.system_use_at())?;
            self.skip_len = system_use.skip_len.map_or(0, usize::from);
            self.tree.continuations.extend(system_use.continuations);
        }
        self.directory_mut(parent)?.self_and_parent.push(record);
        Ok(())
    }

    fn directory_mut(&mut self, id: EntryId) -> Result<&mut DirectoryContents> {
        let entry = self.tree.entries.get_mut(id.0);
        entry.and_then(|entry| entry.directory.as_mut()).or_internal("directory without an entry", 0)
    }
}

fn entry_kind(record: &DirectoryRecord, mode: Option<u32>) -> EntryKind {
    const TYPE_MASK: u32 = 0o170_000;
    const REGULAR: u32 = 0o100_000;
    match mode.map(|mode| mode & TYPE_MASK) {
        _ if record.is_directory() => EntryKind::Directory,
        None | Some(REGULAR | 0) => EntryKind::File,
        Some(_) => EntryKind::Special,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_name_is_cut_to_8_3() {
        assert_eq!(short_name("FEATURES.JSON"), "FEATURES.JSO");
        assert_eq!(short_name("GENERICDVD.PRM"), "GENERICD.PRM");
        assert_eq!(short_name("VMLINUZ"), "VMLINUZ");
    }
}
