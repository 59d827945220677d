//! Reports: the findings in a config, with severity, position and message.

use std::fmt;

use serde::Serialize;

use crate::config::ConfigError;
use crate::position;
pub use crate::position::TextPosition;
use crate::visible::visible;

/// The severity of a finding. The names are the names that Ignition uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Ignition rejects the config, and the machine does not boot.
    Error,
    /// The config works, but probably not as intended.
    Warning,
    /// Information that needs no action.
    Info,
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Error => "error",
            Self::Warning => "warning",
            Self::Info => "info",
        })
    }
}

/// The program whose rule a finding is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum RuleOrigin {
    /// A rule of Ignition itself.
    Ignition,
    /// A rule of this crate about configs that Ignition accepts.
    Lint,
}

/// The rule that a finding is about, for programs. The message of a finding is for people, and its text may change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum ConfigRule {
    /// The text is not JSON, or the config cannot be written as JSON.
    Syntax,
    /// The text is a Butane config.
    Butane,
    /// The spec version is missing or not supported.
    SpecVersion,
    /// A value has the wrong JSON type.
    WrongType,
    /// An object contains a key twice.
    RepeatedKey,
    /// A mandatory key is missing. Only [`rewrite`](crate::rewrite::rewrite) requires these keys.
    MissingKey,
    /// A key is unknown in the spec version, or in the wrong case.
    UnknownKey,
    /// A value that Ignition needs is missing or empty.
    MissingValue,
    /// A value has a form that Ignition does not accept.
    InvalidValue,
    /// A path is invalid.
    Path,
    /// A URL is invalid, or probably not used as intended.
    Url,
    /// A mode is invalid or probably a mistake.
    Mode,
    /// A unit or a drop-in is invalid, or probably does not start as intended.
    Unit,
    /// Two entries have the same key, label or path.
    Duplicate,
    /// Two values are mutually exclusive.
    Conflict,
    /// Contents do not match their compression or hash, or were not checked.
    Contents,
    /// A user cannot log in as intended.
    Account,
    /// The config is too large for the embed area of an image.
    Size,
    /// An entry has no effect.
    NoEffect,
}

/// A problem in a config.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ConfigFinding {
    /// The severity: error, warning or information.
    pub severity: Severity,
    /// The program whose rule it is.
    pub origin: RuleOrigin,
    /// The rule. The JSON form does not contain it.
    #[serde(skip)]
    pub rule: ConfigRule,
    /// The JSON pointer of the value; empty for the whole config.
    pub pointer: String,
    /// The position of the value in the text; set by [`ConfigReport::locate`].
    #[serde(flatten)]
    pub position: Option<TextPosition>,
    /// The problem in words.
    pub message: String,
}

impl fmt::Display for ConfigFinding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { severity, pointer, message, .. } = self;
        let pointer = if pointer.is_empty() { "/" } else { pointer };
        match self.position {
            Some(position) => write!(f, "{position}: {severity}: {pointer}: {message}"),
            None => write!(f, "{severity}: {pointer}: {message}"),
        }
    }
}

/// All findings of a config, in the order of the config.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct ConfigReport {
    findings: Vec<ConfigFinding>,
}

impl ConfigReport {
    /// Returns the findings, in the order of the config.
    #[must_use]
    pub fn findings(&self) -> &[ConfigFinding] {
        &self.findings
    }

    /// Returns `true` if the report has no findings.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.findings.is_empty()
    }

    /// Returns the number of findings with this severity.
    #[must_use]
    pub fn count(&self, severity: Severity) -> usize {
        self.findings.iter().filter(|finding| finding.severity == severity).count()
    }

    /// Returns `true` if Ignition would reject the config.
    #[must_use]
    pub fn is_fatal(&self) -> bool {
        self.count(Severity::Error) > 0
    }

    /// Sets the positions of all findings in the text of the config.
    pub fn locate(&mut self, text: &[u8]) {
        if self.is_empty() {
            return;
        }
        let pointers: Vec<&str> = self.findings.iter().map(|finding| finding.pointer.as_str()).collect();
        let positions = position::locate(text, &pointers);
        for (finding, position) in self.findings.iter_mut().zip(positions) {
            finding.position = finding.position.or(position);
        }
    }

    /// Appends the findings of another report.
    pub fn append(&mut self, other: Self) {
        self.findings.extend(other.findings);
    }

    /// Keeps the findings for which `keep` returns `true`.
    pub fn retain(&mut self, keep: impl FnMut(&ConfigFinding) -> bool) {
        self.findings.retain(keep);
    }

    /// Returns the report as text. Each line contains the file, line, JSON pointer, severity and message of one
    /// finding.
    ///
    /// # Examples
    ///
    /// ```
    /// let text = b"{\"ignition\": {\"version\": \"3.3.0\"},\n \"colour\": 1}";
    /// let report = ignition::lint::check(text);
    /// assert_eq!(report.to_text("a.ign"), "a.ign:2: /colour: warning: unknown key: Ignition ignores it\n");
    /// ```
    #[must_use]
    pub fn to_text(&self, file: &str) -> String {
        let line = |finding: &ConfigFinding| {
            let ConfigFinding { severity, pointer, position, message, .. } = finding;
            let line = position.map(|position| format!("{}:", position.line)).unwrap_or_default();
            let pointer = if pointer.is_empty() { String::new() } else { format!(" {pointer}:") };
            format!("{}:{line}{pointer} {severity}: {message}\n", visible(file))
        };
        self.findings.iter().map(line).collect()
    }

    /// Returns the findings that are errors.
    pub(crate) fn into_errors(self) -> Vec<ConfigFinding> {
        self.findings.into_iter().filter(|finding| finding.severity == Severity::Error).collect()
    }

    pub(crate) fn push(&mut self, finding: ConfigFinding) {
        self.findings.push(finding);
    }
}

impl From<ConfigError> for ConfigReport {
    fn from(error: ConfigError) -> Self {
        Self { findings: vec![error.to_finding()] }
    }
}

impl ConfigFinding {
    pub(crate) fn new(
        severity: Severity,
        rule: ConfigRule,
        pointer: impl Into<String>,
        message: impl Into<String>,
    ) -> Self {
        Self {
            severity,
            origin: RuleOrigin::Ignition,
            rule,
            pointer: pointer.into(),
            position: None,
            message: message.into(),
        }
    }

    pub(crate) fn lint(
        severity: Severity,
        rule: ConfigRule,
        pointer: impl Into<String>,
        message: impl Into<String>,
    ) -> Self {
        Self { origin: RuleOrigin::Lint, ..Self::new(severity, rule, pointer, message) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finding_is_written_as_one_line_and_as_json() {
        let mut report = ConfigReport::default();
        report.push(ConfigFinding::new(Severity::Error, ConfigRule::Path, "/a/0", "wrong"));
        report.push(ConfigFinding::lint(Severity::Info, ConfigRule::Size, "", "large"));
        assert_eq!(report.to_text("x.ign"), "x.ign: /a/0: error: wrong\nx.ign: info: large\n");
        assert!(report.to_text("").starts_with("\"\": /a/0: error: wrong\n"));
        report.locate(b"\n{\"a\": [1]}");
        assert_eq!(report.to_text("x.ign"), "x.ign:2: /a/0: error: wrong\nx.ign:2: info: large\n");
        let json = r#"{"severity":"error","origin":"ignition","pointer":"/a/0","line":2,"column":8,"message":"wrong"}"#;
        assert_eq!(serde_json::to_string(&report.findings()[0]).unwrap(), json);
        assert!(report.is_fatal());
        assert_eq!(report.count(Severity::Info), 1);
    }
}
