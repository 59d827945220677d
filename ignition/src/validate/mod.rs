//! Checks configs against Ignition's own rules. Ignition accepts a valid config. With an invalid config, the machine
//! does not boot.
//!
//! The rules are the rules of the newest Ignition, applied to the spec version of the config. For example, Ignition
//! since 2.15 rejects a file below `/etc/systemd/system` that a unit also writes, and so does this module.
//!
//! The module downloads nothing. A config that merges other configs at boot may become invalid by the merge.

mod disk;
mod luks;
mod node;
mod path;
mod resource;
mod storage;
pub(crate) mod systemd;
pub(crate) mod unit;
pub(crate) mod url;

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::fmt;

pub(crate) use disk::is_guid;
pub(crate) use node::ConfigNode;

use crate::config::Config;
use crate::json_pointer::JsonPointer;
use crate::merge::entry_key;
use crate::report::{ConfigFinding, ConfigReport, ConfigRule, Severity};
use crate::schema::{CONFIG, EntryKey, FieldType, ObjectKind};
use crate::spec::Spec;

/// Checks a config against Ignition's rules. The findings have no line numbers until [`ConfigReport::locate`] adds
/// them.
///
/// # Examples
///
/// ```
/// use ignition::config::Config;
/// use ignition::validate::validate;
///
/// let text = br#"{"ignition": {"version": "3.3.0"}, "storage": {"files": [{"path": "etc/motd"}]}}"#;
/// let report = validate(&Config::parse(text)?.config);
/// assert_eq!(report.findings()[0].to_string(), "error: /storage/files/0/path: the path \"etc/motd\" is not absolute");
/// # Ok::<(), ignition::config::ConfigError>(())
/// ```
#[must_use]
pub fn validate(config: &Config) -> ConfigReport {
    let mut checker = Checker { spec: config.spec(), report: ConfigReport::default() };
    checker.check_tree(&ConfigNode::root(config.root(), &CONFIG));
    checker.report
}

/// A checker of one config, which collects the findings of the rules.
struct Checker {
    spec: Spec,
    report: ConfigReport,
}

impl Checker {
    fn error(&mut self, pointer: impl fmt::Display, rule: ConfigRule, message: impl Into<String>) {
        self.report.push(ConfigFinding::new(Severity::Error, rule, pointer.to_string(), message));
    }

    fn warning(&mut self, pointer: impl fmt::Display, rule: ConfigRule, message: impl Into<String>) {
        self.report.push(ConfigFinding::new(Severity::Warning, rule, pointer.to_string(), message));
    }

    /// Applies the rules to an object and to all objects inside it. The schema limits the depth.
    fn check_tree(&mut self, node: &ConfigNode) {
        self.check_object(node);
        self.check_duplicates(node);
        for child in node.children() {
            self.check_tree(&child);
        }
    }

    fn check_object(&mut self, node: &ConfigNode) {
        match node.schema.name {
            ObjectKind::Config => self.check_config(node),
            ObjectKind::IgnitionConfig => self.check_references(node, "merge"),
            ObjectKind::Tls => self.check_references(node, "certificateAuthorities"),
            ObjectKind::Proxy => self.check_proxy(node),
            ObjectKind::Resource => self.check_resource(node),
            ObjectKind::Header => self.check_header(node),
            ObjectKind::Storage => self.check_storage(node),
            ObjectKind::Disk => self.check_disk(node),
            ObjectKind::Partition => self.check_partition(node),
            ObjectKind::Raid => self.check_raid(node),
            ObjectKind::Filesystem => self.check_filesystem(node),
            ObjectKind::Owner => self.check_owner(node),
            ObjectKind::File => self.check_file(node),
            ObjectKind::Directory => self.check_directory(node),
            ObjectKind::Link => self.check_link(node),
            ObjectKind::Luks => self.check_luks(node),
            ObjectKind::Clevis => self.check_clevis(node),
            ObjectKind::Custom => self.check_custom(node),
            ObjectKind::Tang => self.check_tang(node),
            ObjectKind::Systemd => self.check_systemd(node),
            ObjectKind::Unit => self.check_unit(node),
            ObjectKind::Dropin => self.check_dropin(node),
            ObjectKind::Section | ObjectKind::Verification | ObjectKind::User | ObjectKind::Group => {}
        }
    }

    /// Finds list entries with the same key, in one list or in two lists that share their keys.
    fn check_duplicates(&mut self, node: &ConfigNode) {
        let mut keys: HashMap<&str, HashSet<Cow<str>>> = HashMap::new();
        for field in node.schema.fields {
            let FieldType::List(_, key) = field.kind else { continue };
            if matches!(key, EntryKey::None) {
                continue;
            }
            let keys = keys.entry(field.group.unwrap_or(field.name)).or_default();
            for (index, item) in node.values(field.name).iter().enumerate() {
                let key = entry_key(key, item);
                if keys.contains(&key) {
                    self.error(
                        JsonPointer::FieldEntry(&node.pointer, field.name, index),
                        ConfigRule::Duplicate,
                        format!("duplicate entry {key:?}"),
                    );
                } else {
                    keys.insert(key);
                }
            }
        }
    }
}
