//! Problems in the inputs of an image, with their locations.

use std::fmt;

use ignition::report::Severity;
use serde::Serialize;

/// The location of a value in a file or a command-line option.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct SourceLocation {
    /// The name of the file, or the command-line option.
    pub file: String,
    /// The line number in the file, starting at 1. Absent if the location is the whole file or option.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<usize>,
    /// The path of the value in the file, such as `spec.proxy.httpProxy`. Empty for the whole file or option.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub path: String,
}

impl SourceLocation {
    /// Returns the location of a whole file, option or value.
    pub fn whole(file: impl Into<String>) -> Self {
        Self { file: file.into(), line: None, path: String::new() }
    }

    /// Returns `file:line` without the path, for use within a sentence.
    pub(crate) fn line(&self) -> String {
        self.line.map_or_else(|| self.file.clone(), |line| format!("{}:{line}", self.file))
    }

    /// Returns this location, or the location of a whole `value` if this location is empty.
    pub(crate) fn or_whole(&self, value: &str) -> Self {
        if *self == Self::default() { Self::whole(value) } else { self.clone() }
    }
}

impl fmt::Display for SourceLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut separator = "";
        if !self.file.is_empty() {
            write!(f, "{}:", self.file)?;
            separator = " ";
        }
        if let Some(line) = self.line {
            write!(f, "{line}:")?;
            separator = " ";
        }
        if self.path.is_empty() { Ok(()) } else { write!(f, "{separator}{}:", self.path) }
    }
}

/// A value and its location, for findings about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Located<T> {
    /// The value at the location.
    pub value: T,
    /// The location of the value in the user's input.
    pub place: SourceLocation,
}

impl<T> Located<T> {
    /// Combines a value and its location.
    pub fn new(value: T, place: SourceLocation) -> Self {
        Self { value, place }
    }

    /// Returns a reference to the value, with a copy of its location.
    pub fn as_ref(&self) -> Located<&T> {
        Located { value: &self.value, place: self.place.clone() }
    }
}

/// Converts a text without a location. Findings about it name the field instead.
impl From<&str> for Located<String> {
    fn from(value: &str) -> Self {
        Self::new(value.to_owned(), SourceLocation::default())
    }
}

/// The subject of a finding. Programs can match on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FindingKind {
    /// A value has the wrong type, is invalid, or is probably a mistake.
    Value,
    /// A value is missing.
    Missing,
    /// The OpenShift version is missing.
    MissingVersion,
    /// The static network of a host, or a conflict between hosts.
    Network,
    /// The Ignition config to merge over the generated one.
    Override,
    /// No manifest is an `InfraEnv` with the requested name.
    UnknownInfraEnv,
    /// Several manifests are an `InfraEnv` with the requested name.
    AmbiguousInfraEnv,
}

/// A problem in the inputs of an image.
///
/// `Display` prints the finding on one line, in the style of compiler messages.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct DiscoveryFinding {
    /// The severity. An error prevents the creation of images.
    pub severity: Severity,
    /// The subject of the finding.
    #[serde(skip)]
    pub kind: FindingKind,
    /// The location of the value that the finding is about.
    #[serde(flatten)]
    pub place: SourceLocation,
    /// The problem, phrased to follow the location.
    pub message: String,
}

impl DiscoveryFinding {
    /// Creates a finding about a value.
    pub fn new(severity: Severity, place: SourceLocation, message: impl Into<String>) -> Self {
        Self { severity, kind: FindingKind::Value, place, message: message.into() }
    }

    /// Sets the subject of the finding.
    #[must_use]
    pub fn with_kind(self, kind: FindingKind) -> Self {
        Self { kind, ..self }
    }
}

impl fmt::Display for DiscoveryFinding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let message = self.message.replace(|it: char| it.is_control() && it != '\t', "\u{fffd}");
        let place = self.place.to_string();
        let separator = if place.is_empty() { "" } else { " " };
        write!(f, "{place}{separator}{}: {message}", self.severity)
    }
}

/// The findings of one or more checks. When a report is returned as an error, at least one finding is an error.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct DiscoveryReport(Vec<DiscoveryFinding>);

impl DiscoveryReport {
    /// Adds an error, which prevents the creation of images.
    pub fn error(&mut self, place: SourceLocation, message: impl Into<String>) {
        self.push(DiscoveryFinding::new(Severity::Error, place, message));
    }

    /// Adds a warning about a value that is probably a mistake.
    pub fn warning(&mut self, place: SourceLocation, message: impl Into<String>) {
        self.push(DiscoveryFinding::new(Severity::Warning, place, message));
    }

    /// Adds a finding.
    pub fn push(&mut self, finding: DiscoveryFinding) {
        self.0.push(finding);
    }

    /// Adds an error about a missing value.
    pub fn missing(&mut self, kind: FindingKind, place: SourceLocation, message: impl Into<String>) {
        self.push(DiscoveryFinding::new(Severity::Error, place, message).with_kind(kind));
    }

    /// Returns the value of an `Ok` result. For an `Err`, adds an error finding and returns `None`.
    pub fn value<T>(&mut self, place: &SourceLocation, result: Result<T, impl Into<String>>) -> Option<T> {
        result.map_err(|message| self.error(place.clone(), message)).ok()
    }

    /// Appends the findings of another check.
    pub fn append(&mut self, mut other: Self) {
        self.0.append(&mut other.0);
    }

    /// Returns the findings in the order in which they were added.
    #[must_use]
    pub fn as_slice(&self) -> &[DiscoveryFinding] {
        &self.0
    }

    /// Returns the number of findings with this severity.
    #[must_use]
    pub fn count(&self, severity: Severity) -> usize {
        self.0.iter().filter(|finding| finding.severity == severity).count()
    }

    /// Returns `true` if the report contains an error, which prevents the creation of images.
    #[must_use]
    pub fn is_fatal(&self) -> bool {
        self.count(Severity::Error) > 0
    }
}

impl FromIterator<DiscoveryFinding> for DiscoveryReport {
    fn from_iter<T: IntoIterator<Item = DiscoveryFinding>>(findings: T) -> Self {
        Self(findings.into_iter().collect())
    }
}

impl IntoIterator for DiscoveryReport {
    type Item = DiscoveryFinding;
    type IntoIter = std::vec::IntoIter<DiscoveryFinding>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl std::error::Error for DiscoveryReport {}

impl fmt::Display for DiscoveryReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, finding) in self.0.iter().enumerate() {
            let separator = if index == 0 { "" } else { "\n" };
            write!(f, "{separator}{finding}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finding_is_displayed_on_one_line_with_its_location() {
        let mut findings = DiscoveryReport::default();
        let place = SourceLocation { file: "a.yaml".into(), line: Some(3), path: "spec.x".into() };
        findings.error(place, "bad\nvalue");
        findings.warning(SourceLocation::whole("--ssh-key"), "odd");
        assert_eq!(
            findings.to_string(),
            "a.yaml:3: spec.x: error: bad\u{fffd}value\n--ssh-key: warning: odd"
        );
        assert!(findings.is_fatal());
        let json = serde_json::to_string(&findings).unwrap();
        assert!(
            json.starts_with(r#"[{"severity":"error","file":"a.yaml","line":3,"path":"spec.x","#),
            "{json}"
        );
    }
}
