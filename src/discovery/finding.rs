//! Problems of the inputs of an image, with their locations.

use std::fmt;

use ignition::report::Severity;
use serde::Serialize;

/// The location of a value: a file or a command-line option.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct SourceLocation {
    /// The name of the file or option.
    pub file: String,
    /// The line, starting at 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<usize>,
    /// The path of the value in the file, such as `spec.proxy.httpProxy`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub path: String,
}

impl SourceLocation {
    /// Creates the location of a whole file or option.
    pub fn whole(file: impl Into<String>) -> Self {
        Self { file: file.into(), line: None, path: String::new() }
    }

    /// Returns the file and line without the path, for use within a sentence.
    pub(crate) fn line(&self) -> String {
        self.line.map_or_else(|| self.file.clone(), |line| format!("{}:{line}", self.file))
    }
}

impl fmt::Display for SourceLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:", self.file)?;
        if let Some(line) = self.line {
            write!(f, "{line}:")?;
        }
        if self.path.is_empty() { Ok(()) } else { write!(f, " {}:", self.path) }
    }
}

/// A value and its location.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Located<T> {
    /// The value.
    pub value: T,
    /// Its location.
    pub place: SourceLocation,
}

impl<T> Located<T> {
    /// Creates a value with its location.
    pub fn new(value: T, place: SourceLocation) -> Self {
        Self { value, place }
    }
}

/// A problem of the inputs.
///
/// `Display` writes it on one line, in the style of compiler messages.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct DiscoveryFinding {
    /// The severity. After an error, no image is made.
    pub severity: Severity,
    /// The location.
    #[serde(flatten)]
    pub place: SourceLocation,
    /// The message.
    pub message: String,
}

impl fmt::Display for DiscoveryFinding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let message = self.message.replace(|it: char| it.is_control() && it != '\t', "\u{fffd}");
        write!(f, "{} {}: {message}", self.place, self.severity)
    }
}

/// The findings of one or several checks.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct DiscoveryReport(Vec<DiscoveryFinding>);

impl DiscoveryReport {
    /// Adds an error: no image can be made.
    pub fn error(&mut self, place: SourceLocation, message: impl Into<String>) {
        self.push(Severity::Error, place, message);
    }

    /// Adds a warning about a value that is probably a mistake.
    pub fn warning(&mut self, place: SourceLocation, message: impl Into<String>) {
        self.push(Severity::Warning, place, message);
    }

    /// Adds a finding.
    pub fn push(&mut self, severity: Severity, place: SourceLocation, message: impl Into<String>) {
        self.0.push(DiscoveryFinding { severity, place, message: message.into() });
    }

    /// Returns the value of a result. Adds the error and returns `None` if the result is an error.
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

    /// Returns the number of findings of a severity.
    #[must_use]
    pub fn count(&self, severity: Severity) -> usize {
        self.0.iter().filter(|finding| finding.severity == severity).count()
    }

    /// Returns whether the report contains an error, so that no image can be made.
    #[must_use]
    pub fn is_fatal(&self) -> bool {
        self.count(Severity::Error) > 0
    }
}

impl fmt::Display for DiscoveryReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|finding| writeln!(f, "{finding}"))
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
            "a.yaml:3: spec.x: error: bad\u{fffd}value\n--ssh-key: warning: odd\n"
        );
        assert!(findings.is_fatal());
        let json = serde_json::to_string(&findings).unwrap();
        assert!(
            json.starts_with(r#"[{"severity":"error","file":"a.yaml","line":3,"path":"spec.x","#),
            "{json}"
        );
    }
}
