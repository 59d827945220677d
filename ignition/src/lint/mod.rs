//! Finds settings that Ignition accepts but that are probably mistakes.
//!
//! A finding is an error if Ignition would fail later, on the machine, because contents cannot be decompressed or do
//! not match their hash. All other findings are warnings or information. The rules check only inline contents.

mod contents;
mod node;
mod passwd;
mod size;
mod systemd;

use std::fmt;

use crate::config::Config;
use crate::report::{ConfigFinding, ConfigReport, ConfigRule, Severity};
use crate::schema::{CONFIG, ObjectKind};
use crate::validate::{ConfigNode, validate};

/// Lints a config. The findings have no line numbers until [`ConfigReport::locate`] adds them.
///
/// # Examples
///
/// ```
/// use ignition::config::Config;
/// use ignition::lint::lint;
///
/// let text = br#"{"ignition": {"version": "3.3.0"}, "storage": {"files": [{"path": "/a", "mode": 644}]}}"#;
/// let report = lint(&Config::parse(text)?.config);
/// assert_eq!(report.findings()[0].message, "the mode 644 is octal 1204; octal 644 is written as 420");
/// # Ok::<(), ignition::config::ConfigError>(())
/// ```
#[must_use]
pub fn lint(config: &Config) -> ConfigReport {
    let mut linter = Linter { report: ConfigReport::default(), budget: contents::MAX_DECOMPRESSED_LEN };
    linter.lint_size(config);
    linter.lint_tree(&ConfigNode::root(config.root(), &CONFIG));
    linter.report
}

/// Parses, validates and lints a text. Returns all findings with their line numbers. If the text cannot be parsed, that
/// error is the only finding.
///
/// # Examples
///
/// ```
/// let text = br#"{"ignition": {"version": "3.3.0"}, "storage": {"files": [{"mode": "0644"}]}}"#;
/// let report = ignition::lint::check(text);
/// assert!(report.is_fatal());
/// assert_eq!(
///     report.to_text("config.ign"),
///     "config.ign:1: /storage/files/0/mode: error: is a string, but has to be an integer\n"
/// );
/// ```
#[must_use]
pub fn check(text: &[u8]) -> ConfigReport {
    let mut report = match Config::parse(text) {
        Ok(parsed) => {
            let mut report = parsed.warnings;
            report.append(validate(&parsed.config));
            report.append(lint(&parsed.config));
            report
        }
        Err(error) => error.into(),
    };
    report.locate(text);
    report
}

/// A linter of one config, which collects the findings of the rules.
struct Linter {
    report: ConfigReport,
    /// Number of bytes that may still be decompressed.
    budget: usize,
}

impl Linter {
    fn error(&mut self, pointer: impl fmt::Display, rule: ConfigRule, message: impl Into<String>) {
        self.report.push(ConfigFinding::lint(Severity::Error, rule, pointer.to_string(), message));
    }

    fn warning(&mut self, pointer: impl fmt::Display, rule: ConfigRule, message: impl Into<String>) {
        self.report.push(ConfigFinding::lint(Severity::Warning, rule, pointer.to_string(), message));
    }

    fn info(&mut self, pointer: impl fmt::Display, rule: ConfigRule, message: impl Into<String>) {
        self.report.push(ConfigFinding::lint(Severity::Info, rule, pointer.to_string(), message));
    }

    /// Applies the rules to an object and to all objects inside it. The schema limits the depth.
    fn lint_tree(&mut self, node: &ConfigNode) {
        match node.schema.name {
            ObjectKind::File => self.lint_file(node),
            ObjectKind::Directory => self.lint_directory(node),
            ObjectKind::Header => self.lint_header(node),
            ObjectKind::Systemd => self.lint_systemd(node),
            ObjectKind::User => self.lint_user(node),
            _ => {}
        }
        for child in node.children() {
            self.lint_tree(&child);
        }
    }

    /// Warns about a header without a value. Its only purpose is to delete a header of a parent config.
    fn lint_header(&mut self, node: &ConfigNode) {
        if !node.has_field("value") {
            self.warning(
                node.pointer,
                ConfigRule::NoEffect,
                "a header without a value only removes the header of a parent config",
            );
        }
    }
}
