//! What Ignition accepts, but hardly anybody means.
//!
//! Where Ignition itself would fail later, on the machine, the finding is an error: contents that do not unpack or whose
//! hash is another. Everything else is a warning or worth knowing. The rules look at inline contents only.

mod contents;
mod node;
mod passwd;
mod size;
mod systemd;

pub use size::EMBED_AREA_LEN;

use std::fmt;

use crate::document::Document;
use crate::report::{Finding, Report, Severity};
use crate::schema::{CONFIG, Name};
use crate::validate::{Node, validate};

/// Looks a config over. The findings have no lines until [`Report::locate`] has seen the text.
///
/// # Examples
///
/// ```
/// use ignition::document::Document;
/// use ignition::lint::lint;
///
/// let text = br#"{"ignition": {"version": "3.3.0"}, "storage": {"files": [{"path": "/a", "mode": 644}]}}"#;
/// let report = lint(&Document::parse(text)?.document);
/// assert_eq!(report.findings()[0].message, "the mode 644 is octal 1204; octal 644 is written as 420");
/// # Ok::<(), ignition::document::ReadError>(())
/// ```
#[must_use]
pub fn lint(document: &Document) -> Report {
    let mut linter = Linter { report: Report::default(), budget: contents::MAX_UNPACKED_LEN };
    linter.size(document);
    linter.node(&Node::root(document.root(), &CONFIG));
    linter.report
}

/// Reads, validates and looks over a text: all findings, with their lines. A text that is no config has one.
///
/// # Examples
///
/// ```
/// let report = ignition::lint::check(br#"{"ignition": {"version": "3.3.0"}, "storage": {"files": [{"mode": "0644"}]}}"#);
/// assert!(report.is_fatal());
/// assert_eq!(
///     report.to_text("config.ign"),
///     "config.ign:1:67: error: /storage/files/0/mode: is a string, but has to be an integer\n"
/// );
/// ```
#[must_use]
pub fn check(text: &[u8]) -> Report {
    let mut report = match Document::parse(text) {
        Ok(parsed) => {
            let mut report = parsed.warnings;
            report.append(validate(&parsed.document));
            report.append(lint(&parsed.document));
            report
        }
        Err(error) => error.into(),
    };
    report.locate(text);
    report
}

/// Collects what the rules find.
struct Linter {
    report: Report,
    /// How many more bytes of contents may be unpacked.
    budget: usize,
}

impl Linter {
    fn error(&mut self, place: impl fmt::Display, message: impl Into<String>) {
        self.report.push(Finding::lint(Severity::Error, place.to_string(), message));
    }

    fn warning(&mut self, place: impl fmt::Display, message: impl Into<String>) {
        self.report.push(Finding::lint(Severity::Warning, place.to_string(), message));
    }

    fn info(&mut self, place: impl fmt::Display, message: impl Into<String>) {
        self.report.push(Finding::lint(Severity::Info, place.to_string(), message));
    }

    /// Applies the rules to an object and all below it. The schema bounds the depth.
    fn node(&mut self, node: &Node) {
        match node.schema.name {
            Name::File => self.file(node),
            Name::Directory => self.directory(node),
            Name::Header => self.header(node),
            Name::Systemd => self.systemd(node),
            Name::User => self.user(node),
            _ => {}
        }
        for child in node.children() {
            self.node(&child);
        }
    }

    /// A header that deletes nothing when configs are merged is one that cannot be sent.
    fn header(&mut self, node: &Node) {
        if !node.has("value") {
            self.warning(node.place, "a header without a value only deletes one of a parent config");
        }
    }
}
