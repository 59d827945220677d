//! A config of any supported spec version as one tree: what [`merge`](crate::merge), [`translate`](crate::translate),
//! [`validate`](crate::validate) and [`lint`](crate::lint) work on.
//!
//! Reading follows Ignition: `null` and absent are the same, an absent mandatory value is an empty one, an unknown key is
//! a warning, and a key in the wrong case is used. It is stricter in one thing: a repeated key is an error, where
//! Ignition silently takes the last.
//!
//! The tree holds no `null`, no empty list and no empty object, and its keys have one order. So equal configs are equal
//! trees and equal bytes.

use std::collections::HashSet;

use serde::{Serialize, Serializer};
use serde_json::Value;

use crate::config::{self, Config, ConfigError};
use crate::json::{Json, Object};
use crate::place::Place;
use crate::position::{self, Position};
use crate::report::{Finding, Report, Severity};
use crate::schema::{CONFIG, Field, Item, Kind, Struct};
use crate::spec::{Spec, UnknownSpec};

/// A config of any supported spec version.
#[derive(Clone, Debug, PartialEq)]
pub struct Document {
    spec: Spec,
    root: Object,
}

/// A config that was read, with what has no effect in it.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Parsed {
    /// The config.
    pub document: Document,
    /// Unknown keys and keys in the wrong case, with their lines.
    pub warnings: Report,
}

/// Why a text is no config.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// The text is not JSON.
    #[error("not valid JSON")]
    Syntax(#[source] serde_json::Error),
    /// The version is missing or not supported.
    #[error("{0}")]
    Spec(UnknownSpec),
    /// A value is of the wrong kind.
    #[error("{} is {found}, but has to be {expected}", if pointer.is_empty() { "the config" } else { pointer })]
    Kind {
        /// The JSON pointer of the value.
        pointer: String,
        /// Where it stands.
        position: Option<Position>,
        /// What it has to be.
        expected: &'static str,
        /// What it is.
        found: &'static str,
    },
    /// An object has a key twice.
    #[error("the key {pointer} is repeated")]
    Repeated {
        /// The JSON pointer of the key.
        pointer: String,
        /// Where the last one stands.
        position: Option<Position>,
    },
}

impl ReadError {
    /// The error as a finding.
    #[must_use]
    pub fn to_finding(&self) -> Finding {
        let error = |pointer: &str, message: String| Finding::new(Severity::Error, pointer, message);
        match self {
            Self::Syntax(source) => Finding {
                position: Some(Position { line: source.line().max(1), column: source.column().max(1) }),
                ..error("", format!("{self}: {source}"))
            },
            Self::Spec(unknown) => error("/ignition/version", unknown.to_string()),
            Self::Kind { pointer, position, expected, found } => Finding {
                position: *position,
                ..error(pointer, format!("is {found}, but has to be {expected}"))
            },
            Self::Repeated { pointer, position } => {
                Finding { position: *position, ..error(pointer, "the key is repeated".to_owned()) }
            }
        }
    }

    fn locate(mut self, text: &[u8]) -> Self {
        if let Self::Kind { pointer, position, .. } | Self::Repeated { pointer, position } = &mut self {
            *position = position::locate(text, &[pointer]).into_iter().next().flatten();
        }
        self
    }
}

impl Document {
    /// A config that does nothing.
    #[must_use]
    pub fn empty(spec: Spec) -> Self {
        let mut empty = Self { spec, root: Object::default() };
        empty.set_spec(spec);
        empty
    }

    /// Reads a config.
    ///
    /// # Errors
    ///
    /// When the text is not JSON, when the version is missing or unknown, when a value is of the wrong kind, and when a
    /// key is repeated.
    ///
    /// # Examples
    ///
    /// ```
    /// use ignition::document::Document;
    ///
    /// let text = br#"{"ignition": {"version": "3.1.0"}, "storage": {"luks": [], "files": [{"path": "/a"}]}}"#;
    /// let parsed = Document::parse(text)?;
    /// assert_eq!(parsed.warnings.findings()[0].pointer, "/storage/luks");
    /// let json = r#"{"ignition":{"version":"3.1.0"},"storage":{"files":[{"path":"/a"}]}}"#;
    /// assert_eq!(parsed.document.to_string(), json);
    /// # Ok::<(), ignition::document::ReadError>(())
    /// ```
    pub fn parse(text: &[u8]) -> Result<Parsed, ReadError> {
        let json: Json = serde_json::from_slice(text).map_err(ReadError::Syntax)?;
        Self::read(json).map_err(|error| error.locate(text)).map(|mut parsed| {
            parsed.warnings.locate(text);
            parsed
        })
    }

    /// As [`parse`](Self::parse), of what never was a text.
    pub(crate) fn of_json(json: Json) -> Result<Self, ReadError> {
        Ok(Self::read(json)?.document)
    }

    fn read(json: Json) -> Result<Parsed, ReadError> {
        let spec = version(&json)?;
        let mut reader = Reader { spec, warnings: Report::default() };
        let root = reader.object(&CONFIG, json, &Place::Root)?;
        Ok(Parsed { document: Self { spec, root }, warnings: reader.warnings })
    }

    /// The spec version.
    #[must_use]
    pub fn spec(&self) -> Spec {
        self.spec
    }

    /// The tree as any JSON, to look into: known keys in a fixed order, no `null`, nothing empty.
    #[must_use]
    pub fn to_value(&self) -> Value {
        Json::Object(self.root.clone()).into()
    }

    /// The config in the types of its spec version.
    ///
    /// # Errors
    ///
    /// Only when those types differ from the specification that this crate knows.
    pub fn to_config(&self) -> Result<Config, ConfigError> {
        let mut document = self.clone();
        if self.spec <= Spec::V3_2 {
            document.spell_out_devices();
        }
        Ok(config::parse(document.to_json().as_bytes())?.config)
    }

    /// The types up to 3.2 want to have the devices of an array, be it an empty list.
    fn spell_out_devices(&mut self) {
        let arrays = self.root.get_mut("storage").and_then(|storage| storage.get_mut("raid"));
        for array in arrays.and_then(Json::as_list_mut).into_iter().flatten() {
            if let Json::Object(array) = array
                && array.get("devices").is_none()
            {
                array.set("devices", Json::List(Vec::new()));
            }
        }
    }

    /// The config as JSON on one line.
    #[must_use]
    pub fn to_json(&self) -> String {
        // A tree of such values always has a JSON form.
        serde_json::to_string(&self.root).unwrap_or_default()
    }

    /// The config as JSON over several lines, with a final newline.
    #[must_use]
    pub fn to_pretty(&self) -> String {
        format!("{:#}\n", self.to_value())
    }

    pub(crate) fn new(spec: Spec, root: Object) -> Self {
        let mut document = Self { spec, root };
        document.set_spec(spec);
        document
    }

    pub(crate) fn set_spec(&mut self, spec: Spec) {
        self.spec = spec;
        if self.root.get("ignition").is_none() {
            self.root.set("ignition", Object::default().into());
        }
        if let Some(Json::Object(ignition)) = self.root.get_mut("ignition") {
            ignition.set("version", spec.as_str().into());
        }
    }

    pub(crate) fn root(&self) -> &Object {
        &self.root
    }

    pub(crate) fn root_mut(&mut self) -> &mut Object {
        &mut self.root
    }
}

/// The config as JSON on one line.
impl std::fmt::Display for Document {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.to_json())
    }
}

/// The config as JSON.
impl Serialize for Document {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.root.serialize(serializer)
    }
}

impl TryFrom<&Config> for Document {
    type Error = ReadError;

    fn try_from(config: &Config) -> Result<Self, ReadError> {
        let json = serde_json::to_vec(config).map_err(ReadError::Syntax)?;
        Ok(Self::parse(&json)?.document)
    }
}

/// The version of a config, which tells how to read everything else.
fn version(config: &Json) -> Result<Spec, ReadError> {
    let root = Place::Root;
    let (key, ignition) = field(config, "ignition", &root)?.unwrap_or(("", &Json::Null));
    let place = Place::Field(&root, key);
    let version = match field(ignition, "version", &place)? {
        None | Some((_, Json::Null)) => "",
        Some((_, Json::Text(version))) => version,
        Some((key, other)) => return Err(wrong_kind(&Place::Field(&place, key), "a string", other)),
    };
    version.parse().map_err(ReadError::Spec)
}

/// A field of an object with its key, which may be in the wrong case.
fn field<'a>(json: &'a Json, key: &str, place: &Place) -> Result<Option<(&'a str, &'a Json)>, ReadError> {
    let object = match json {
        Json::Object(object) => object,
        Json::Null => return Ok(None),
        other => return Err(wrong_kind(place, "an object", other)),
    };
    let exact = object.iter().find(|(name, _)| *name == key);
    Ok(exact.or_else(|| object.iter().find(|(name, _)| name.eq_ignore_ascii_case(key))))
}

/// Turns JSON into a tree that follows the table.
struct Reader {
    spec: Spec,
    warnings: Report,
}

impl Reader {
    fn object(&mut self, schema: &'static Struct, json: Json, place: &Place) -> Result<Object, ReadError> {
        let given = match json {
            Json::Object(fields) => fields,
            Json::Null => Object::default(),
            other => return Err(wrong_kind(place, "an object", &other)),
        };
        let mut unknown = HashSet::new();
        let mut known: Vec<&Field> = Vec::with_capacity(schema.fields.len());
        let mut object = Object::with_capacity(given.len().min(schema.fields.len()));
        for (key, json) in given {
            let place = Place::Field(place, &key);
            let is_new = match self.field(schema, &key, place) {
                Some(field) if known.iter().any(|it| std::ptr::eq(*it, field)) => false,
                Some(field) => {
                    known.push(field);
                    if let Some(value) = self.value(field, json, &place)? {
                        object.add(field.name, value);
                    }
                    true
                }
                None => unknown.insert(key.clone()),
            };
            if !is_new {
                return Err(ReadError::Repeated { pointer: place.to_string(), position: None });
            }
        }
        for field in schema.fields.iter().filter(|field| field.is_plain(self.spec)) {
            if object.get(field.name).is_none() {
                object.add(field.name, "".into());
            }
        }
        // Fields are in the order of their names in the table, too.
        object.sort();
        Ok(object)
    }

    /// The field that a key means, and a warning where it does not say so properly.
    fn field(&mut self, schema: &'static Struct, key: &str, place: Place) -> Option<&'static Field> {
        let known = |field: &&Field| field.since <= self.spec;
        if let Some(field) = schema.field(key).filter(known) {
            return Some(field);
        }
        let similar = schema.fields.iter().filter(known).find(|field| field.name.eq_ignore_ascii_case(key));
        let message = match (similar, schema.field(key)) {
            (Some(field), _) => format!("wrong case: Ignition reads the key as {:?}", field.name),
            (None, Some(field)) => {
                format!("unknown key: spec {} does not have it, {} does", self.spec, field.since)
            }
            (None, None) => "unknown key: Ignition ignores it".to_owned(),
        };
        self.warnings.push(Finding::new(Severity::Warning, place.to_string(), message));
        similar
    }

    /// A value as the tree holds it: nothing, where it is as good as absent.
    fn value(&mut self, field: &'static Field, json: Json, place: &Place) -> Result<Option<Json>, ReadError> {
        let value = match (&field.kind, json) {
            (_, Json::Null) => return Ok(None),
            // A partition's number is the only plain one: zero is absent.
            (Kind::Integer, Json::Integer(0)) if field.name == "number" => return Ok(None),
            (Kind::Text, json @ Json::Text(_))
            | (Kind::Integer, json @ Json::Integer(_))
            | (Kind::Boolean, json @ Json::Boolean(_)) => json,
            (Kind::Struct(schema), json) => {
                let object = self.object(schema, json, place)?;
                return Ok((!object.is_empty()).then(|| object.into()));
            }
            (Kind::List(item, _), Json::List(items)) => {
                let items = items.into_iter().enumerate();
                let list: Result<Vec<Json>, _> =
                    items.map(|(index, json)| self.item(item, json, &Place::Entry(place, index))).collect();
                let list = list?;
                return Ok((!list.is_empty()).then_some(Json::List(list)));
            }
            (kind, other) => return Err(wrong_kind(place, expected(kind), &other)),
        };
        Ok(Some(value))
    }

    fn item(&mut self, item: &'static Item, json: Json, place: &Place) -> Result<Json, ReadError> {
        match (item, json) {
            (Item::Struct(schema), json) => self.object(schema, json, place).map(Json::Object),
            (Item::Text, json @ Json::Text(_)) => Ok(json),
            (Item::Text, Json::Null) => Ok("".into()),
            (Item::Text, other) => Err(wrong_kind(place, "a string", &other)),
        }
    }
}

fn expected(kind: &Kind) -> &'static str {
    match kind {
        Kind::Text => "a string",
        Kind::Integer => "an integer",
        Kind::Boolean => "a boolean",
        Kind::Struct(_) => "an object",
        Kind::List(..) => "a list",
    }
}

fn wrong_kind(place: &Place, expected: &'static str, found: &Json) -> ReadError {
    ReadError::Kind { pointer: place.to_string(), position: None, expected, found: found.kind() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_mandatory_in_old_types_may_be_absent() {
        let text = r#"{"ignition":{"security":{"tls":{"certificateAuthorities":[{}]}},"version":"3.0.0"},"storage":{"raid":[{}]}}"#;
        let document = Document::parse(text.as_bytes()).unwrap().document;
        let raid = r#""storage":{"raid":[{"level":"","name":""}]}"#;
        assert!(document.to_string().contains(raid), "{document}");
        let config = document.to_config().unwrap();
        assert_eq!(Document::try_from(&config).unwrap(), document);
    }
}
