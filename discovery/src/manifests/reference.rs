//! Lookup of the objects that manifests refer to.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use super::{Manifests, Object};
use crate::{DiscoveryReport, Located, SourceLocation, Text};

/// The object that a reference points to.
#[derive(Clone, Copy, Debug)]
pub(super) struct ReferencedObject<'a> {
    pub(super) kind: &'a str,
    pub(super) namespace: &'a str,
    pub(super) name: &'a str,
}

impl Manifests {
    /// Returns the object that a reference points to. Reports a missing or ambiguous object at the location of the
    /// reference. An object without a namespace matches any namespace, because it gets its namespace when it is
    /// applied.
    pub(super) fn find<'a>(
        &'a self,
        reference: ReferencedObject<'_>,
        from: &SourceLocation,
        findings: &mut DiscoveryReport,
    ) -> Option<&'a Object> {
        let ReferencedObject { kind, namespace, name } = reference;
        let is_near = |object: &&Object| {
            object.name() == name
                && (object.namespace() == namespace || object.namespace().is_empty() || namespace.is_empty())
        };
        let candidates: Vec<&Object> = self.objects_of_kind(kind).filter(is_near).collect();
        match candidates.as_slice() {
            [object] => Some(object),
            [] => {
                let elsewhere = self.objects_of_kind(kind).find(|object| object.name() == name);
                let message = match elsewhere {
                    Some(object) => {
                        format!("found {object}, but it is not in namespace {namespace:?}")
                    }
                    None => {
                        format!("no {kind} named {name:?} in {}", self.location())
                    }
                };
                findings.error(from.clone(), message);
                None
            }
            [first, second, ..] => {
                findings.error(from.clone(), duplicate_message([first, second]));
                None
            }
        }
    }
}

/// Returns the message for two objects with the same kind, namespace and name.
pub(super) fn duplicate_message([one, other]: [&Object; 2]) -> String {
    let [first, second] = [one, other].map(|it| it.location_of("metadata.name").line());
    format!("duplicate {one}: see {first} and {second}")
}

impl Object {
    /// Returns the location of a key in a section such as `data`. Such keys contain dots, so the path ends at the
    /// section.
    pub(super) fn location_of_key(&self, section: &str, key: &str) -> SourceLocation {
        SourceLocation {
            line: self.location_of(&format!("{section}.{key}")).line,
            ..self.location_of(section)
        }
    }

    /// Returns a value of a Secret, from plain text or base64. Findings leave out the value.
    pub(super) fn secret_text(&self, key: &str, findings: &mut DiscoveryReport) -> Option<Text> {
        let text = |section: &str| self.get(section).and_then(|it| it.get(key)).filter(|it| !it.is_null());
        if let Some(value) = text("stringData") {
            let place = self.location_of_key("stringData", key);
            return require_string(value, place, findings);
        }
        let Some(value) = text("data") else {
            findings.error(self.location_of(""), format!("the {self} has no {key:?} in data or stringData"));
            return None;
        };
        let encoded = require_string(value, self.location_of_key("data", key), findings)?;
        let compact: String = encoded.value.split_whitespace().collect();
        let decoded = STANDARD.decode(compact).ok().and_then(|bytes| String::from_utf8(bytes).ok());
        if decoded.is_none() {
            findings.error(encoded.place.clone(), format!("the value of {key:?} is not text in base64"));
        }
        Some(Located::new(decoded?, encoded.place))
    }

    /// Returns a value of a config map, if it is present.
    pub(super) fn config_text(&self, key: &str, findings: &mut DiscoveryReport) -> Option<Text> {
        let value = self.get("data")?.get(key).filter(|it| !it.is_null())?;
        require_string(value, self.location_of_key("data", key), findings)
    }
}

fn require_string(value: &Value, place: SourceLocation, findings: &mut DiscoveryReport) -> Option<Text> {
    let Some(text) = value.as_str() else {
        findings.error(place, "has to be a string");
        return None;
    };
    Some(Located::new(text.to_owned(), place))
}
