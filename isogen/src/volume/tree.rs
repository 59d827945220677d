//! The directory trees of a volume, as tables.

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
/// Most entries of a tree. CoreOS images have about thirty, those for ppc64le a few hundred.
const MAX_ENTRIES: usize = 65_536;
/// Longest directory that is read. It has about 8,000 records.
pub(crate) const MAX_DIRECTORY_LEN: u32 = 1 << 20;
/// Most bytes of all directories of a tree. A malicious tree could use the same sectors many times. Published trees
/// have at most a few hundred KiB.
const MAX_TREE_LEN: u64 = 16 << 20;
/// Deepest nesting. ISO 9660 allows eight levels, and Rock Ridge images sometimes have more.
const MAX_DEPTH: usize = 32;

/// The index of an entry in its tree. The root directory is the first entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EntryId(usize);

impl EntryId {
    /// The root directory.
    pub const ROOT: Self = Self(0);
}

/// The kind of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum EntryKind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// A symbolic link or another special file of Rock Ridge, which has no data.
    Special,
}

/// A file or directory.
#[derive(Debug, Clone)]
pub struct TreeEntry {
    /// The directory that contains it. The root directory contains itself.
    pub parent: EntryId,
    /// Kind of the entry.
    pub kind: EntryKind,
    /// The Rock Ridge name, or the same as `iso_name` if the entry has no Rock Ridge name. Empty for the root
    /// directory.
    pub name: String,
    /// The decoded ISO 9660 name. In a Joliet tree, the Joliet name.
    pub iso_name: String,
    /// Position of the data.
    pub extent: Extent,
    /// The directory record.
    pub record: DirectoryRecord,
    /// File type and permissions, if Rock Ridge states them.
    pub mode: Option<u32>,
    /// The contents of a directory; `None` for other entries.
    pub(crate) directory: Option<DirectoryContents>,
}

/// The contents of a directory.
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

    /// Returns the entry with an id.
    #[must_use]
    pub fn entry(&self, id: EntryId) -> Option<&TreeEntry> {
        self.entries.get(id.0)
    }

    /// Returns the extents outside of directories where Rock Ridge entries continue.
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

    /// Returns the entry at a path. Empty and `.` components are ignored. `..` goes to the parent, but never above the
    /// root. A component is compared with the entries' names first, then in upper case, also cut to 8.3, with their ISO
    /// 9660 names.
    #[must_use]
    pub fn find(&self, path: &str) -> Option<&TreeEntry> {
        self.find_id(path).and_then(|id| self.entry(id))
    }

    /// Returns the id of the entry at a path, as [`find`](Self::find).
    pub(crate) fn find_id(&self, path: &str) -> Option<EntryId> {
        path.split('/').try_fold(EntryId::ROOT, |at, component| match component {
            "" | "." => Some(at),
            ".." => self.entry(at).map(|entry| entry.parent),
            name => self.child(at, name),
        })
    }

    fn child(&self, directory: EntryId, name: &str) -> Option<EntryId> {
        let named = |name: String| self.by_name.get(&(directory, name)).copied();
        named(name.to_owned()).or_else(|| self.child_by_iso_name(directory, name))
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

    /// Returns the path of an entry with ISO 9660 names.
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

/// Returns the 8.3 form of an upper-case name: at most eight characters, a dot, at most three.
fn short_name(name: &str) -> String {
    let cut = |part: &str, len| part.chars().take(len).collect::<String>();
    match name.rsplit_once('.') {
        Some((stem, extension)) => format!("{}.{}", cut(stem, 8), cut(extension, 3)),
        None => cut(name, 8),
    }
}

/// A tree that is being read.
struct TreeReader<'a, 'b> {
    source: &'b Source,
    volume: &'a mut VolumeReader<'b>,
    is_joliet: bool,
    /// Number of bytes to skip in each system use area.
    skip_len: usize,
    tree: DirectoryTree,
    visited: BTreeSet<Sector>,
    /// Total length of the directories that were read.
    len: u64,
}

impl TreeReader<'_, '_> {
    /// Reads the records of a directory and returns the directories among them.
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
        let malformed = |expected: String, found: String| {
            Err(self.source.malformed(record.position, "directory", expected, found))
        };
        if depth > MAX_DEPTH {
            return malformed(format!("at most {MAX_DEPTH} levels"), "a deeper one".into());
        }
        if record.data_len > MAX_DIRECTORY_LEN {
            return malformed(format!("at most {MAX_DIRECTORY_LEN} bytes"), record.data_len.to_string());
        }
        if record.data_len > 0 && !self.visited.insert(record.sector) {
            let found = format!("sector {}, which another directory uses", record.sector);
            return malformed("its own sector".into(), found);
        }
        self.len += u64::from(record.data_len);
        if self.len > MAX_TREE_LEN {
            return malformed(format!("at most {MAX_TREE_LEN} bytes of directories"), "more".into());
        }
        Ok(record.extent())
    }

    /// Adds the entry of a record. Returns its id if it is a directory.
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
            let found = "more";
            return Err(self.source.malformed(record.position, "entries of the tree", MAX_ENTRIES, found));
        }
        // An area that is shorter than the skipped bytes has no entries. A Joliet tree has no areas.
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
