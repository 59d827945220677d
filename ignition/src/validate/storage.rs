//! Rules of files, directories and links.

use std::collections::{HashMap, HashSet};

use super::{Checker, Node, path};
use crate::spec::Spec;
use crate::translate::SPECIAL_BITS;

/// The largest mode.
const MAX_MODE: i64 = 0o7777;

impl Checker {
    /// Rules between the entries of all lists.
    pub(super) fn storage(&mut self, node: &Node) {
        let paths = |list| node.nodes(list).filter_map(|it| it.text("path"));
        let links: HashSet<&str> = paths("links").collect();
        let directories: HashSet<&str> = paths("directories").collect();
        for entry in ["directories", "files", "links"].into_iter().flat_map(|list| node.nodes(list)) {
            let path = entry.text("path").unwrap_or_default();
            if let Some(link) = path::parents(path).find(|parent| links.contains(parent)) {
                self.error(entry.place, format!("the path {path:?} goes through the link {link:?}"));
            }
        }
        for link in node.nodes("links").filter(|link| link.is("hard", true)) {
            let target =
                path::join(link.text("path").unwrap_or_default(), link.text("target").unwrap_or_default());
            if directories.contains(target.as_str()) {
                self.error(link.place, format!("the hard link points to the directory {target:?}"));
            }
        }
        self.partitioned_filesystems(node);
    }

    fn partitioned_filesystems(&mut self, node: &Node) {
        let divided = |disk: &Node| disk.has("partitions") || disk.is("wipeTable", true);
        let disks = node.nodes("disks").filter(divided);
        let disks: HashSet<&str> = disks.filter_map(|disk| disk.text("device")).collect();
        for filesystem in node.nodes("filesystems") {
            if filesystem.text("device").is_some_and(|device| disks.contains(device)) {
                self.warning(filesystem.at("device"), "the file system covers a disk that gets partitions");
            }
        }
    }

    fn path(&mut self, node: &Node) {
        if let Some(problem) = path::problem(node.text("path").unwrap_or_default()) {
            self.error(node.at("path"), problem);
        }
    }

    pub(super) fn owner(&mut self, node: &Node) {
        if node.has("id") && node.filled("name").is_some() {
            self.error(node.place, "an owner has either an id or a name");
        }
    }

    pub(super) fn file(&mut self, node: &Node) {
        self.path(node);
        self.mode(node);
        let has_source = node.child("contents").is_some_and(|contents| contents.has("source"));
        if node.is("overwrite", true) && !has_source {
            self.error(node.at("overwrite"), "overwriting needs contents with a source");
        }
    }

    pub(super) fn directory(&mut self, node: &Node) {
        self.path(node);
        self.mode(node);
    }

    fn mode(&mut self, node: &Node) {
        let Some(mode) = node.integer("mode") else { return };
        if !(0..=MAX_MODE).contains(&mode) {
            self.error(
                node.at("mode"),
                format!("the mode {mode} is not within 0 and {MAX_MODE} (octal 7777)"),
            );
        }
        if self.spec < Spec::V3_6 && mode & SPECIAL_BITS != 0 {
            self.warning(
                node.at("mode"),
                format!("spec {} ignores the special bits of the mode {mode} (octal {mode:o})", self.spec),
            );
        }
    }

    pub(super) fn link(&mut self, node: &Node) {
        self.path(node);
        // Older versions read an absent target as an empty one and do not look at it.
        if self.spec >= Spec::V3_3 && node.filled("target").is_none() {
            self.error(node.at("target"), "a link needs a target");
        }
        if node.is("hard", true) {
            for owner in ["user", "group"].into_iter().filter_map(|field| node.child(field)) {
                self.warning(owner.place, "the owner of a hard link is that of its target");
            }
        }
    }

    /// A unit and a file of the same path would overwrite each other.
    pub(super) fn config(&mut self, node: &Node) {
        let (Some(storage), Some(systemd)) = (node.child("storage"), node.child("systemd")) else { return };
        let mut written: HashMap<String, &str> = HashMap::new();
        for unit in systemd.nodes("units") {
            let name = unit.text("name").unwrap_or_default();
            if unit.filled("contents").is_some() {
                written.insert(format!("/etc/systemd/system/{name}"), "unit");
            }
            for dropin in unit.nodes("dropins") {
                if let (Some(file), Some(_)) = (dropin.text("name"), dropin.filled("contents")) {
                    written.insert(format!("/etc/systemd/system/{name}.d/{file}"), "drop-in");
                }
            }
        }
        for entry in ["directories", "files", "links"].into_iter().flat_map(|list| storage.nodes(list)) {
            let path = entry.text("path").unwrap_or_default();
            if let Some(what) = written.get(path) {
                self.error(entry.at("path"), format!("the path {path:?} is that of a {what} with contents"));
            }
        }
    }
}
