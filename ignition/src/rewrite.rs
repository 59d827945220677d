//! Rewrites configs in the format of `coreos-installer`.
//!
//! `coreos-installer` reads a config into Rust types for its spec version and serializes those types. An unset text,
//! number or boolean becomes `null` (the schema lists a few exceptions). An unset object or list is omitted, and an
//! empty one is kept. An unknown key is dropped with a warning.
//!
//! [`Config`](crate::config::Config), like Ignition, does not distinguish these cases, so this module works on the
//! text. The tests compare it with `ignition-config`, the crate that contains the types of `coreos-installer`.

use crate::config::{ConfigError, expected_type, spec_version, wrong_type};
use crate::json::{Json, Object};
use crate::json_pointer::JsonPointer;
use crate::schema::{CONFIG, EntryType, FieldSchema, FieldType, ObjectSchema, UnsetField};
use crate::spec::Spec;

/// A config in the format of `coreos-installer`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RewrittenConfig {
    /// The config as JSON on one line, without a final newline.
    pub json: String,
    /// A warning for each dropped key, in the order of the text.
    pub warnings: Vec<String>,
}

/// Parses a config as strictly as `coreos-installer` and writes it in the format of `coreos-installer`.
///
/// # Errors
///
/// * [`ConfigError::Syntax`] if the text is not JSON, or [`ConfigError::Butane`] if it is a Butane config.
/// * [`ConfigError::Spec`] if the version is missing or not supported.
/// * [`ConfigError::MissingKey`] if a mandatory key is missing.
/// * [`ConfigError::WrongType`] if a value has the wrong type.
/// * [`ConfigError::RepeatedKey`] if a known key is repeated.
///
/// # Examples
///
/// ```
/// let text = br#"{"ignition": {"version": "3.3.0"}, "colour": "blue", "storage": {"links": [{"path": "/a"}]}}"#;
/// let rewritten = ignition::rewrite::rewrite(text)?;
/// let links = r#"[{"hard":null,"overwrite":null,"path":"/a","target":null}]"#;
/// assert_eq!(rewritten.json, format!(r#"{{"ignition":{{"version":"3.3.0"}},"storage":{{"links":{links}}}}}"#));
/// assert_eq!(rewritten.warnings, ["unused key: $.colour"]);
/// # Ok::<(), ignition::config::ConfigError>(())
/// ```
pub fn rewrite(text: &[u8]) -> Result<RewrittenConfig, ConfigError> {
    let json = serde_json::from_slice(text).map_err(|error| ConfigError::not_json(text, error))?;
    rewrite_tree(json).map_err(|error| error.locate(text))
}

/// Rewrites a JSON tree like [`rewrite`] rewrites a text.
pub(crate) fn rewrite_tree(json: Json) -> Result<RewrittenConfig, ConfigError> {
    let mut rewriter = Rewriter { spec: spec_version(&json)?, warnings: Vec::new() };
    let root = rewriter.object(&CONFIG, json, &JsonPointer::Root)?;
    let json = serde_json::to_string(&root).map_err(ConfigError::Write)?;
    Ok(RewrittenConfig { json, warnings: rewriter.warnings })
}

struct Rewriter {
    spec: Spec,
    warnings: Vec<String>,
}

impl Rewriter {
    /// Reads the keys in the order of the text, which determines the order of warnings. Returns the fields in the order
    /// of the schema.
    fn object(
        &mut self,
        schema: &'static ObjectSchema,
        json: Json,
        pointer: &JsonPointer,
    ) -> Result<Json, ConfigError> {
        let fields = match json {
            Json::Object(fields) => fields,
            other => return Err(wrong_type(pointer, "an object", &other)),
        };
        let mut read = Object::with_capacity(fields.len());
        for (key, value) in fields {
            let inner = JsonPointer::Field(pointer, &key);
            let Some(field) = schema.field(&key).filter(|field| field.since <= self.spec) else {
                self.warnings.push(format!("unused key: {}", dotted_path(&inner)));
                continue;
            };
            if read.get(field.name).is_some() {
                return Err(ConfigError::RepeatedKey { pointer: inner.to_string(), position: None });
            }
            read.add(field.name, self.value(field, value, &inner)?);
        }
        self.in_schema_order(schema, read, pointer)
    }

    /// Returns the fields of an object in the order of the schema, including the unset fields that become `null`.
    fn in_schema_order(
        &self,
        schema: &'static ObjectSchema,
        mut read: Object,
        pointer: &JsonPointer,
    ) -> Result<Json, ConfigError> {
        let mut complete = Object::with_capacity(schema.fields.len());
        for field in schema.fields.iter().filter(|field| field.since <= self.spec) {
            let value = read.get_mut(field.name).map(|value| std::mem::replace(value, Json::Null));
            match (value.filter(|value| *value != Json::Null), field.when_unset(self.spec)) {
                (Some(value), _) => complete.add(field.name, value),
                (None, UnsetField::Null) => complete.add(field.name, Json::Null),
                (None, UnsetField::Omitted) => {}
                (None, UnsetField::Rejected) => {
                    let pointer = pointer.to_string();
                    return Err(ConfigError::MissingKey { pointer, position: None, key: field.name });
                }
            }
        }
        Ok(Json::Object(complete))
    }

    fn value(
        &mut self,
        field: &'static FieldSchema,
        json: Json,
        pointer: &JsonPointer,
    ) -> Result<Json, ConfigError> {
        match (&field.kind, json) {
            (_, Json::Null) => Ok(Json::Null),
            (FieldType::Text, json @ Json::Text(_))
            | (FieldType::Integer, json @ Json::Integer(_))
            | (FieldType::Boolean, json @ Json::Boolean(_)) => Ok(json),
            (FieldType::Struct(schema), json) => self.object(schema, json, pointer),
            (FieldType::List(item, _), Json::List(items)) => {
                let mut item = |(index, json)| self.item(item, json, &JsonPointer::Entry(pointer, index));
                items.into_iter().enumerate().map(&mut item).collect::<Result<_, _>>().map(Json::List)
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
            (EntryType::Struct(schema), json) => self.object(schema, json, pointer),
            (EntryType::Text, json @ Json::Text(_)) => Ok(json),
            (EntryType::Text, other) => Err(wrong_type(pointer, "a string", &other)),
        }
    }
}

/// Returns a pointer in the notation of `coreos-installer`: `$.storage.files.0`.
fn dotted_path(pointer: &JsonPointer) -> String {
    match pointer {
        JsonPointer::Root => "$".to_owned(),
        JsonPointer::Field(outer, name) => format!("{}.{name}", dotted_path(outer)),
        JsonPointer::Entry(outer, index) => format!("{}.{index}", dotted_path(outer)),
        JsonPointer::FieldEntry(outer, name, index) => format!("{}.{name}.{index}", dotted_path(outer)),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use proptest::sample::{Index, select};
    use serde_json::{Map, Value, json};

    use super::*;
    use crate::position::escape_part;

    /// Returns the result of `ignition-config`, which is the config that `coreos-installer` embeds.
    fn rewrite_with_ignition_config(text: &str) -> Option<RewrittenConfig> {
        let (config, warnings) = ignition_config::Config::parse_str(text).ok()?;
        let json = serde_json::to_string(&config).unwrap();
        Some(RewrittenConfig { json, warnings: warnings.iter().map(ToString::to_string).collect() })
    }

    /// Asserts that both programs reject a text or both write the same output. Only this crate rejects an object
    /// written as a list, and `null` in a list of texts, which the types of 3.1 to 3.3 accept in `noProxy`.
    fn assert_same(text: &str) {
        match (rewrite(text.as_bytes()), rewrite_with_ignition_config(text)) {
            (Ok(ours), theirs) => assert_eq!(Some(ours), theirs, "{text}"),
            (Err(ConfigError::WrongType { expected: "an object", found: "a list", .. }), _)
            | (Err(ConfigError::WrongType { expected: "a string", found: "null", .. }), _) => {}
            (Err(error), theirs) => assert_eq!(theirs, None, "{text}: {error}"),
        }
    }

    /// Generates an object with all mandatory fields, a few of the other fields, and sometimes an unknown key.
    fn any_object(schema: &'static ObjectSchema) -> BoxedStrategy<Value> {
        let fields: Vec<_> = schema.fields.iter().map(any_field).collect();
        let unknown =
            prop_oneof![9 => Just(None), 1 => Just(Some(("b.c/~\u{e4}".to_owned(), json!({"a": null}))))];
        (fields, unknown)
            .prop_map(|(fields, unknown)| {
                fields.into_iter().flatten().chain(unknown).collect::<Map<_, _>>().into()
            })
            .boxed()
    }

    fn any_field(field: &'static FieldSchema) -> BoxedStrategy<Option<(String, Value)>> {
        let present = any_value(&field.kind).prop_map(|value| Some((field.name.to_owned(), value)));
        if field.when_unset(Spec::OLDEST) == UnsetField::Rejected {
            present.boxed()
        } else {
            prop_oneof![present, Just(None)].boxed()
        }
    }

    fn any_value(kind: &'static FieldType) -> BoxedStrategy<Value> {
        match kind {
            FieldType::Text => select(vec!["", "a"]).prop_map(Value::from).boxed(),
            FieldType::Integer => select(vec![0, 420, -1]).prop_map(Value::from).boxed(),
            FieldType::Boolean => any::<bool>().prop_map(Value::from).boxed(),
            FieldType::Struct(schema) => any_object(schema),
            FieldType::List(EntryType::Text, _) => select(vec![json!([]), json!(["", "a"])]).boxed(),
            FieldType::List(EntryType::Struct(schema), _) => {
                prop::collection::vec(any_object(schema), 0..3).prop_map(Value::from).boxed()
            }
        }
    }

    /// Collects the pointers of all values of a tree.
    fn collect_pointers(value: &Value, pointer: &str, pointers: &mut Vec<String>) {
        pointers.push(pointer.to_owned());
        let inner: Vec<(String, &Value)> = match value {
            Value::Object(fields) => fields.iter().map(|(key, value)| (escape_part(key), value)).collect(),
            Value::Array(items) => {
                items.iter().enumerate().map(|(at, item)| (at.to_string(), item)).collect()
            }
            _ => Vec::new(),
        };
        inner
            .into_iter()
            .for_each(|(key, value)| collect_pointers(value, &format!("{pointer}/{key}"), pointers));
    }

    /// Replaces a value, or removes it from its object.
    fn replace_or_remove_value(config: &mut Value, at: &Index, new: Option<&Value>) {
        let mut all = Vec::new();
        collect_pointers(config, "", &mut all);
        let pointer = at.get(&all);
        match (new, pointer.rsplit_once('/')) {
            (None, Some((object, key))) => {
                let fields = config.pointer_mut(object).and_then(Value::as_object_mut);
                fields.map(|fields| fields.remove(key));
            }
            (None, None) => {}
            (Some(new), _) => *config.pointer_mut(pointer).unwrap() = new.clone(),
        }
    }

    fn any_unexpected_value() -> impl Strategy<Value = Option<Value>> {
        let odd = [json!(null), json!(1.0), json!(u64::MAX), json!([]), json!({}), json!(""), json!([null])];
        select(std::iter::once(None).chain(odd.map(Some)).collect::<Vec<_>>())
    }

    proptest! {
        #[test]
        fn output_matches_ignition_config_for_any_config(
            mut config in any_object(&CONFIG),
            spec in select(&Spec::ALL[..]),
            oddities in prop::collection::vec((any::<Index>(), any_unexpected_value()), 0..3),
        ) {
            config["ignition"]["version"] = spec.as_str().into();
            for (at, new) in &oddities {
                replace_or_remove_value(&mut config, at, new.as_ref());
            }
            assert_same(&config.to_string());
        }

        #[test]
        fn any_text_is_written_or_rejected_as_by_ignition_config(text in ".{0,80}") {
            assert_same(&text);
        }
    }

    #[test]
    fn rejects_configs_that_the_types_cannot_hold() {
        for (text, message) in [
            ("{}", r#""" is not a supported spec version; supported are 3.0.0 to 3.6.0"#),
            (r#"{"Ignition":{"version":"3.0.0"}}"#, r#"the config has no "ignition""#),
            (r#"{"ignition":{"Version":"3.0.0"}}"#, r#"/ignition has no "version""#),
            (
                r#"{"ignition":{"version":"3.0.0","version":"3.0.0"}}"#,
                "the key /ignition/version is repeated",
            ),
            (
                r#"{"ignition":{"version":"3.2.0"},"storage":{"raid":[{"name":"a","level":"b"}]}}"#,
                r#"/storage/raid/0 has no "devices""#,
            ),
            (
                r#"{"ignition":{"version":"3.2.0"},"storage":{"files":[null]}}"#,
                "/storage/files/0 is null, but has to be an object",
            ),
        ] {
            assert_eq!(rewrite(text.as_bytes()).unwrap_err().to_string(), message);
            assert_same(text);
        }
    }

    #[test]
    fn unset_sections_are_omitted_and_empty_ones_kept() {
        let text =
            r#"{"ignition":{"version":"3.6.0","proxy":{}},"storage":{"files":[],"disks":null},"passwd":{}}"#;
        let json = r#"{"ignition":{"proxy":{"httpProxy":null,"httpsProxy":null},"version":"3.6.0"},"passwd":{},"storage":{"files":[]}}"#;
        assert_eq!(rewrite(text.as_bytes()).unwrap().json, json);
        assert_same(text);
    }
}
