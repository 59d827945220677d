//! What is wrong with the inputs of an image, and where it stands.

use std::fmt;

use ignition::report::Severity;
use serde::Serialize;

/// Where a value stands: in a file, or in an option of the command line.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Place {
    /// The file, or the option.
    pub file: String,
    /// The line, counted from one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<usize>,
    /// The value in the file, such as `spec.proxy.httpProxy`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub path: String,
}

impl Place {
    /// A whole file, or an option.
    pub fn of(file: impl Into<String>) -> Self {
        Self { file: file.into(), line: None, path: String::new() }
    }

    /// File and line alone, for the middle of a sentence.
    pub(crate) fn line(&self) -> String {
        self.line.map_or_else(|| self.file.clone(), |line| format!("{}:{line}", self.file))
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:", self.file)?;
        if let Some(line) = self.line {
            write!(f, "{line}:")?;
        }
        if self.path.is_empty() { Ok(()) } else { write!(f, " {}:", self.path) }
    }
}

/// A value, and where it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Given<T> {
    /// The value.
    pub value: T,
    /// Where it stands.
    pub place: Place,
}

impl<T> Given<T> {
    /// A value of a place.
    pub fn new(value: T, place: Place) -> Self {
        Self { value, place }
    }
}

/// One thing that was found.
///
/// As text it is one line, in the form of a compiler's message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Finding {
    /// How bad it is: with an error there is no image.
    pub severity: Severity,
    /// Where.
    #[serde(flatten)]
    pub place: Place,
    /// What.
    pub message: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let message = self.message.replace(|it: char| it.is_control() && it != '\t', "\u{fffd}");
        write!(f, "{} {}: {message}", self.place, self.severity)
    }
}

/// All that was found.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Findings(Vec<Finding>);

impl Findings {
    /// Notes something that there is no image with.
    pub fn error(&mut self, place: Place, message: impl Into<String>) {
        self.push(Severity::Error, place, message);
    }

    /// Notes something that is hardly meant.
    pub fn warning(&mut self, place: Place, message: impl Into<String>) {
        self.push(Severity::Warning, place, message);
    }

    /// Notes something.
    pub fn push(&mut self, severity: Severity, place: Place, message: impl Into<String>) {
        self.0.push(Finding { severity, place, message: message.into() });
    }

    /// The value of a result, or nothing and a finding.
    pub fn value<T>(&mut self, place: &Place, result: Result<T, impl Into<String>>) -> Option<T> {
        result.map_err(|message| self.error(place.clone(), message)).ok()
    }

    /// Adds what another look has found.
    pub fn append(&mut self, mut other: Self) {
        self.0.append(&mut other.0);
    }

    /// What was found, in the order in which it was.
    #[must_use]
    pub fn as_slice(&self) -> &[Finding] {
        &self.0
    }

    /// How many are this bad.
    #[must_use]
    pub fn count(&self, severity: Severity) -> usize {
        self.0.iter().filter(|finding| finding.severity == severity).count()
    }

    /// Whether there is no image.
    #[must_use]
    pub fn is_fatal(&self) -> bool {
        self.count(Severity::Error) > 0
    }
}

impl fmt::Display for Findings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|finding| writeln!(f, "{finding}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_finding_is_one_line_with_its_place() {
        let mut findings = Findings::default();
        let place = Place { file: "a.yaml".into(), line: Some(3), path: "spec.x".into() };
        findings.error(place, "bad\nvalue");
        findings.warning(Place::of("--ssh-key"), "odd");
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
