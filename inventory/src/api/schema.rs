//! Checks request bodies against the schemas of the published OpenAPI document, so that the document is always correct.

use std::collections::BTreeMap;
use std::fmt;

use regex::Regex;
use serde_json::{Map, Value};
use utoipa::openapi::schema::{
    AdditionalProperties, ArrayItems, KnownFormat, Object, Schema, SchemaFormat, SchemaType, Type,
};
use utoipa::openapi::{Ref, RefOr};
use utoipa::{Number, ToSchema};

/// A schema with all schemas that it references.
pub struct Schemas {
    root: RefOr<Schema>,
    named: BTreeMap<String, RefOr<Schema>>,
    patterns: BTreeMap<String, Result<Regex, regex::Error>>,
}

/// The treatment of keys that the schema does not define.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UnknownKeys {
    Refuse,
    Drop,
}

/// The reason why a body does not match its schema.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum SchemaFault {
    /// The structure is wrong: an unknown key, or a value of another type.
    Form(String),
    /// The structure is right, but a value is not allowed.
    Value(String),
    /// The schema cannot be applied. This is a bug of the service, not an error of the client.
    Schema(String),
}

impl fmt::Debug for Schemas {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Schemas").field("named", &self.named.keys()).finish_non_exhaustive()
    }
}

impl Schemas {
    /// Returns the schema of a type.
    #[must_use]
    pub fn for_type<T: ToSchema>() -> Self {
        let mut components = Vec::new();
        T::schemas(&mut components);
        let mut schemas =
            Self { root: T::schema(), named: components.into_iter().collect(), patterns: BTreeMap::new() };
        let mut patterns = Vec::new();
        for schema in std::iter::once(&schemas.root).chain(schemas.named.values()) {
            collect_patterns(schema, &mut patterns);
        }
        for pattern in patterns {
            let regex = Regex::new(&pattern);
            schemas.patterns.insert(pattern, regex);
        }
        schemas
    }

    /// Checks a body. Removes keys whose value is null, and unknown keys if they are allowed.
    pub(crate) fn check(&self, body: &mut Value, unknown: UnknownKeys) -> Result<(), SchemaFault> {
        SchemaCheck { schemas: self, unknown }.value(&self.root, body, "")
    }

    fn resolve<'a>(&'a self, schema: &'a RefOr<Schema>) -> Result<&'a Schema, SchemaFault> {
        let mut schema = schema;
        // References form only short chains. A longer chain is a cycle, which would be a bug of the service.
        for _ in 0..8 {
            schema = match schema {
                RefOr::T(schema) => return Ok(schema),
                RefOr::Ref(reference) => self.resolve_reference(reference)?,
            };
        }
        Err(SchemaFault::Schema("too many references in a row".to_owned()))
    }

    fn resolve_reference(&self, reference: &Ref) -> Result<&RefOr<Schema>, SchemaFault> {
        let name = reference.ref_location.rsplit('/').next();
        name.and_then(|name| self.named.get(name))
            .ok_or_else(|| SchemaFault::Schema(format!("no schema {:?}", reference.ref_location)))
    }

    /// Returns `true` if a text matches a pattern of the schema.
    fn matches(&self, pattern: &str, text: &str) -> Result<bool, SchemaFault> {
        match self.patterns.get(pattern) {
            Some(Ok(regex)) => Ok(regex.is_match(text)),
            Some(Err(error)) => Err(SchemaFault::Schema(format!("invalid pattern {pattern:?}: {error}"))),
            None => Err(SchemaFault::Schema(format!("pattern {pattern:?} was not collected"))),
        }
    }
}

fn collect_patterns(schema: &RefOr<Schema>, patterns: &mut Vec<String>) {
    let RefOr::T(schema) = schema else { return };
    match schema {
        Schema::Object(object) => {
            patterns.extend(object.pattern.clone());
            for property in object.properties.values() {
                collect_patterns(property, patterns);
            }
        }
        Schema::Array(array) => {
            if let ArrayItems::RefOrSchema(items) = &array.items {
                collect_patterns(items, patterns);
            }
        }
        Schema::OneOf(one) => one.items.iter().for_each(|item| collect_patterns(item, patterns)),
        Schema::AllOf(all) => all.items.iter().for_each(|item| collect_patterns(item, patterns)),
        _ => {}
    }
}

struct SchemaCheck<'a> {
    schemas: &'a Schemas,
    unknown: UnknownKeys,
}

impl SchemaCheck<'_> {
    fn value(&self, schema: &RefOr<Schema>, value: &mut Value, path: &str) -> Result<(), SchemaFault> {
        match self.schemas.resolve(schema)? {
            Schema::Object(object) => self.object(object, value, path),
            Schema::Array(array) => {
                let Value::Array(items) = value else { return Err(wrong_type(path, "an array", value)) };
                let ArrayItems::RefOrSchema(schema) = &array.items else {
                    return Err(SchemaFault::Schema(format!(
                        "unsupported items of {:?}",
                        path_for_message(path)
                    )));
                };
                for (index, item) in items.iter_mut().enumerate() {
                    self.value(schema, item, &join(path, &index.to_string()))?;
                }
                Ok(())
            }
            // utoipa writes a nullable reference as `oneOf`. Null values have already been removed.
            Schema::OneOf(one) => {
                for item in &one.items {
                    if !is_null(self.schemas.resolve(item)?) {
                        return self.value(item, value, path);
                    }
                }
                Ok(())
            }
            Schema::AllOf(all) => all.items.iter().try_for_each(|item| self.value(item, value, path)),
            _ => Err(SchemaFault::Schema(format!(
                "unsupported kind of schema for {:?}",
                path_for_message(path)
            ))),
        }
    }

    fn object(&self, schema: &Object, value: &mut Value, path: &str) -> Result<(), SchemaFault> {
        let Some(expected) = main_type(&schema.schema_type) else { return Ok(()) };
        let actual = match value {
            Value::Object(map) if expected == Type::Object => return self.map(schema, map, path),
            Value::String(text) if expected == Type::String => return self.text(schema, text, path),
            Value::Number(number) if matches!(expected, Type::Number | Type::Integer) => {
                if expected == Type::Integer && number.as_i64().is_none() {
                    return Err(wrong_type(path, "a 64-bit integer", value));
                }
                return self.number(schema, number, path);
            }
            Value::Bool(_) if expected == Type::Boolean => return Ok(()),
            actual => actual,
        };
        Err(wrong_type(path, type_name(&expected), actual))
    }

    fn map(&self, schema: &Object, map: &mut Map<String, Value>, path: &str) -> Result<(), SchemaFault> {
        fold_case(schema, map);
        map.retain(|_, value| !value.is_null());
        if matches!(schema.additional_properties.as_deref(), Some(AdditionalProperties::FreeForm(false))) {
            match self.unknown {
                UnknownKeys::Drop => map.retain(|key, _| schema.properties.contains_key(key)),
                UnknownKeys::Refuse => {
                    if let Some(key) = map.keys().find(|key| !schema.properties.contains_key(*key)) {
                        return Err(SchemaFault::Form(format!("json: unknown field {key:?}")));
                    }
                }
            }
        }
        let mut names: Vec<_> = schema.properties.iter().collect();
        names.sort_by_key(|(name, _)| *name);
        for (name, property) in names {
            let path = join(path, name);
            match map.get_mut(name) {
                Some(value) => self.value(property, value, &path)?,
                None if schema.required.contains(name) => {
                    return Err(SchemaFault::Value(format!("{path} in body is required")));
                }
                None => {}
            }
        }
        Ok(())
    }

    fn text(&self, schema: &Object, text: &str, path: &str) -> Result<(), SchemaFault> {
        let fault =
            |what: String| Err(SchemaFault::Value(format!("{} in body {what}", path_for_message(path))));
        if let Some(allowed) = &schema.enum_values
            && !allowed.iter().any(|value| value.as_str() == Some(text))
        {
            let allowed: Vec<_> = allowed.iter().filter_map(Value::as_str).collect();
            return fault(format!("should be one of [{}]", allowed.join(" ")));
        }
        let length = text.chars().count();
        if let Some(most) = schema.max_length.filter(|most| length > *most) {
            return fault(format!("should be at most {most} chars long"));
        }
        if let Some(least) = schema.min_length.filter(|least| length < *least) {
            return fault(format!("should be at least {least} chars long"));
        }
        if let Some(pattern) = &schema.pattern
            && !self.schemas.matches(pattern, text)?
        {
            return fault(format!("should match '{pattern}'"));
        }
        if let Some(format) = schema.format.as_ref().and_then(|format| violated_format(text, format)) {
            return fault(format!("must be of type {format}: {text:?}"));
        }
        Ok(())
    }

    fn number(&self, schema: &Object, number: &serde_json::Number, path: &str) -> Result<(), SchemaFault> {
        let float = |number: &serde_json::Number| {
            number.as_f64().ok_or_else(|| SchemaFault::Schema(format!("{number} is not a 64-bit number")))
        };
        let limit = |limit: &Option<Number>| {
            limit.as_ref().map(json_number).transpose()?.map(|it| float(&it)).transpose()
        };
        let number = float(number)?;
        if let Some(least) = limit(&schema.minimum)?.filter(|least| number < *least) {
            return Err(SchemaFault::Value(format!(
                "{} in body should be greater than or equal to {least}",
                path_for_message(path)
            )));
        }
        if let Some(most) = limit(&schema.maximum)?.filter(|most| number > *most) {
            return Err(SchemaFault::Value(format!(
                "{} in body should be less than or equal to {most}",
                path_for_message(path)
            )));
        }
        Ok(())
    }
}

/// Renames keys that differ from a property only in case, as Go does. If several keys then have the same name, the last
/// one wins.
fn fold_case(schema: &Object, map: &mut Map<String, Value>) {
    let is_foreign = |key: &String| !schema.properties.contains_key(key);
    if schema.properties.is_empty() || !map.keys().any(is_foreign) {
        return;
    }
    for (key, value) in std::mem::take(map) {
        let name = match schema.properties.contains_key(&key) {
            true => None,
            false => schema.properties.keys().find(|name| name.eq_ignore_ascii_case(&key)),
        };
        map.insert(name.cloned().unwrap_or(key), value);
    }
}

fn is_null(schema: &Schema) -> bool {
    matches!(schema, Schema::Object(object) if object.schema_type == SchemaType::Type(Type::Null))
}

/// Converts a limit of a schema into a JSON number.
fn json_number(limit: &Number) -> Result<serde_json::Number, SchemaFault> {
    match limit {
        Number::Int(number) => Ok((*number).into()),
        Number::UInt(number) => Ok((*number).into()),
        Number::Float(number) => serde_json::Number::from_f64(*number)
            .ok_or_else(|| SchemaFault::Schema(format!("{number} is not a limit"))),
    }
}

/// Returns the name of the required format if a text does not match it.
fn violated_format(text: &str, format: &SchemaFormat) -> Option<&'static str> {
    match format {
        SchemaFormat::KnownFormat(KnownFormat::Uuid) if text.parse::<uuid::Uuid>().is_err() => Some("uuid"),
        SchemaFormat::KnownFormat(KnownFormat::DateTime) if crate::time::parse(text).is_none() => {
            Some("date-time")
        }
        _ => None,
    }
}

/// Returns the type other than null.
fn main_type(schema_type: &SchemaType) -> Option<Type> {
    match schema_type {
        SchemaType::Type(one) => Some(one.clone()),
        SchemaType::Array(several) => several.iter().find(|one| **one != Type::Null).cloned(),
        SchemaType::AnyValue => None,
    }
}

/// Joins two paths within a body. Either path may be empty.
pub(super) fn join(path: &str, step: &str) -> String {
    if path.is_empty() || step.is_empty() { format!("{path}{step}") } else { format!("{path}.{step}") }
}

/// Formats a path for messages.
pub(super) fn path_for_message(path: &str) -> &str {
    if path.is_empty() { "the value" } else { path }
}

fn type_name(expected: &Type) -> &'static str {
    match expected {
        Type::Object => "an object",
        Type::String => "a string",
        Type::Integer | Type::Number => "a number",
        Type::Boolean => "a boolean",
        Type::Array => "an array",
        Type::Null => "null",
    }
}

fn wrong_type(path: &str, expected: &str, actual: &Value) -> SchemaFault {
    let actual = match actual {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    };
    let hint = match (expected, actual) {
        ("a string", "a number") => "; quote it: YAML tools read some unquoted values as numbers",
        _ => "",
    };
    SchemaFault::Form(format!("{} must be {expected}, not {actual}{hint}", path_for_message(path)))
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use utoipa::openapi::schema::{AnyOf, ObjectBuilder};

    use super::*;

    fn check(root: impl Into<RefOr<Schema>>, mut body: Value) -> Result<(), SchemaFault> {
        let root = root.into();
        let mut patterns = Vec::new();
        collect_patterns(&root, &mut patterns);
        let patterns = patterns.into_iter().map(|pattern| (pattern.clone(), Regex::new(&pattern))).collect();
        Schemas { root, named: BTreeMap::new(), patterns }.check(&mut body, UnknownKeys::Refuse)
    }

    #[test]
    fn unusable_schema_is_not_a_client_error() {
        let text = || ObjectBuilder::new().schema_type(Type::String);
        assert_eq!(check(text().pattern(Some("^a$")), json!("a")), Ok(()));
        let broken = [
            check(text().pattern(Some("(")), json!("a")),
            check(Ref::from_schema_name("absent"), json!("a")),
            check(Schema::AnyOf(AnyOf::default()), json!("a")),
        ];
        for fault in broken {
            assert!(matches!(fault, Err(SchemaFault::Schema(_))), "{fault:?}");
        }
    }
}
