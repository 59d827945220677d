//! Rules for disks, partitions, arrays and file systems.

use std::collections::HashSet;

use super::{Checker, ConfigNode, path};
use crate::json_pointer::JsonPointer;
use crate::report::ConfigRule;
use crate::spec::Spec;

/// Maximum length of a partition label in bytes.
const MAX_PARTITION_LABEL_LEN: usize = 36;
/// The number of digits in each part of a GUID.
const GUID_PART_LENS: [usize; 5] = [8, 4, 4, 4, 12];

impl Checker {
    /// Checks the path of a device. The path is mandatory.
    pub(super) fn check_device(&mut self, node: &ConfigNode) {
        if let Some(problem) = path::path_problem(node.text("device").unwrap_or_default()) {
            self.error(node.at("device"), ConfigRule::Path, format!("device: {problem}"));
        }
    }

    pub(super) fn check_disk(&mut self, node: &ConfigNode) {
        self.check_device(node);
        let partitions: Vec<ConfigNode> = node.nodes("partitions").collect();
        self.check_partition_numbers(node, &partitions);
        self.check_partition_labels(&partitions);
        self.check_partition_overlaps(&partitions);
    }

    /// Requires partition numbers if any partition has `shouldExist: false`. Otherwise a partition without a number
    /// gets the next free number, which would be ambiguous.
    fn check_partition_numbers(&mut self, disk: &ConfigNode, partitions: &[ConfigNode]) {
        let is_removed = partitions.iter().any(|partition| partition.is_set_to("shouldExist", false));
        if is_removed && partitions.iter().any(|partition| !partition.has_field("number")) {
            self.error(
                disk.at("partitions"),
                ConfigRule::MissingValue,
                "every partition needs a number if any has shouldExist=false",
            );
        }
    }

    fn check_partition_labels(&mut self, partitions: &[ConfigNode]) {
        let mut labels = HashSet::new();
        for partition in partitions {
            let Some(label) = partition.non_empty_text("label") else { continue };
            if !labels.insert(label) {
                self.error(partition.pointer, ConfigRule::Duplicate, format!("duplicate label {label:?}"));
            }
        }
    }

    /// Rejects overlapping partitions. Partitions without a known start and size are not checked.
    fn check_partition_overlaps(&mut self, partitions: &[ConfigNode]) {
        let mut places: Vec<(i64, i64, JsonPointer)> = partitions.iter().filter_map(mib_range).collect();
        places.sort_by_key(|(start, end, _)| (*start, *end));
        let mut reached: Option<i64> = None;
        for (start, end, pointer) in places {
            if reached.is_some_and(|reached| start <= reached) {
                self.error(pointer, ConfigRule::Conflict, "the partition overlaps another");
            }
            reached = reached.max(Some(end));
        }
    }

    pub(super) fn check_partition(&mut self, node: &ConfigNode) {
        let is_described = ["label", "startMiB", "sizeMiB"].iter().any(|field| node.has_field(field))
            || ["guid", "typeGuid"].iter().any(|field| node.non_empty_text(field).is_some());
        if node.is_set_to("shouldExist", false) && is_described {
            self.error(
                node.pointer,
                ConfigRule::Conflict,
                "a partition with shouldExist=false must have only a number",
            );
        }
        if !node.has_field("number") && !node.has_field("label") {
            self.error(node.pointer, ConfigRule::MissingValue, "a partition needs a number or a label");
        }
        if let Some(label) = node.text("label") {
            if label.len() > MAX_PARTITION_LABEL_LEN {
                self.error(
                    node.at("label"),
                    ConfigRule::InvalidValue,
                    format!("a label has at most {MAX_PARTITION_LABEL_LEN} bytes"),
                );
            }
            if label.contains(':') {
                self.error(node.at("label"), ConfigRule::InvalidValue, "a label must not have a colon");
            }
        }
        for field in ["guid", "typeGuid"] {
            if node.non_empty_text(field).is_some_and(|guid| !is_guid(guid)) {
                self.error(
                    node.at(field),
                    ConfigRule::InvalidValue,
                    "a GUID has 8-4-4-4-12 hexadecimal digits",
                );
            }
        }
    }

    pub(super) fn check_raid(&mut self, node: &ConfigNode) {
        let level = node.text("level").unwrap_or_default();
        match level {
            "linear" | "raid0" | "0" | "stripe" => {
                if node.integer("spares").is_some_and(|spares| spares != 0) {
                    self.error(
                        node.at("level"),
                        ConfigRule::Conflict,
                        format!("an array of level {level} has no spares"),
                    );
                }
            }
            "raid1" | "1" | "mirror" | "raid4" | "4" | "raid5" | "5" | "raid6" | "6" | "raid10" | "10" => {}
            "" => self.error(node.at("level"), ConfigRule::MissingValue, "a RAID array needs a level"),
            other => self.error(
                node.at("level"),
                ConfigRule::InvalidValue,
                format!("the level {other:?} is not known"),
            ),
        }
        if !node.has_field("devices") {
            self.error(node.at("devices"), ConfigRule::MissingValue, "a RAID array needs devices");
        }
        for (pointer, device) in node.texts("devices") {
            if let Some(problem) = path::path_problem(device) {
                self.error(pointer, ConfigRule::Path, problem);
            }
        }
    }

    pub(super) fn check_filesystem(&mut self, node: &ConfigNode) {
        self.check_device(node);
        if let Some(problem) = node.non_empty_text("path").and_then(path::path_problem) {
            self.error(node.at("path"), ConfigRule::Path, problem);
        }
        let Some(format) = node.non_empty_text("format") else { return self.check_unformatted(node) };
        let longest_label = match format {
            "ext4" => 16,
            "btrfs" => 256,
            "xfs" => 12,
            "swap" => 15,
            "vfat" => 11,
            "none" if self.spec >= Spec::V3_3 => return,
            other => {
                let message = format!("the format {other:?} is not known to spec {}", self.spec);
                return self.error(node.at("format"), ConfigRule::InvalidValue, message);
            }
        };
        if node.text("label").is_some_and(|label| label.len() > longest_label) {
            self.error(
                node.at("label"),
                ConfigRule::InvalidValue,
                format!("a label of {format} has at most {longest_label} bytes"),
            );
        }
    }

    /// Requires a format if another field needs a file system.
    fn check_unformatted(&mut self, node: &ConfigNode) {
        let fields = ["path", "label", "uuid", "options", "mountOptions"];
        let asks = fields.iter().any(|field| node.has_field(field) && node.text(field) != Some(""))
            || node.is_set_to("wipeFilesystem", true);
        if asks {
            self.error(node.at("format"), ConfigRule::MissingValue, "a format is required");
        }
        if node.non_empty_text("label").is_some() {
            self.error(node.at("label"), ConfigRule::MissingValue, "a label needs a format");
        }
    }
}

/// Returns `true` if a text is a GUID in the form 8-4-4-4-12.
pub(crate) fn is_guid(text: &str) -> bool {
    let is_hex = |part: &str| part.bytes().all(|byte| byte.is_ascii_hexdigit());
    text.split('-').map(str::len).eq(GUID_PART_LENS) && text.split('-').all(is_hex)
}
/// Returns the first and last MiB of a partition and its pointer, or `None` if the start or the size is not known.
fn mib_range<'a>(partition: &ConfigNode<'a>) -> Option<(i64, i64, JsonPointer<'a>)> {
    let start = partition.integer("startMiB").filter(|start| *start != 0)?;
    let size = partition.integer("sizeMiB")?;
    Some((start, start.saturating_add(size.max(1)).saturating_sub(1), partition.pointer))
}
