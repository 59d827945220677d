//! Ignition's own rules: what passes here boots, what fails here does not.
//!
//! The rules are those of the newest Ignition, applied as the config's own spec version has them. A file below
//! `/etc/systemd/system` that a unit writes as well, for one, is refused since Ignition 2.15, and so it is here.
//!
//! Nothing is fetched: a config that merges others at boot may still become a bad one there.

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

pub(crate) use node::Node;

use crate::document::Document;
use crate::merge::key_of;
use crate::place::Place;
use crate::report::{Finding, Report, Severity};
use crate::schema::{CONFIG, Key, Kind, Name};
use crate::spec::Spec;

/// Checks a config against Ignition's rules. The findings have no lines until [`Report::locate`] has seen the text.
///
/// # Examples
///
/// ```
/// use ignition::document::Document;
/// use ignition::validate::validate;
///
/// let text = br#"{"ignition": {"version": "3.3.0"}, "storage": {"files": [{"path": "etc/motd"}]}}"#;
/// let report = validate(&Document::parse(text)?.document);
/// assert_eq!(report.findings()[0].to_string(), "error: /storage/files/0/path: the path \"etc/motd\" is not absolute");
/// # Ok::<(), ignition::document::ReadError>(())
/// ```
#[must_use]
pub fn validate(document: &Document) -> Report {
    let mut checker = Checker { spec: document.spec(), report: Report::default() };
    checker.node(&Node::root(document.root(), &CONFIG));
    checker.report
}

/// Collects what the rules find.
struct Checker {
    spec: Spec,
    report: Report,
}

impl Checker {
    fn error(&mut self, place: impl fmt::Display, message: impl Into<String>) {
        self.report.push(Finding::new(Severity::Error, place.to_string(), message));
    }

    fn warning(&mut self, place: impl fmt::Display, message: impl Into<String>) {
        self.report.push(Finding::new(Severity::Warning, place.to_string(), message));
    }

    /// Applies the rules to an object and all below it. The schema bounds the depth.
    fn node(&mut self, node: &Node) {
        self.rules(node);
        self.duplicates(node);
        for child in node.children() {
            self.node(&child);
        }
    }

    fn rules(&mut self, node: &Node) {
        match node.schema.name {
            Name::Config => self.config(node),
            Name::IgnitionConfig => self.references(node, "merge"),
            Name::Tls => self.references(node, "certificateAuthorities"),
            Name::Proxy => self.proxy(node),
            Name::Resource => self.resource(node),
            Name::Header => self.header(node),
            Name::Storage => self.storage(node),
            Name::Disk => self.disk(node),
            Name::Partition => self.partition(node),
            Name::Raid => self.raid(node),
            Name::Filesystem => self.filesystem(node),
            Name::Owner => self.owner(node),
            Name::File => self.file(node),
            Name::Directory => self.directory(node),
            Name::Link => self.link(node),
            Name::Luks => self.luks(node),
            Name::Clevis => self.clevis(node),
            Name::Custom => self.custom(node),
            Name::Tang => self.tang(node),
            Name::Systemd => self.systemd(node),
            Name::Unit => self.unit(node),
            Name::Dropin => self.dropin(node),
            Name::Section | Name::Verification | Name::User | Name::Group => {}
        }
    }

    /// Finds entries of lists whose key is there already, in the same list or in one that shares its keys.
    fn duplicates(&mut self, node: &Node) {
        let mut seen: HashMap<&str, HashSet<Cow<str>>> = HashMap::new();
        for field in node.schema.fields {
            let Kind::List(_, key) = field.kind else { continue };
            if matches!(key, Key::None) {
                continue;
            }
            let seen = seen.entry(field.group.unwrap_or(field.name)).or_default();
            for (index, item) in node.values(field.name).iter().enumerate() {
                let key = key_of(key, item);
                if seen.contains(&key) {
                    self.error(
                        Place::FieldEntry(&node.place, field.name, index),
                        format!("{key:?} is there already"),
                    );
                } else {
                    seen.insert(key);
                }
            }
        }
    }
}
