//! Rules of disks, partitions, arrays and file systems.

use std::collections::HashSet;

use super::{Checker, Node, path};
use crate::place::Place;
use crate::spec::Spec;

/// Longest label of a partition, in bytes.
const MAX_PARTITION_LABEL: usize = 36;
/// The lengths of the parts of a GUID.
const GUID_PARTS: [usize; 5] = [8, 4, 4, 4, 12];

impl Checker {
    /// A path of a device that has to be there.
    pub(super) fn device(&mut self, node: &Node) {
        if let Some(problem) = path::problem(node.text("device").unwrap_or_default()) {
            self.error(node.at("device"), format!("device: {problem}"));
        }
    }

    pub(super) fn disk(&mut self, node: &Node) {
        self.device(node);
        let partitions: Vec<Node> = node.nodes("partitions").collect();
        self.partition_numbers(node, &partitions);
        self.partition_labels(&partitions);
        self.partition_places(&partitions);
    }

    /// A partition without a number takes the next free one, which one that shall not exist makes ambiguous.
    fn partition_numbers(&mut self, disk: &Node, partitions: &[Node]) {
        let is_removed = partitions.iter().any(|partition| partition.is("shouldExist", false));
        if is_removed && partitions.iter().any(|partition| !partition.has("number")) {
            self.error(
                disk.at("partitions"),
                "where a partition shall not exist, all partitions of the disk need a number",
            );
        }
    }

    fn partition_labels(&mut self, partitions: &[Node]) {
        let mut labels = HashSet::new();
        for partition in partitions {
            let Some(label) = partition.filled("label") else { continue };
            if !labels.insert(label) {
                self.error(partition.place, format!("the label {label:?} is there already"));
            }
        }
    }

    /// Partitions that say where they start and how long they are must not overlap.
    fn partition_places(&mut self, partitions: &[Node]) {
        let mut places: Vec<(i64, i64, Place)> = partitions.iter().filter_map(extent).collect();
        places.sort_by_key(|(start, end, _)| (*start, *end));
        let mut reached: Option<i64> = None;
        for (start, end, place) in places {
            if reached.is_some_and(|reached| start <= reached) {
                self.error(place, "the partition overlaps another");
            }
            reached = reached.max(Some(end));
        }
    }

    pub(super) fn partition(&mut self, node: &Node) {
        let is_described = ["label", "startMiB", "sizeMiB"].iter().any(|field| node.has(field))
            || ["guid", "typeGuid"].iter().any(|field| node.filled(field).is_some());
        if node.is("shouldExist", false) && is_described {
            self.error(node.place, "a partition that shall not exist has nothing but a number");
        }
        if !node.has("number") && !node.has("label") {
            self.error(node.place, "a partition needs a number or a label");
        }
        if let Some(label) = node.text("label") {
            if label.len() > MAX_PARTITION_LABEL {
                self.error(node.at("label"), format!("a label has at most {MAX_PARTITION_LABEL} bytes"));
            }
            if label.contains(':') {
                self.error(node.at("label"), "a label must not have a colon");
            }
        }
        for field in ["guid", "typeGuid"] {
            if node.filled(field).is_some_and(|guid| !is_guid(guid)) {
                self.error(node.at(field), "a GUID has 8-4-4-4-12 hexadecimal digits");
            }
        }
    }

    pub(super) fn raid(&mut self, node: &Node) {
        let level = node.text("level").unwrap_or_default();
        match level {
            "linear" | "raid0" | "0" | "stripe" => {
                if node.integer("spares").is_some_and(|spares| spares != 0) {
                    self.error(node.at("level"), format!("an array of level {level} has no spares"));
                }
            }
            "raid1" | "1" | "mirror" | "raid4" | "4" | "raid5" | "5" | "raid6" | "6" | "raid10" | "10" => {}
            "" => self.error(node.at("level"), "an array needs a level"),
            other => self.error(node.at("level"), format!("the level {other:?} is not known")),
        }
        if !node.has("devices") {
            self.error(node.at("devices"), "an array needs devices");
        }
        for (pointer, device) in node.texts("devices") {
            if let Some(problem) = path::problem(device) {
                self.error(pointer, problem);
            }
        }
    }

    pub(super) fn filesystem(&mut self, node: &Node) {
        self.device(node);
        if let Some(problem) = node.filled("path").and_then(path::problem) {
            self.error(node.at("path"), problem);
        }
        let Some(format) = node.filled("format") else { return self.unformatted(node) };
        let longest_label = match format {
            "ext4" => 16,
            "btrfs" => 256,
            "xfs" => 12,
            "swap" => 15,
            "vfat" => 11,
            "none" if self.spec >= Spec::V3_3 => return,
            other => {
                let message = format!("the format {other:?} is not known to spec {}", self.spec);
                return self.error(node.at("format"), message);
            }
        };
        if node.text("label").is_some_and(|label| label.len() > longest_label) {
            self.error(node.at("label"), format!("a label of {format} has at most {longest_label} bytes"));
        }
    }

    /// Whatever asks for a file system to be made needs a format.
    fn unformatted(&mut self, node: &Node) {
        let fields = ["path", "label", "uuid", "options", "mountOptions"];
        let asks = fields.iter().any(|field| node.has(field) && node.text(field) != Some(""))
            || node.is("wipeFilesystem", true);
        if asks {
            self.error(node.at("format"), "a format is required");
        }
        if node.filled("label").is_some() {
            self.error(node.at("label"), "a label needs a format");
        }
    }
}

fn is_guid(text: &str) -> bool {
    let parts: Vec<&str> = text.split('-').collect();
    let lengths = parts.iter().map(|part| part.len());
    lengths.eq(GUID_PARTS) && parts.iter().all(|part| part.bytes().all(|byte| byte.is_ascii_hexdigit()))
}
/// The first and last MiB of a partition that says where it starts and how long it is, and its place.
fn extent<'a>(partition: &Node<'a>) -> Option<(i64, i64, Place<'a>)> {
    let start = partition.integer("startMiB").filter(|start| *start != 0)?;
    let size = partition.integer("sizeMiB")?;
    Some((start, start.saturating_add(size.max(1)).saturating_sub(1), partition.place))
}
