//! The model of a config: one tree for all supported spec versions. The modules [`merge`](crate::merge),
//! [`translate`](crate::translate), [`validate`](crate::validate) and [`lint`](crate::lint) work on this tree.
//!
//! The reader follows Ignition: `null` is the same as absent, an absent mandatory value is an empty value, an unknown
//! key causes a warning, and a key in the wrong case is accepted. It is stricter in one point: a repeated key is an
//! error, while Ignition silently uses the last one.
//!
//! The tree contains no `null`, no empty list and no empty object, and its keys are in a fixed order. Equal configs are
//! therefore equal trees and equal bytes. [`rewrite`](crate::rewrite) preserves what the tree drops, like
//! `coreos-installer`.

use std::collections::HashSet;

use serde::{Serialize, Serializer};
use serde_json::Value;

use crate::json::{Json, Object};
use crate::json_pointer::JsonPointer;
use crate::position::{self, TextPosition};
use crate::report::{ConfigFinding, ConfigReport, ConfigRule, Severity};
use crate::schema::{CONFIG, EntryType, FieldSchema, FieldType, ObjectSchema};
use crate::spec::{Spec, UnknownSpec};
use crate::visible::visible;

/// A config of any supported spec version.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    spec: Spec,
    root: Object,
}

/// A parsed config, and warnings about keys without effect.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ParsedConfig {
    /// The parsed config.
    pub config: Config,
    /// Unknown keys and keys in the wrong case, with their positions in the text.
    pub warnings: ConfigReport,
}

/// The reason why a config cannot be read or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// The text is not JSON.
    #[error("not valid JSON")]
    Syntax(#[source] serde_json::Error),
    /// The text is a Butane config, which must be converted to an Ignition config first.
    #[error(
        "this is a Butane config ({}), not an Ignition config; convert it with `butane`",
        visible(variant)
    )]
    Butane {
        /// The value of `variant`, for example `fcos`.
        variant: String,
    },
    /// The version is missing or not supported.
    #[error("{0}")]
    Spec(UnknownSpec),
    /// A value has the wrong type.
    #[error("{} is {found}, but has to be {expected}", if pointer.is_empty() { "the config" } else { pointer })]
    WrongType {
        /// The JSON pointer of the value.
        pointer: String,
        /// The position of the value in the text, if known.
        position: Option<TextPosition>,
        /// The type that the schema requires.
        expected: &'static str,
        /// The type of the actual value.
        found: &'static str,
    },
    /// An object contains a key twice.
    #[error("the key {pointer} is repeated")]
    RepeatedKey {
        /// The JSON pointer of the key.
        pointer: String,
        /// The position of the last occurrence of the key, if known.
        position: Option<TextPosition>,
    },
    /// A mandatory key is missing. Only [`rewrite`](crate::rewrite::rewrite) requires these keys.
    #[error("{} has no {key:?}", if pointer.is_empty() { "the config" } else { pointer })]
    MissingKey {
        /// The JSON pointer of the object.
        pointer: String,
        /// The position of the object, if known.
        position: Option<TextPosition>,
        /// The missing key.
        key: &'static str,
    },
    /// The config cannot be written as JSON.
    #[error("cannot write the config as JSON")]
    Write(#[source] serde_json::Error),
}

impl ConfigError {
    pub(crate) fn to_finding(&self) -> ConfigFinding {
        let (rule, pointer, position, message) = match self {
            Self::Syntax(source) => {
                let position = TextPosition { line: source.line().max(1), column: source.column().max(1) };
                (ConfigRule::Syntax, "", Some(position), format!("{self}: {source}"))
            }
            Self::Butane { .. } => {
                (ConfigRule::Butane, "", Some(TextPosition { line: 1, column: 1 }), self.to_string())
            }
            Self::Spec(unknown) => (ConfigRule::SpecVersion, "/ignition/version", None, unknown.to_string()),
            Self::WrongType { pointer, position, expected, found } => (
                ConfigRule::WrongType,
                pointer.as_str(),
                *position,
                format!("is {found}, but has to be {expected}"),
            ),
            Self::RepeatedKey { pointer, position } => {
                (ConfigRule::RepeatedKey, pointer.as_str(), *position, "the key is repeated".to_owned())
            }
            Self::MissingKey { pointer, position, key } => {
                (ConfigRule::MissingKey, pointer.as_str(), *position, format!("has no {key:?}"))
            }
            Self::Write(source) => (ConfigRule::Syntax, "", None, format!("{self}: {source}")),
        };
        ConfigFinding { position, ..ConfigFinding::new(Severity::Error, rule, pointer, message) }
    }

    /// Returns the error for a text that is not JSON.
    pub(crate) fn not_json(text: &[u8], error: serde_json::Error) -> Self {
        match butane_variant(text) {
            Some(variant) => Self::Butane { variant },
            None => Self::Syntax(error),
        }
    }

    pub(crate) fn locate(mut self, text: &[u8]) -> Self {
        if let Self::WrongType { pointer, position, .. }
        | Self::MissingKey { pointer, position, .. }
        | Self::RepeatedKey { pointer, position } = &mut self
        {
            *position = position::locate(text, &[pointer]).into_iter().next().flatten();
        }
        self
    }
}

impl Config {
    /// Creates a config without any settings.
    #[cfg(test)]
    pub(crate) fn empty(spec: Spec) -> Self {
        Self::new(spec, Object::default())
    }

    /// Parses a config.
    ///
    /// # Errors
    ///
    /// * [`ConfigError::Syntax`] if the text is not JSON, or [`ConfigError::Butane`] if it is a Butane config.
    /// * [`ConfigError::Spec`] if the version is missing or not supported.
    /// * [`ConfigError::WrongType`] if a value has the wrong type.
    /// * [`ConfigError::RepeatedKey`] if an object contains a key twice.
    ///
    /// # Examples
    ///
    /// ```
    /// use ignition::config::Config;
    ///
    /// let text = br#"{"ignition": {"version": "3.1.0"}, "storage": {"luks": [], "files": [{"path": "/a"}]}}"#;
    /// let parsed = Config::parse(text)?;
    /// assert_eq!(parsed.warnings.findings()[0].pointer, "/storage/luks");
    /// let json = r#"{"ignition":{"version":"3.1.0"},"storage":{"files":[{"path":"/a"}]}}"#;
    /// assert_eq!(parsed.config.to_string(), json);
    /// # Ok::<(), ignition::config::ConfigError>(())
    /// ```
    pub fn parse(text: &[u8]) -> Result<ParsedConfig, ConfigError> {
        let json: Json = serde_json::from_slice(text).map_err(|error| ConfigError::not_json(text, error))?;
        Self::read(json).map_err(|error| error.locate(text)).map(|mut parsed| {
            parsed.warnings.locate(text);
            parsed
        })
    }

    /// Reads a JSON tree like [`parse`](Self::parse) reads a text.
    pub(crate) fn from_json(json: Json) -> Result<Self, ConfigError> {
        Ok(Self::read(json)?.config)
    }

    fn read(json: Json) -> Result<ParsedConfig, ConfigError> {
        let spec = spec_version(&json)?;
        let mut reader = SchemaReader { spec, warnings: ConfigReport::default() };
        let root = reader.object(&CONFIG, json, &JsonPointer::Root)?;
        Ok(ParsedConfig { config: Self { spec, root }, warnings: reader.warnings })
    }

    /// Returns the spec version of the config.
    #[must_use]
    pub fn spec(&self) -> Spec {
        self.spec
    }

    /// Returns the config as a JSON value. Keys are in a fixed order, and unknown keys, `null` and empty values are
    /// absent.
    #[must_use]
    pub fn to_value(&self) -> Value {
        Json::Object(self.root.clone()).into()
    }

    /// Returns the config as JSON on one line.
    ///
    /// # Errors
    ///
    /// Returns [`ConfigError::Write`] if the JSON writer fails.
    pub fn to_json(&self) -> Result<String, ConfigError> {
        serde_json::to_string(&self.root).map_err(ConfigError::Write)
    }

    /// Returns the config as JSON on several lines, with a final newline.
    #[must_use]
    pub fn to_pretty(&self) -> String {
        format!("{:#}\n", self.to_value())
    }

    pub(crate) fn new(spec: Spec, root: Object) -> Self {
        let mut config = Self { spec, root };
        config.set_spec(spec);
        config
    }

    pub(crate) fn set_spec(&mut self, spec: Spec) {
        self.spec = spec;
        if self.root.get("ignition").is_none() {
            self.root.set("ignition", Json::Object(Object::default()));
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

/// Returns the variant of a Butane config: YAML with the keys `variant` and `version`.
fn butane_variant(text: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(text).ok()?;
    let value_of = |key: &str| {
        let value = text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':'))?;
        Some(value.trim().trim_matches(['"', '\'']))
    };
    let is_name = |name: &&str| {
        (1..=32).contains(&name.len()) && name.bytes().all(|it| it.is_ascii_alphanumeric() || it == b'-')
    };
    value_of("version").and_then(|_| value_of("variant")).filter(is_name).map(str::to_owned)
}

/// Writes the config as JSON on one line.
impl std::fmt::Display for Config {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.to_json().map_err(|_| std::fmt::Error)?)
    }
}

/// Serializes the config as JSON.
impl Serialize for Config {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.root.serialize(serializer)
    }
}

/// Returns the spec version of a config. The schema of all other keys depends on it.
pub(crate) fn spec_version(config: &Json) -> Result<Spec, ConfigError> {
    let root = JsonPointer::Root;
    let (key, ignition) = field_in_any_case(config, "ignition", &root)?.unwrap_or(("", &Json::Null));
    let pointer = JsonPointer::Field(&root, key);
    let version = match field_in_any_case(ignition, "version", &pointer)? {
        None | Some((_, Json::Null)) => "",
        Some((_, Json::Text(version))) => version,
        Some((key, other)) => return Err(wrong_type(&JsonPointer::Field(&pointer, key), "a string", other)),
    };
    version.parse().map_err(ConfigError::Spec)
}

/// Returns a field of an object and the actual spelling of its key. A key in the right case has precedence.
fn field_in_any_case<'a>(
    json: &'a Json,
    key: &str,
    pointer: &JsonPointer,
) -> Result<Option<(&'a str, &'a Json)>, ConfigError> {
    let object = match json {
        Json::Object(object) => object,
        Json::Null => return Ok(None),
        other => return Err(wrong_type(pointer, "an object", other)),
    };
    let exact = object.iter().find(|(name, _)| *name == key);
    Ok(exact.or_else(|| object.iter().find(|(name, _)| name.eq_ignore_ascii_case(key))))
}

/// A converter from JSON to a tree that follows the schema.
struct SchemaReader {
    spec: Spec,
    warnings: ConfigReport,
}

impl SchemaReader {
    fn object(
        &mut self,
        schema: &'static ObjectSchema,
        json: Json,
        pointer: &JsonPointer,
    ) -> Result<Object, ConfigError> {
        let fields = match json {
            Json::Object(fields) => fields,
            Json::Null => Object::default(),
            other => return Err(wrong_type(pointer, "an object", &other)),
        };
        let mut unknown = HashSet::new();
        let mut used_fields: Vec<&FieldSchema> = Vec::with_capacity(schema.fields.len());
        let mut object = Object::with_capacity(fields.len().min(schema.fields.len()));
        for (key, json) in fields {
            let pointer = JsonPointer::Field(pointer, &key);
            let is_new = match self.field(schema, &key, pointer) {
                Some(field) if used_fields.iter().any(|it| std::ptr::eq(*it, field)) => false,
                Some(field) => {
                    used_fields.push(field);
                    if let Some(value) = self.value(field, json, &pointer)? {
                        object.add(field.name, value);
                    }
                    true
                }
                None => unknown.insert(key.clone()),
            };
            if !is_new {
                return Err(ConfigError::RepeatedKey { pointer: pointer.to_string(), position: None });
            }
        }
        for field in schema.fields.iter().filter(|field| field.is_plain(self.spec)) {
            if object.get(field.name).is_none() {
                object.add(field.name, "".into());
            }
        }
        // Sort the fields, because the schema lists fields in alphabetical order.
        object.sort();
        Ok(object)
    }

    /// Returns the field for a key. Adds a warning if the key is unknown or in the wrong case.
    fn field(
        &mut self,
        schema: &'static ObjectSchema,
        key: &str,
        pointer: JsonPointer,
    ) -> Option<&'static FieldSchema> {
        let is_in_spec = |field: &&FieldSchema| field.since <= self.spec;
        if let Some(field) = schema.field(key).filter(is_in_spec) {
            return Some(field);
        }
        let similar =
            schema.fields.iter().filter(is_in_spec).find(|field| field.name.eq_ignore_ascii_case(key));
        let message = match (similar, schema.field(key)) {
            (Some(field), _) => format!("wrong case: Ignition reads the key as {:?}", field.name),
            (None, Some(field)) => {
                format!("unknown key: spec {} does not have it, {} does", self.spec, field.since)
            }
            (None, None) => "unknown key: Ignition ignores it".to_owned(),
        };
        self.warnings.push(ConfigFinding::new(
            Severity::Warning,
            ConfigRule::UnknownKey,
            pointer.to_string(),
            message,
        ));
        similar
    }

    /// Returns a value in the form of the tree, or `None` if Ignition treats the value as absent.
    fn value(
        &mut self,
        field: &'static FieldSchema,
        json: Json,
        pointer: &JsonPointer,
    ) -> Result<Option<Json>, ConfigError> {
        match (&field.kind, json) {
            (_, Json::Null) => Ok(None),
            // The number of a partition is the only integer whose value zero means that it is absent.
            (FieldType::Integer, Json::Integer(0)) if field.name == "number" => Ok(None),
            (FieldType::Text, json @ Json::Text(_))
            | (FieldType::Integer, json @ Json::Integer(_))
            | (FieldType::Boolean, json @ Json::Boolean(_)) => Ok(Some(json)),
            (FieldType::Struct(schema), json) => {
                self.object(schema, json, pointer).map(Json::non_empty_object)
            }
            (FieldType::List(item, _), Json::List(items)) => {
                let mut item = |(index, json)| self.item(item, json, &JsonPointer::Entry(pointer, index));
                let list = items.into_iter().enumerate().map(&mut item).collect::<Result<_, _>>()?;
                Ok(Json::non_empty_list(list))
            }
            (kind, other) => Err(wrong_type(pointer, expected_type(kind), &other)),
        }
    }

    fn item(
        &mut self,
        item: &'static EntryType,
        json: Json,
        pointer: &JsonPointer,
    ) -> Result<Json, ConfigError> {
        match (item, json) {
            (EntryType::Struct(schema), json) => self.object(schema, json, pointer).map(Json::Object),
            (EntryType::Text, json @ Json::Text(_)) => Ok(json),
            (EntryType::Text, Json::Null) => Ok("".into()),
            (EntryType::Text, other) => Err(wrong_type(pointer, "a string", &other)),
        }
    }
}

pub(crate) fn expected_type(kind: &FieldType) -> &'static str {
    match kind {
        FieldType::Text => "a string",
        FieldType::Integer => "an integer",
        FieldType::Boolean => "a boolean",
        FieldType::Struct(_) => "an object",
        FieldType::List(..) => "a list",
    }
}

pub(crate) fn wrong_type(pointer: &JsonPointer, expected: &'static str, actual: &Json) -> ConfigError {
    ConfigError::WrongType {
        pointer: pointer.to_string(),
        position: None,
        expected,
        found: actual.type_name(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn absent_mandatory_values_are_read_as_empty() {
        let text = r#"{"ignition":{"version":"3.0.0"},"storage":{"raid":[{}]}}"#;
        let config = Config::parse(text.as_bytes()).unwrap().config;
        let raid = r#""storage":{"raid":[{"level":"","name":""}]}"#;
        assert!(config.to_string().contains(raid), "{config}");
    }

    #[test]
    fn butane_config_is_recognized() {
        let text = "# a comment\nvariant: fcos\nversion: 1.5.0\n";
        let error = Config::parse(text.as_bytes()).unwrap_err();
        let expected = "this is a Butane config (fcos), not an Ignition config; convert it with `butane`";
        assert_eq!(error.to_string(), expected);
        assert_eq!(error.to_finding().to_string(), format!("1:1: error: /: {expected}"));
        for text in
            ["variant: fcos\n", "version: 1.5.0\n", "variant: \nversion: 1\n", " variant: a\n version: 1\n"]
        {
            assert!(matches!(Config::parse(text.as_bytes()), Err(ConfigError::Syntax(_))), "{text}");
        }
    }

    #[test]
    fn errors_name_the_value() {
        for (text, message, finding) in [
            (
                "[",
                "not valid JSON",
                "1:1: error: /: not valid JSON: EOF while parsing a list at line 1 column 1",
            ),
            (
                r#"{"ignition":{"version":"3.7.0"}}"#,
                r#""3.7.0" is not a supported spec version; supported are 3.0.0 to 3.6.0"#,
                r#"error: /ignition/version: "3.7.0" is not a supported spec version; supported are 3.0.0 to 3.6.0"#,
            ),
            (
                r#"{"ignition":{"version":"3.1.0","timeouts":{"httpTotal":1.5}}}"#,
                "/ignition/timeouts/httpTotal is a number that is not a 64-bit integer, but has to be an integer",
                "1:56: error: /ignition/timeouts/httpTotal: is a number that is not a 64-bit integer, but has to be an integer",
            ),
            (
                r#"{"ignition":{"version":"3.1.0"},"ignition":{}}"#,
                "the key /ignition is repeated",
                "1:44: error: /ignition: the key is repeated",
            ),
        ] {
            let error = Config::parse(text.as_bytes()).unwrap_err();
            assert_eq!(
                (error.to_string().as_str(), error.to_finding().to_string().as_str()),
                (message, finding)
            );
        }
    }
}
