//! References from one manifest to another.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use super::{Manifests, Object};
use crate::discovery::{Findings, Given, Place, Text};

/// What a reference asks for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wanted<'a> {
    pub(super) kind: &'a str,
    pub(super) namespace: &'a str,
    pub(super) name: &'a str,
}

impl Manifests {
    /// The object that is referred to, or a finding at the reference. An object that names no namespace is in all of them:
    /// it gets one where it is applied.
    pub(super) fn find<'a>(
        &'a self,
        wanted: Wanted<'_>,
        from: &Place,
        findings: &mut Findings,
    ) -> Option<&'a Object> {
        let Wanted { kind, namespace, name } = wanted;
        let is_near = |object: &&Object| {
            object.name() == name
                && (object.namespace() == namespace || object.namespace().is_empty() || namespace.is_empty())
        };
        let found: Vec<&Object> = self.of_kind(kind).filter(is_near).collect();
        match found.as_slice() {
            [object] => Some(object),
            [] => {
                let elsewhere = self.of_kind(kind).find(|object| object.name() == name);
                let message = match elsewhere {
                    Some(object) => {
                        format!("there is a {object}, which is in another namespace than {namespace:?}")
                    }
                    None => {
                        format!("there is no {kind} of the name {name:?} in {}", self.directory.display())
                    }
                };
                findings.error(from.clone(), message);
                None
            }
            [first, second, ..] => {
                findings.error(from.clone(), there_are_two([first, second]));
                None
            }
        }
    }
}

/// What there is to say of two objects of one name.
pub(super) fn there_are_two([one, other]: [&Object; 2]) -> String {
    let [first, second] = [one, other].map(|it| it.at("metadata.name").line());
    format!("there are two of {one}: see {first} and {second}")
}

impl Object {
    /// The line of a key in a section. Such keys have dots, so the path is that of the section.
    fn at_key(&self, section: &str, key: &str) -> Place {
        Place { line: self.at(&format!("{section}.{key}")).line, ..self.at(section) }
    }

    /// A text of a secret, which stands as it is or as base64. The finding has no value.
    pub(super) fn secret_text(&self, key: &str, findings: &mut Findings) -> Option<Text> {
        let text = |section: &str| self.get(section).and_then(|it| it.get(key)).filter(|it| !it.is_null());
        if let Some(value) = text("stringData") {
            let place = self.at_key("stringData", key);
            return string(value, place, findings);
        }
        let Some(value) = text("data") else {
            findings.error(self.at(""), format!("the {self} has no {key:?} in data or stringData"));
            return None;
        };
        let encoded = string(value, self.at_key("data", key), findings)?;
        let compact: String = encoded.value.split_whitespace().collect();
        let decoded = STANDARD.decode(compact).ok().and_then(|bytes| String::from_utf8(bytes).ok());
        if decoded.is_none() {
            findings.error(encoded.place.clone(), format!("the value of {key:?} is no text in base64"));
        }
        Some(Given::new(decoded?, encoded.place))
    }

    /// A text of a config map, if it has it.
    pub(super) fn config_text(&self, key: &str, findings: &mut Findings) -> Option<Text> {
        let value = self.get("data")?.get(key).filter(|it| !it.is_null())?;
        string(value, self.at_key("data", key), findings)
    }
}

fn string(value: &Value, place: Place, findings: &mut Findings) -> Option<Text> {
    let Some(text) = value.as_str() else {
        findings.error(place, "has to be a string");
        return None;
    };
    Some(Given::new(text.to_owned(), place))
}
