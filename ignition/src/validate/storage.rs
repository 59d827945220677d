//! Rules for files, directories and links.

use std::collections::{HashMap, HashSet};

use super::{Checker, ConfigNode, path};
use crate::report::ConfigRule;
use crate::spec::Spec;
use crate::translate::SPECIAL_BITS;

const MAX_MODE: i64 = 0o7777;

impl Checker {
    /// Applies the rules that concern entries of different lists.
    pub(super) fn check_storage(&mut self, node: &ConfigNode) {
        let paths = |list| node.nodes(list).filter_map(|it| it.text("path"));
        let links: HashSet<&str> = paths("links").collect();
        let directories: HashSet<&str> = paths("directories").collect();
        for entry in ["directories", "files", "links"].into_iter().flat_map(|list| node.nodes(list)) {
            let path = entry.text("path").unwrap_or_default();
            if let Some(link) = path::parent_directories(path).find(|parent| links.contains(parent)) {
                self.error(
                    entry.pointer,
                    ConfigRule::Conflict,
                    format!("the path {path:?} goes through the link {link:?}"),
                );
            }
        }
        for link in node.nodes("links").filter(|link| link.is_set_to("hard", true)) {
            let target =
                path::join(link.text("path").unwrap_or_default(), link.text("target").unwrap_or_default());
            if directories.contains(target.as_str()) {
                self.error(
                    link.pointer,
                    ConfigRule::Conflict,
                    format!("the hard link points to the directory {target:?}"),
                );
            }
        }
        self.check_partitioned_filesystems(node);
    }

    fn check_partitioned_filesystems(&mut self, node: &ConfigNode) {
        let divided = |disk: &ConfigNode| disk.has_field("partitions") || disk.is_set_to("wipeTable", true);
        let disks = node.nodes("disks").filter(divided);
        let disks: HashSet<&str> = disks.filter_map(|disk| disk.text("device")).collect();
        for filesystem in node.nodes("filesystems") {
            if filesystem.text("device").is_some_and(|device| disks.contains(device)) {
                self.warning(
                    filesystem.at("device"),
                    ConfigRule::Conflict,
                    "the file system covers a disk that gets partitions",
                );
            }
        }
    }

    fn check_path(&mut self, node: &ConfigNode) {
        if let Some(problem) = path::path_problem(node.text("path").unwrap_or_default()) {
            self.error(node.at("path"), ConfigRule::Path, problem);
        }
    }

    pub(super) fn check_owner(&mut self, node: &ConfigNode) {
        if node.has_field("id") && node.non_empty_text("name").is_some() {
            self.error(node.pointer, ConfigRule::Conflict, "an owner has either an id or a name");
        }
    }

    pub(super) fn check_file(&mut self, node: &ConfigNode) {
        self.check_path(node);
        self.check_mode(node);
        let has_source = node.child("contents").is_some_and(|contents| contents.has_field("source"));
        if node.is_set_to("overwrite", true) && !has_source {
            self.error(
                node.at("overwrite"),
                ConfigRule::MissingValue,
                "overwriting needs contents with a source",
            );
        }
    }

    pub(super) fn check_directory(&mut self, node: &ConfigNode) {
        self.check_path(node);
        self.check_mode(node);
    }

    fn check_mode(&mut self, node: &ConfigNode) {
        let Some(mode) = node.integer("mode") else { return };
        if !(0..=MAX_MODE).contains(&mode) {
            self.error(
                node.at("mode"),
                ConfigRule::Mode,
                format!("the mode {mode} is not within 0 and {MAX_MODE} (octal 7777)"),
            );
        }
        if self.spec < Spec::V3_6 && mode & SPECIAL_BITS != 0 {
            let spec = self.spec;
            let message = format!("spec {spec} ignores the special bits of the mode {mode} (octal {mode:o})");
            self.warning(node.at("mode"), ConfigRule::Mode, message);
        }
    }

    pub(super) fn check_link(&mut self, node: &ConfigNode) {
        self.check_path(node);
        // In older versions, an absent target is the same as an empty target and is not checked.
        if self.spec >= Spec::V3_3 && node.non_empty_text("target").is_none() {
            self.error(node.at("target"), ConfigRule::MissingValue, "a link needs a target");
        }
        if node.is_set_to("hard", true) {
            for owner in ["user", "group"].into_iter().filter_map(|field| node.child(field)) {
                self.warning(owner.pointer, ConfigRule::NoEffect, "a hard link has the owner of its target");
            }
        }
    }

    /// Rejects a unit and a file with the same path, because one would overwrite the other.
    pub(super) fn check_config(&mut self, node: &ConfigNode) {
        let (Some(storage), Some(systemd)) = (node.child("storage"), node.child("systemd")) else { return };
        let mut paths: HashMap<String, &str> = HashMap::new();
        for unit in systemd.nodes("units") {
            let name = unit.text("name").unwrap_or_default();
            if unit.non_empty_text("contents").is_some() {
                paths.insert(format!("/etc/systemd/system/{name}"), "unit");
            }
            for dropin in unit.nodes("dropins") {
                if let (Some(file), Some(_)) = (dropin.text("name"), dropin.non_empty_text("contents")) {
                    paths.insert(format!("/etc/systemd/system/{name}.d/{file}"), "drop-in");
                }
            }
        }
        for entry in ["directories", "files", "links"].into_iter().flat_map(|list| storage.nodes(list)) {
            let path = entry.text("path").unwrap_or_default();
            if let Some(what) = paths.get(path) {
                self.error(
                    entry.at("path"),
                    ConfigRule::Duplicate,
                    format!("the path {path:?} is already written by a {what} with contents"),
                );
            }
        }
    }
}
