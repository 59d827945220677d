//! One manifest: its values by their paths, and the lines on which they stand.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, OnceLock};

use ignition::network::yaml::Lines;
use serde_json::Value;

use crate::discovery::{Findings, Given, Place, Text};

/// One manifest.
#[derive(Clone)]
pub struct Object {
    value: Value,
    document: Arc<Document>,
    /// What stands before the paths of an object that is one of a list.
    prefix: String,
}

/// The document that an object stands in.
struct Document {
    file: Arc<str>,
    /// How many lines of the file come before it.
    skipped: usize,
    text: Box<str>,
    lines: OnceLock<Arc<Lines>>,
}

impl Document {
    fn lines(&self) -> &Arc<Lines> {
        self.lines.get_or_init(|| Arc::new(Lines::read(&self.text)))
    }
}

impl Object {
    /// The objects of a document: one, or those of a list. What is none is told of: other files stand beside manifests,
    /// and so do mistakes.
    pub(super) fn all(
        file: &Arc<str>,
        (skipped, text): (usize, &str),
        value: Value,
        findings: &mut Findings,
    ) -> Vec<Self> {
        let lines = OnceLock::new();
        let document = Arc::new(Document { file: Arc::clone(file), skipped, text: text.into(), lines });
        let mut one = |prefix: String, value: Value| {
            let reason = match value.as_object() {
                None => "is no object",
                Some(map) if !map.get("kind").is_some_and(Value::is_string) => "has no kind",
                Some(_) => return Some(Self { value, document: Arc::clone(&document), prefix }),
            };
            let place = Place { file: file.to_string(), line: Some(skipped + 1), path: prefix };
            findings.warning(place, format!("{reason}: it is passed over"));
            None
        };
        let is_list = value.get("kind").and_then(Value::as_str).is_some_and(|kind| kind == "List");
        match value.get("items").filter(|_| is_list).and_then(Value::as_array) {
            Some(items) => {
                let items = items.iter().enumerate();
                items.filter_map(|(at, item)| one(format!("items[{at}]"), item.clone())).collect()
            }
            None => one(String::new(), value).into_iter().collect(),
        }
    }

    /// Its kind.
    #[must_use]
    pub fn kind(&self) -> &str {
        self.get("kind").and_then(Value::as_str).unwrap_or_default()
    }

    /// Its name; empty if it has none.
    #[must_use]
    pub fn name(&self) -> &str {
        self.get("metadata.name").and_then(Value::as_str).unwrap_or_default()
    }

    /// Its namespace; empty if it names none.
    #[must_use]
    pub fn namespace(&self) -> &str {
        self.get("metadata.namespace").and_then(Value::as_str).unwrap_or_default()
    }

    /// Its labels.
    pub(super) fn labels(&self) -> BTreeMap<&str, &str> {
        let labels = self.get("metadata.labels").and_then(Value::as_object).into_iter().flatten();
        labels.filter_map(|(key, value)| Some((key.as_str(), value.as_str()?))).collect()
    }

    /// The value of a path such as `spec.proxy.httpProxy`; nothing for `null`. Keys with dots have no path.
    pub(super) fn get(&self, path: &str) -> Option<&Value> {
        let found = path.split('.').try_fold(&self.value, |value, key| value.get(key));
        found.filter(|value| !value.is_null())
    }

    /// Where a value stands, or would stand.
    pub(super) fn at(&self, path: &str) -> Place {
        let full = self.full(path);
        let lines = self.document.lines();
        let line = lines.find(&full).map_or(self.document.skipped + 1, |line| line + self.document.skipped);
        Place { file: self.document.file.to_string(), line: Some(line), path: full }
    }

    /// The lines of the document from the one where a value is.
    pub(super) fn lines_from(&self, path: &str) -> Option<impl Iterator<Item = &str>> {
        let line = self.document.lines().find(&self.full(path))?;
        Some(self.document.text.lines().skip(line.saturating_sub(1)))
    }

    fn full(&self, path: &str) -> String {
        match (self.prefix.as_str(), path) {
            ("", path) => path.to_owned(),
            (prefix, "") => prefix.to_owned(),
            (prefix, path) => format!("{prefix}.{path}"),
        }
    }

    /// A text; a finding for something else.
    pub(super) fn text(&self, path: &str, findings: &mut Findings) -> Option<Text> {
        match self.get(path)? {
            Value::String(text) => Some(Given::new(text.clone(), self.at(path))),
            _ => {
                findings.error(self.at(path), "has to be a string");
                None
            }
        }
    }

    /// A list of texts; a finding for something else.
    pub(super) fn texts(&self, path: &str, findings: &mut Findings) -> Option<Given<Vec<String>>> {
        let value = self.get(path)?;
        let texts: Option<Vec<String>> =
            value.as_array().and_then(|list| list.iter().map(|it| it.as_str().map(str::to_owned)).collect());
        if texts.is_none() {
            findings.error(self.at(path), "has to be a list of strings");
        }
        Some(Given::new(texts?, self.at(path)))
    }

    /// Whether a value is an object, or not there; a finding for something else. Keys that nobody reads are told of: in a
    /// manifest, those are mistakes in writing.
    pub(super) fn has_fields(&self, path: &str, known: &[&str], findings: &mut Findings) -> bool {
        self.get(path).is_none_or(|value| self.are_fields((path, value), known, findings))
    }

    /// The same of a value that is somewhere in a list.
    pub(super) fn are_fields(
        &self,
        (path, value): (&str, &Value),
        known: &[&str],
        findings: &mut Findings,
    ) -> bool {
        let Some(map) = value.as_object() else {
            findings.error(self.at(path), "has to be an object");
            return false;
        };
        for key in map.keys().filter(|key| !known.contains(&key.as_str())) {
            let similar = known.iter().find(|known| known.eq_ignore_ascii_case(key));
            let hint = similar.map(|known| format!("; did you mean {known}?")).unwrap_or_default();
            findings.warning(self.at(&format!("{path}.{key}")), format!("unknown field{hint}"));
        }
        true
    }

    /// A list, empty where there is none; a finding for something else.
    pub(super) fn list(&self, path: &str, findings: &mut Findings) -> Option<&[Value]> {
        match self.get(path) {
            None => Some(&[]),
            Some(Value::Array(list)) => Some(list),
            Some(_) => {
                findings.error(self.at(path), "has to be a list");
                None
            }
        }
    }

    /// A text of a value that is somewhere in a list, if it has it; a finding for something else.
    pub(super) fn text_in<'a>(
        &self,
        (path, value): (&str, &'a Value),
        key: &str,
        findings: &mut Findings,
    ) -> Result<Option<&'a str>, ()> {
        match value.get(key) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(_) => {
                findings.error(self.at(&format!("{path}.{key}")), "has to be a string");
                Err(())
            }
        }
    }

    /// What the lines of a network in it are told from.
    pub(super) fn origin(&self, network: &str, interfaces: &str) -> crate::discovery::HostOrigin {
        crate::discovery::HostOrigin {
            file: Arc::clone(&self.document.file),
            // A list of many hosts has one table.
            lines: Arc::clone(self.document.lines()),
            skipped: self.document.skipped,
            network: self.full(network),
            interfaces: self.full(interfaces),
        }
    }
}

/// Manifests hold secrets.
impl fmt::Debug for Object {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Object")
            .field("kind", &self.kind())
            .field("namespace", &self.namespace())
            .field("name", &self.name())
            .finish_non_exhaustive()
    }
}

impl fmt::Display for Object {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.namespace() {
            "" => write!(f, "{} {}", self.kind(), self.name()),
            namespace => write!(f, "{} {namespace}/{}", self.kind(), self.name()),
        }
    }
}
