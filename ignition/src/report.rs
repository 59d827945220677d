//! What is found in a config: how bad, where, and what.

use std::fmt;

use serde::Serialize;

use crate::document::ReadError;
use crate::position::{self, Position};

/// How bad a finding is, in Ignition's words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Ignition refuses the config: the machine does not boot.
    Error,
    /// The config works, but hardly as it was meant.
    Warning,
    /// Worth knowing.
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

/// Whose rule a finding comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Origin {
    /// A rule of Ignition itself.
    Ignition,
    /// A rule of this crate, for what Ignition accepts.
    Lint,
}

/// One thing that was found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Finding {
    /// How bad it is.
    pub severity: Severity,
    /// Whose rule it is.
    pub origin: Origin,
    /// The JSON pointer of the value; empty for the whole config.
    pub pointer: String,
    /// Where the value stands in the text, once [`Report::locate`] has looked.
    #[serde(flatten)]
    pub position: Option<Position>,
    /// What is wrong.
    pub message: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { severity, pointer, message, .. } = self;
        let pointer = if pointer.is_empty() { "/" } else { pointer };
        match self.position {
            Some(position) => write!(f, "{position}: {severity}: {pointer}: {message}"),
            None => write!(f, "{severity}: {pointer}: {message}"),
        }
    }
}

/// All that was found in a config, in the order of the config.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Report {
    findings: Vec<Finding>,
}

impl Report {
    /// What was found.
    #[must_use]
    pub fn findings(&self) -> &[Finding] {
        &self.findings
    }

    /// Whether nothing was found.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.findings.is_empty()
    }

    /// How many findings are this bad.
    #[must_use]
    pub fn count(&self, severity: Severity) -> usize {
        self.findings.iter().filter(|finding| finding.severity == severity).count()
    }

    /// Whether Ignition would refuse the config.
    #[must_use]
    pub fn is_fatal(&self) -> bool {
        self.count(Severity::Error) > 0
    }

    /// Finds the lines of all findings in the text that the config was read from.
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

    /// Adds what another look has found.
    pub fn append(&mut self, other: Self) {
        self.findings.extend(other.findings);
    }

    /// Keeps only some findings.
    pub fn retain(&mut self, keep: impl FnMut(&Finding) -> bool) {
        self.findings.retain(keep);
    }

    /// The report as text, a line for each finding, under the name of the file.
    ///
    /// # Examples
    ///
    /// ```
    /// let text = b"{\"ignition\": {\"version\": \"3.3.0\"},\n \"colour\": 1}";
    /// let report = ignition::lint::check(text);
    /// assert_eq!(report.to_text("a.ign"), "a.ign:2:12: warning: /colour: unknown key: Ignition ignores it\n");
    /// ```
    #[must_use]
    pub fn to_text(&self, file: &str) -> String {
        let separator = |finding: &Finding| if finding.position.is_some() { "" } else { " " };
        self.findings.iter().map(|it| format!("{file}:{}{it}\n", separator(it))).collect()
    }

    pub(crate) fn push(&mut self, finding: Finding) {
        self.findings.push(finding);
    }
}

impl From<ReadError> for Report {
    fn from(error: ReadError) -> Self {
        Self { findings: vec![error.to_finding()] }
    }
}

impl Finding {
    pub(crate) fn new(severity: Severity, pointer: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            severity,
            origin: Origin::Ignition,
            pointer: pointer.into(),
            position: None,
            message: message.into(),
        }
    }

    pub(crate) fn lint(severity: Severity, pointer: impl Into<String>, message: impl Into<String>) -> Self {
        Self { origin: Origin::Lint, ..Self::new(severity, pointer, message) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_finding_reads_as_one_line_and_as_json() {
        let mut report = Report::default();
        report.push(Finding::new(Severity::Error, "/a/0", "wrong"));
        report.push(Finding::lint(Severity::Info, "", "large"));
        assert_eq!(report.to_text("x.ign"), "x.ign: error: /a/0: wrong\nx.ign: info: /: large\n");
        report.locate(b"\n{\"a\": [1]}");
        assert_eq!(report.to_text("x.ign"), "x.ign:2:8: error: /a/0: wrong\nx.ign:2:1: info: /: large\n");
        let json = r#"{"severity":"error","origin":"ignition","pointer":"/a/0","line":2,"column":8,"message":"wrong"}"#;
        assert_eq!(serde_json::to_string(&report.findings()[0]).unwrap(), json);
        assert!(report.is_fatal());
        assert_eq!(report.count(Severity::Info), 1);
    }
}
