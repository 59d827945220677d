//! A directory tree of a volume, as a table.

use std::collections::{BTreeMap, BTreeSet};

use super::descriptor::VolumeDescriptor;
use super::finding::Finding;
use super::record::{Record, decode_iso_name, decode_joliet_name};
use super::rockridge;
use crate::error::Result;
use crate::extent::{Extent, SECTOR_SIZE, Sector};
use crate::source::Source;

/// Most entries of a tree. CoreOS images have about thirty, those of ppc64le a few hundred.
const MAX_ENTRIES: usize = 65_536;
/// Most bytes of one directory, enough for some 8,000 records.
pub(crate) const MAX_DIRECTORY_LEN: u32 = 1 << 20;
/// Most bytes of all directories of a tree together: a hostile one may claim the same sectors again and again. Real
/// trees have some hundred KiB.
const MAX_TREE_LEN: u64 = 16 << 20;
/// Deepest nesting. ISO 9660 allows eight levels; Rock Ridge images sometimes go beyond.
const MAX_DEPTH: usize = 32;

/// The place of an entry in its tree's table. The root directory is the first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EntryId(usize);

impl EntryId {
    /// The root directory.
    pub const ROOT: Self = Self(0);
}

/// What an entry is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Kind {
    /// A file.
    File,
    /// A directory.
    Directory,
    /// A symbolic link or another special file of Rock Ridge, without data.
    Special,
}

/// One file or directory.
#[derive(Debug, Clone)]
pub struct Entry {
    /// The directory that holds it; the root holds itself.
    pub parent: EntryId,
    /// What it is.
    pub kind: Kind,
    /// The name that people see: Rock Ridge's, else Joliet's, else the decoded ISO name. The root's is empty.
    pub name: String,
    /// The decoded ISO 9660 name (of a Joliet tree, its name).
    pub iso_name: String,
    /// Where its data is.
    pub extent: Extent,
    /// Its directory record.
    pub record: Record,
    /// File type and permissions, where Rock Ridge tells them.
    pub mode: Option<u32>,
    /// Of a directory: what is in it, and the records of itself and its parent.
    pub directory: Option<Directory>,
}

/// What a directory holds.
#[derive(Debug, Clone, Default)]
pub struct Directory {
    /// Its entries, in the order of their records.
    pub children: Vec<EntryId>,
    /// The records of the directory itself and of its parent.
    pub dots: Vec<Record>,
}

/// All files and directories of one tree.
#[derive(Debug)]
pub struct Tree {
    entries: Vec<Entry>,
    by_name: BTreeMap<(EntryId, String), EntryId>,
    continuations: BTreeSet<Extent>,
}

impl Tree {
    pub(super) fn read(
        source: &Source,
        descriptor: &VolumeDescriptor,
        findings: &mut Vec<Finding>,
    ) -> Result<Self> {
        Walk::new(source, descriptor, findings).run()
    }

    /// The entry at a place of the table.
    #[must_use]
    pub fn entry(&self, id: EntryId) -> Option<&Entry> {
        self.entries.get(id.0)
    }

    /// The bytes outside of directories in which Rock Ridge entries go on.
    pub(crate) fn continuations(&self) -> impl Iterator<Item = Extent> {
        self.continuations.iter().copied()
    }

    /// All entries with their places, parents before children.
    pub fn entries(&self) -> impl Iterator<Item = (EntryId, &Entry)> {
        self.entries.iter().enumerate().map(|(index, entry)| (EntryId(index), entry))
    }

    /// The entries of a directory, in the order of their records.
    pub fn children(&self, id: EntryId) -> impl Iterator<Item = (EntryId, &Entry)> {
        let children = self.entry(id).and_then(|entry| entry.directory.as_ref());
        let children = children.map_or(&[][..], |directory| &directory.children);
        children.iter().filter_map(|id| Some((*id, self.entry(*id)?)))
    }

    /// The entry at a path. Empty and `.` components are passed over, `..` goes up, never above the root. A component
    /// is first compared with the names that people see, then, in upper case and cut to 8.3, with the ISO names.
    #[must_use]
    pub fn find(&self, path: &str) -> Option<&Entry> {
        self.find_id(path).and_then(|id| self.entry(id))
    }

    /// As [`find`](Self::find), giving the place in the table.
    #[must_use]
    pub fn find_id(&self, path: &str) -> Option<EntryId> {
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

    /// The path of an entry, without a leading slash.
    #[must_use]
    pub fn path(&self, id: EntryId) -> String {
        self.join(id, |entry| &entry.name)
    }

    /// The path of an entry in ISO 9660 names.
    #[must_use]
    pub fn iso_path(&self, id: EntryId) -> String {
        self.join(id, |entry| &entry.iso_name)
    }

    fn join<'a>(&'a self, mut id: EntryId, name: impl Fn(&'a Entry) -> &'a str) -> String {
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

/// The 8.3 form of an upper-case name: up to eight characters, a dot, up to three.
fn short_name(name: &str) -> String {
    let cut = |part: &str, len| part.chars().take(len).collect::<String>();
    match name.rsplit_once('.') {
        Some((stem, extension)) => format!("{}.{}", cut(stem, 8), cut(extension, 3)),
        None => cut(name, 8),
    }
}

/// A tree in the making.
struct Walk<'a> {
    source: &'a Source,
    findings: &'a mut Vec<Finding>,
    joliet: bool,
    /// Bytes to skip in each system use area.
    skip: usize,
    tree: Tree,
    visited: BTreeSet<Sector>,
    /// Bytes of the directories so far.
    len: u64,
}

impl<'a> Walk<'a> {
    fn new(source: &'a Source, descriptor: &VolumeDescriptor, findings: &'a mut Vec<Finding>) -> Self {
        let root = Entry {
            parent: EntryId::ROOT,
            kind: Kind::Directory,
            name: String::new(),
            iso_name: String::new(),
            extent: descriptor.root.extent(),
            record: descriptor.root.clone(),
            mode: None,
            directory: Some(Directory::default()),
        };
        Self {
            source,
            findings,
            joliet: descriptor.joliet.is_some(),
            skip: 0,
            tree: Tree { entries: vec![root], by_name: BTreeMap::new(), continuations: BTreeSet::new() },
            visited: BTreeSet::new(),
            len: 0,
        }
    }

    fn run(mut self) -> Result<Tree> {
        let mut pending = vec![(EntryId::ROOT, 0)];
        while let Some((id, depth)) = pending.pop() {
            let directories = self.read_directory(id, depth)?;
            pending.extend(directories.into_iter().rev().map(|id| (id, depth + 1)));
        }
        Ok(self.tree)
    }

    /// Reads the records of a directory and gives the directories among them.
    fn read_directory(&mut self, id: EntryId, depth: usize) -> Result<Vec<EntryId>> {
        let Some(entry) = self.tree.entry(id) else { return Ok(Vec::new()) };
        let extent = self.check_directory(&entry.record.clone(), depth)?;
        let bytes = self.source.read_extent(extent)?;
        let mut directories = Vec::new();
        let sector_size = usize::try_from(SECTOR_SIZE).unwrap_or(usize::MAX);
        for (sector, records) in bytes.chunks(sector_size).enumerate() {
            let mut offset = 0;
            // A record of length zero fills the rest of a sector, since no record crosses one.
            while records.get(offset).is_some_and(|len| *len != 0) {
                let rest = records.get(offset..).unwrap_or_default();
                let position = extent.offset() + (sector * sector_size + offset) as u64;
                let record = Record::parse(self.source, rest, position, self.findings)?;
                offset += usize::from(record.len);
                directories.extend(self.add(id, record, rest)?);
            }
        }
        Ok(directories)
    }

    fn check_directory(&mut self, record: &Record, depth: usize) -> Result<Extent> {
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
            return malformed(
                "a sector of its own".into(),
                format!("sector {}, which another directory has", record.sector),
            );
        }
        self.len += u64::from(record.data_len);
        if self.len > MAX_TREE_LEN {
            return malformed(format!("at most {MAX_TREE_LEN} bytes of directories"), "more".into());
        }
        Ok(record.extent())
    }

    /// Adds the entry of a record to the table; gives its place where it is a directory.
    fn add(&mut self, parent: EntryId, record: Record, bytes: &[u8]) -> Result<Option<EntryId>> {
        let area = bytes.get(record.system_use.clone()).unwrap_or_default();
        let area_at = record.position + record.system_use.start as u64;
        if record.is_self_or_parent() {
            self.add_dot(parent, record, area, area_at)?;
            return Ok(None);
        }
        if self.tree.entries.len() >= MAX_ENTRIES {
            let found = "more";
            return Err(self.source.malformed(record.position, "entries of the tree", MAX_ENTRIES, found));
        }
        let skipped = area.get(self.skip..).unwrap_or_default();
        let system_use = match self.joliet {
            true => rockridge::SystemUse::default(),
            false => rockridge::read(self.source, skipped, area_at + self.skip as u64)?,
        };
        self.tree.continuations.extend(&system_use.continuations);
        let iso_name =
            if self.joliet { decode_joliet_name(&record.name) } else { decode_iso_name(&record.name) };
        let name = match system_use.name {
            Some(name) => String::from_utf8_lossy(&name).into_owned(),
            None => iso_name.clone(),
        };
        let kind = kind(&record, system_use.mode);
        let id = EntryId(self.tree.entries.len());
        self.tree.by_name.entry((parent, name.clone())).or_insert(id);
        self.tree.entries.push(Entry {
            parent,
            kind,
            name,
            iso_name,
            extent: record.extent(),
            record,
            mode: system_use.mode,
            directory: (kind == Kind::Directory).then(Directory::default),
        });
        self.directory_mut(parent, |directory| directory.children.push(id));
        Ok((kind == Kind::Directory).then_some(id))
    }

    fn add_dot(&mut self, parent: EntryId, record: Record, area: &[u8], area_at: u64) -> Result<()> {
        let first = self.tree.entry(parent).and_then(|entry| entry.directory.as_ref());
        let is_first = first.is_some_and(|directory| directory.dots.is_empty());
        if parent == EntryId::ROOT && is_first && !self.joliet {
            let system_use = rockridge::read(self.source, area, area_at)?;
            self.skip = usize::from(system_use.skip.unwrap_or_default());
            self.tree.continuations.extend(system_use.continuations);
        }
        self.directory_mut(parent, |directory| directory.dots.push(record));
        Ok(())
    }

    fn directory_mut(&mut self, id: EntryId, change: impl FnOnce(&mut Directory)) {
        if let Some(directory) = self.tree.entries.get_mut(id.0).and_then(|entry| entry.directory.as_mut()) {
            change(directory);
        }
    }
}

fn kind(record: &Record, mode: Option<u32>) -> Kind {
    const TYPE_MASK: u32 = 0o170_000;
    const REGULAR: u32 = 0o100_000;
    match mode.map(|mode| mode & TYPE_MASK) {
        _ if record.is_directory() => Kind::Directory,
        None | Some(REGULAR | 0) => Kind::File,
        Some(_) => Kind::Special,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_names_are_cut_to_8_3() {
        assert_eq!(short_name("FEATURES.JSON"), "FEATURES.JSO");
        assert_eq!(short_name("GENERICDVD.PRM"), "GENERICD.PRM");
        assert_eq!(short_name("VMLINUZ"), "VMLINUZ");
    }
}
