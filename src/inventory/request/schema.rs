//! Checks a body against the schema that the API document publishes: what is said there is what holds.

use std::collections::BTreeMap;

use regex::Regex;
use serde_json::{Map, Value};
use utoipa::openapi::schema::{AdditionalProperties, ArrayItems, Object, Schema, SchemaType, Type};
use utoipa::openapi::{Ref, RefOr};
use utoipa::{Number, ToSchema};

/// A schema with all that it refers to.
pub(crate) struct Schemas {
    root: RefOr<Schema>,
    named: BTreeMap<String, RefOr<Schema>>,
    patterns: BTreeMap<String, Regex>,
}

/// What is done with keys that the schema does not know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UnknownKeys {
    Refuse,
    Drop,
}

/// What is wrong with a body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// It does not have the form at all: an unknown key, or a value of another type.
    Form(String),
    /// It has the form, with a value that cannot be.
    Value(String),
}

impl Schemas {
    pub(crate) fn of<T: ToSchema>() -> Self {
        let mut named = Vec::new();
        T::schemas(&mut named);
        let mut schemas =
            Self { root: T::schema(), named: named.into_iter().collect(), patterns: BTreeMap::new() };
        let mut patterns = Vec::new();
        for schema in std::iter::once(&schemas.root).chain(schemas.named.values()) {
            collect_patterns(schema, &mut patterns);
        }
        for pattern in patterns {
            if let Ok(regex) = Regex::new(&pattern) {
                schemas.patterns.insert(pattern, regex);
            }
        }
        schemas
    }

    /// Checks a body, and takes out of it what means nothing: keys without a value, and unknown ones where they may be.
    pub(crate) fn check(&self, body: &mut Value, unknown: UnknownKeys) -> Result<(), Fault> {
        Check { schemas: self, unknown }.value(&self.root, body, "")
    }

    fn resolve<'a>(&'a self, schema: &'a RefOr<Schema>) -> Option<&'a Schema> {
        let mut schema = schema;
        // A schema that is a name for another one is rare, and a circle of them is a mistake of ours.
        for _ in 0..8 {
            match schema {
                RefOr::T(schema) => return Some(schema),
                RefOr::Ref(reference) => schema = self.named.get(name(reference))?,
            }
        }
        None
    }
}

fn name(reference: &Ref) -> &str {
    reference.ref_location.rsplit('/').next().unwrap_or_default()
}

fn collect_patterns(schema: &RefOr<Schema>, found: &mut Vec<String>) {
    let RefOr::T(schema) = schema else { return };
    match schema {
        Schema::Object(object) => {
            found.extend(object.pattern.clone());
            for property in object.properties.values() {
                collect_patterns(property, found);
            }
        }
        Schema::Array(array) => {
            if let ArrayItems::RefOrSchema(items) = &array.items {
                collect_patterns(items, found);
            }
        }
        Schema::OneOf(one) => one.items.iter().for_each(|item| collect_patterns(item, found)),
        Schema::AllOf(all) => all.items.iter().for_each(|item| collect_patterns(item, found)),
        _ => {}
    }
}

struct Check<'a> {
    schemas: &'a Schemas,
    unknown: UnknownKeys,
}

impl Check<'_> {
    fn value(&self, schema: &RefOr<Schema>, value: &mut Value, path: &str) -> Result<(), Fault> {
        match self.schemas.resolve(schema) {
            Some(Schema::Object(object)) => self.object(object, value, path),
            Some(Schema::Array(array)) => {
                let Value::Array(items) = value else { return Err(wrong_type(path, "an array", value)) };
                let ArrayItems::RefOrSchema(schema) = &array.items else { return Ok(()) };
                for (index, item) in items.iter_mut().enumerate() {
                    self.value(schema, item, &join(path, &index.to_string()))?;
                }
                Ok(())
            }
            // This is how a reference that may be null is written. Null was taken out before.
            Some(Schema::OneOf(one)) => match one.items.iter().find(|item| !self.is_null(item)) {
                Some(item) => self.value(item, value, path),
                None => Ok(()),
            },
            Some(Schema::AllOf(all)) => all.items.iter().try_for_each(|item| self.value(item, value, path)),
            _ => Ok(()),
        }
    }

    fn is_null(&self, schema: &RefOr<Schema>) -> bool {
        matches!(self.schemas.resolve(schema), Some(Schema::Object(object)) if object.schema_type == SchemaType::Type(Type::Null))
    }

    fn object(&self, schema: &Object, value: &mut Value, path: &str) -> Result<(), Fault> {
        let Some(expected) = main_type(&schema.schema_type) else { return Ok(()) };
        let found = match value {
            Value::Object(map) if expected == Type::Object => return self.map(schema, map, path),
            Value::String(text) if expected == Type::String => return self.text(schema, text, path),
            Value::Number(number) if matches!(expected, Type::Number | Type::Integer) => {
                if expected == Type::Integer && number.as_i64().is_none() {
                    return Err(wrong_type(path, "an integer of 64 bits", value));
                }
                return self.number(schema, number.as_f64().unwrap_or_default(), path);
            }
            Value::Bool(_) if expected == Type::Boolean => return Ok(()),
            found => found,
        };
        Err(wrong_type(path, type_name(&expected), found))
    }

    fn map(&self, schema: &Object, map: &mut Map<String, Value>, path: &str) -> Result<(), Fault> {
        fold_case(schema, map);
        map.retain(|_, value| !value.is_null());
        if matches!(schema.additional_properties.as_deref(), Some(AdditionalProperties::FreeForm(false))) {
            match self.unknown {
                UnknownKeys::Drop => map.retain(|key, _| schema.properties.contains_key(key)),
                UnknownKeys::Refuse => {
                    if let Some(key) = map.keys().find(|key| !schema.properties.contains_key(*key)) {
                        return Err(Fault::Form(format!("json: unknown field {key:?}")));
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
                    return Err(Fault::Value(format!("{path} in body is required")));
                }
                None => {}
            }
        }
        Ok(())
    }

    fn text(&self, schema: &Object, text: &str, path: &str) -> Result<(), Fault> {
        let fault = |what: String| Err(Fault::Value(format!("{} in body {what}", shown(path))));
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
            && let Some(regex) = self.schemas.patterns.get(pattern)
            && !regex.is_match(text)
        {
            return fault(format!("should match '{pattern}'"));
        }
        if let Some(format) = &schema.format
            && !has_format(text, &serde_json::to_value(format).unwrap_or_default())
        {
            let format = serde_json::to_value(format).unwrap_or_default();
            return fault(format!("must be of type {}: {text:?}", format.as_str().unwrap_or_default()));
        }
        Ok(())
    }

    fn number(&self, schema: &Object, number: f64, path: &str) -> Result<(), Fault> {
        if let Some(least) = limit(schema.minimum.as_ref()).filter(|least| number < *least) {
            return Err(Fault::Value(format!(
                "{} in body should be greater than or equal to {least}",
                shown(path)
            )));
        }
        if let Some(most) = limit(schema.maximum.as_ref()).filter(|most| number > *most) {
            return Err(Fault::Value(format!(
                "{} in body should be less than or equal to {most}",
                shown(path)
            )));
        }
        Ok(())
    }
}

/// Gives keys that differ from a property by case alone the name of the property, as Go does. Of several that then are the same,
/// the last one counts.
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

fn limit(number: Option<&Number>) -> Option<f64> {
    serde_json::to_value(number?).ok()?.as_f64()
}

fn has_format(text: &str, format: &Value) -> bool {
    match format.as_str() {
        Some("uuid") => text.parse::<uuid::Uuid>().is_ok(),
        Some("date-time") => crate::inventory::time::parse(text).is_some(),
        _ => true,
    }
}

/// The type beside null.
fn main_type(schema_type: &SchemaType) -> Option<Type> {
    match schema_type {
        SchemaType::Type(one) => Some(one.clone()),
        SchemaType::Array(several) => several.iter().find(|one| **one != Type::Null).cloned(),
        SchemaType::AnyValue => None,
    }
}

/// A path within a body. Either part may be empty.
pub(super) fn join(path: &str, step: &str) -> String {
    if path.is_empty() || step.is_empty() { format!("{path}{step}") } else { format!("{path}.{step}") }
}

/// A path as messages have it.
pub(super) fn shown(path: &str) -> &str {
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

fn wrong_type(path: &str, expected: &str, found: &Value) -> Fault {
    let found = match found {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    };
    Fault::Form(format!("{} must be {expected}, not {found}", shown(path)))
}
