//! Overrides: configs that somebody lays over a generated one.
//!
//! An override is validated alone, as the inventory does when it is set, and so is the config with it. When only the two
//! together are bad, the error names what stands in the override, not in a config that its author never saw.

use std::fmt;

use super::secret::REDACTED;
use crate::document::Document;
use crate::json::{Json, Object};
use crate::merge::{key_of, merge};
use crate::position;
use crate::report::{Finding, Report, Severity};
use crate::schema::{CONFIG, Item, Key, Kind, Struct};
use crate::spec::Spec;
use crate::validate::validate;

use super::input::InputError;
use super::parts::Parts;

/// A config to be laid over a generated one: JSON of any supported spec version.
#[derive(Clone, PartialEq, Eq)]
pub struct Override(Vec<u8>);

impl Override {
    /// Takes the text of a config. It is read where it is applied.
    #[must_use]
    pub fn new(text: impl Into<Vec<u8>>) -> Self {
        Self(text.into())
    }
}

/// Overrides hold hashes of passwords and worse.
impl fmt::Debug for Override {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Override({REDACTED}, {} bytes)", self.0.len())
    }
}

/// Why a config could not be put together.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ComposeError {
    /// An input is no good.
    #[error(transparent)]
    Input(#[from] InputError),
    /// An override is no config, or no valid one.
    #[error("{field}: {finding}")]
    Override {
        /// The field that holds the override.
        field: &'static str,
        /// What is wrong, and where in the override.
        finding: Finding,
    },
    /// An override is valid, but what it makes of the config is not.
    #[error("{field}: {finding} (at {merged} of the config with the override)")]
    Merged {
        /// The field that holds the override.
        field: &'static str,
        /// What is wrong, and where in the override it comes from.
        finding: Finding,
        /// The JSON pointer in the merged config.
        merged: String,
    },
    /// The machine's system does not know the spec version of the result.
    #[error("{field}: the config would have spec {found}, but the system reads only up to {newest}")]
    TooNew {
        /// The field that holds the override.
        field: &'static str,
        /// The version.
        found: Spec,
        /// The newest that may be.
        newest: Spec,
    },
    /// The inputs are good one by one, but not together: two files of one path, for one.
    #[error("the config is not valid: {finding}")]
    Invalid {
        /// What is wrong.
        finding: Finding,
    },
}

/// A config with all overrides, and what was said about it.
#[derive(Clone, PartialEq)]
#[non_exhaustive]
pub struct Composed {
    /// The config. It holds secrets.
    pub config: Document,
    /// What has no effect in the override, and what hardly was meant. Positions are those in the override's text.
    pub warnings: Report,
}

impl fmt::Debug for Composed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let spec = self.config.spec();
        f.debug_struct("Composed").field("spec", &spec).field("warnings", &self.warnings).finish()
    }
}

/// The config that its parts make.
pub(crate) fn assembled(parts: Parts, spec: Spec) -> Result<Document, ComposeError> {
    let config = parts.into_document(spec);
    checked(config.map_err(|error| ComposeError::Invalid { finding: error.to_finding() })?)
}

/// Checks a generated config that has no override yet.
pub(crate) fn checked(config: Document) -> Result<Document, ComposeError> {
    match first_error(&validate(&config)) {
        Some(finding) => Err(ComposeError::Invalid { finding }),
        None => Ok(config),
    }
}

/// Lays an override over a valid config.
pub(crate) fn apply(base: &Document, field: &'static str, over: &Override) -> Result<Composed, ComposeError> {
    let text = over.0.as_slice();
    let refuse = |finding| ComposeError::Override { field, finding };
    let parsed = Document::parse(text).map_err(|error| refuse(error.to_finding()))?;
    let mut warnings = parsed.warnings;
    let mut alone = validate(&parsed.document);
    if !alone.is_empty() {
        alone.locate(text);
    }
    if let Some(finding) = first_error(&alone) {
        return Err(refuse(finding));
    }
    warnings.append(alone);
    let config = merge(base, &parsed.document);
    if let Some(finding) = first_error(&validate(&config)) {
        let merged = finding.pointer.clone();
        let pointer = origin(base, &parsed.document, &config, &merged);
        let position = position::locate(text, &[&pointer]).into_iter().next().flatten();
        return Err(ComposeError::Merged {
            field,
            finding: Finding { pointer, position, ..finding },
            merged,
        });
    }
    Ok(Composed { config, warnings })
}

fn first_error(report: &Report) -> Option<Finding> {
    report.findings().iter().find(|finding| finding.severity == Severity::Error).cloned()
}

/// Where in an override stands what makes the merged config bad: the value itself if the override has it, else the first
/// entry with which it goes bad.
fn origin(base: &Document, child: &Document, merged: &Document, pointer: &str) -> String {
    let [merged, tree] = [merged, child].map(|it| Json::Object(it.root().clone()));
    same_place(&merged, &tree, pointer).or_else(|| culprit(base, child)).unwrap_or_default()
}

/// The place in the override of what a pointer names in the merged config. Entries of lists are matched by their keys.
fn same_place(merged: &Json, child: &Json, pointer: &str) -> Option<String> {
    let (mut merged, mut child, mut schema) = (merged, child, &CONFIG);
    let mut parts = pointer.split('/').skip(1);
    let mut found = String::new();
    while let Some(name) = parts.next() {
        let field = schema.field(name)?;
        let Some(inner) = child.get(name) else { return enclosing(&found) };
        (merged, child) = (merged.get(name)?, inner);
        found = format!("{found}/{name}");
        match &field.kind {
            Kind::Struct(inner) => schema = inner,
            Kind::List(item, key) => {
                let Some(index) = parts.next() else { return Some(found) };
                let index: usize = index.parse().ok()?;
                let (entries, own) = (merged.as_list()?, child.as_list()?);
                let entry = entries.get(index)?;
                let place = match key {
                    Key::None => index.checked_sub(entries.len().checked_sub(own.len())?)?,
                    key => own.iter().position(|own| key_of(*key, own) == key_of(*key, entry))?,
                };
                (merged, child) = (entry, own.get(place)?);
                found = format!("{found}/{place}");
                match item {
                    Item::Struct(inner) => schema = inner,
                    Item::Text => return Some(found),
                }
            }
            _ => return Some(found),
        }
    }
    Some(found)
}

/// A place that at least is within an entry of a list; a whole section says nothing.
fn enclosing(pointer: &str) -> Option<String> {
    pointer.split('/').any(|part| part.parse::<usize>().is_ok()).then(|| pointer.to_owned())
}

/// The entry of a list with which an override begins to make the config bad, by bisection.
fn culprit(base: &Document, child: &Document) -> Option<String> {
    let mut entries = Vec::new();
    list_entries(&CONFIG, child.root(), "", &mut entries);
    let is_bad = |count: usize| {
        let kept = entries.get(..count).unwrap_or_default();
        first_error(&validate(&merge(base, &only(child, kept)))).is_some()
    };
    let (mut good, mut bad) = (0, entries.len());
    if is_bad(good) {
        return None;
    }
    while bad - good > 1 {
        let middle = good.midpoint(bad);
        if is_bad(middle) {
            bad = middle;
        } else {
            good = middle;
        }
    }
    entries.get(good).map(|(list, index)| format!("{list}/{index}"))
}

/// All entries of lists that are not in entries themselves: the pointers of the lists and the indices.
fn list_entries(schema: &Struct, object: &Object, pointer: &str, entries: &mut Vec<(String, usize)>) {
    for field in schema.fields {
        let Some(inner) = object.get(field.name) else { continue };
        let pointer = format!("{pointer}/{}", field.name);
        match (&field.kind, inner) {
            (Kind::Struct(schema), Json::Object(inner)) => list_entries(schema, inner, &pointer, entries),
            (Kind::List(..), Json::List(items)) => {
                entries.extend((0..items.len()).map(|index| (pointer.clone(), index)));
            }
            _ => {}
        }
    }
}

/// An override with only some entries of its lists: of each list the first ones.
fn only(child: &Document, kept: &[(String, usize)]) -> Document {
    let mut all = Vec::new();
    let mut tree = child.root().clone();
    list_entries(&CONFIG, &tree, "", &mut all);
    let lists: std::collections::BTreeSet<&String> = all.iter().map(|(list, _)| list).collect();
    for pointer in lists {
        let count = kept.iter().filter(|(list, _)| list == pointer).count();
        if let Some(list) = tree.pointer_mut(pointer).and_then(Json::as_list_mut) {
            list.truncate(count);
        }
    }
    Document::new(child.spec(), tree)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const FIELD: &str = "ignition_config_override";

    fn base() -> Document {
        let config = json!({
            "ignition": {"version": "3.1.0"},
            "storage": {"files": [
                {"path": "/etc/a", "user": {"name": "root"}, "contents": {"source": "data:,a"}},
                {"path": "/etc/b", "mode": 420, "user": {"name": "root"}, "contents": {"source": "data:,b"}},
            ]},
            "systemd": {"units": [{"name": "a.service", "contents": "[Unit]\nA=b\n"}]},
        });
        Document::parse(config.to_string().as_bytes()).unwrap().document
    }

    fn apply_text(text: &str) -> Result<Composed, ComposeError> {
        apply(&base(), FIELD, &Override::new(text))
    }

    fn error(text: &str) -> String {
        apply_text(text).unwrap_err().to_string()
    }

    #[test]
    fn a_bad_override_is_named_by_its_own_place() {
        assert_eq!(
            error("{"),
            "ignition_config_override: 1:1: error: /: not valid JSON: EOF while parsing an object at line 1 column 1"
        );
        assert!(error(r#"{"ignition":{"version":"2.2.0"}}"#).contains("/ignition/version: \"2.2.0\" is not"));
        let relative = "{\"ignition\":{\"version\":\"3.0.0\"},\n\"storage\":{\"files\":[{\"path\":\"a\"}]}}";
        let expected =
            "ignition_config_override: 2:29: error: /storage/files/0/path: the path \"a\" is not absolute";
        assert_eq!(error(relative), expected);
    }

    #[test]
    fn a_clash_is_named_by_the_place_in_the_override() {
        let both = r#"{"ignition":{"version":"3.1.0"},"storage":{"files":[{"path":"/x"},{"path":"/etc/b","user":{"id":0}}]}}"#;
        let ComposeError::Merged { finding, merged, .. } = apply_text(both).unwrap_err() else { panic!() };
        assert!(finding.pointer.starts_with("/storage/files/1/user"), "{finding}");
        assert!(merged.starts_with("/storage/files/1/user"), "{merged}");
        assert!(finding.position.is_some());
    }

    #[test]
    fn a_clash_elsewhere_is_traced_to_the_entry_that_makes_it() {
        let link = r#"{"ignition":{"version":"3.1.0"},"storage":{
            "files":[{"path":"/x"},{"path":"/y"}],
            "links":[{"path":"/l","target":"/x"},{"path":"/etc","target":"/x"},{"path":"/m","target":"/x"}]}}"#;
        let ComposeError::Merged { finding, merged, .. } = apply_text(link).unwrap_err() else { panic!() };
        assert_eq!((finding.pointer.as_str(), merged.as_str()), ("/storage/links/1", "/storage/files/0"));
        assert_eq!(finding.position.map(|position| position.line), Some(3));
    }

    #[test]
    fn what_has_no_effect_is_a_warning() {
        let composed = apply_text(r#"{"ignition":{"version":"3.1.0"},"storage":{"luks":[]}}"#).unwrap();
        assert_eq!(composed.warnings.findings()[0].pointer, "/storage/luks");
        assert_eq!(composed.config, base());
    }

    #[test]
    fn secrets_of_an_override_do_not_show() {
        let text = r#"{"ignition":{"version":"3.1.0"},"passwd":{"users":[{"name":"core","passwordHash":"hunter2"}]}}"#;
        assert!(!format!("{:?} {:?}", Override::new(text), apply_text(text)).contains("hunter2"));
    }
}
