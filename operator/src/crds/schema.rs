//! Generates the schema of a type, in the form that the API server accepts and that upstream's definitions have.
//!
//! Types are deserialized leniently: every member has a serde default, so no member is required. Requirements and
//! defaults for the API server are attributes of the type: `extend("required" = ...)` and `extend("x-server-default" =
//! ...)`.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{JSONSchemaProps, ValidationRule};
use schemars::generate::SchemaSettings;
use schemars::transform::{Transform, transform_subschemas};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_json::{Map, Value};

/// Schema key of the value that the API server sets if a member is absent. The key `default` in a generated schema
/// comes from serde instead.
const SERVER_DEFAULT: &str = "x-server-default";

/// Returns the schema of a type.
pub(super) fn of<T: JsonSchema>() -> Result<JSONSchemaProps, serde_json::Error> {
    let settings = SchemaSettings::draft07().with(|settings| {
        settings.inline_subschemas = true;
        settings.meta_schema = None;
    });
    let mut schema = settings.with_transform(Structural).into_generator().into_root_schema_for::<T>();
    schema.remove("title");
    serde_json::from_value(schema.to_value())
}

/// Returns a validation rule in the Common Expression Language (CEL).
pub(super) fn rule(expression: &str, message: &str) -> ValidationRule {
    ValidationRule {
        rule: expression.to_owned(),
        message: Some(message.to_owned()),
        ..ValidationRule::default()
    }
}

/// Returns the schema of an object whose content another specification defines.
pub(super) fn free_form(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "object", "x-kubernetes-preserve-unknown-fields": true})
}

/// Returns the schema of an integer without `format`, like Go's `int`.
pub(super) fn plain_integer(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "integer"})
}

/// A transformation that removes what upstream's schemas do not contain: `null` as an allowed value, and serde
/// defaults.
#[derive(Clone, Debug)]
struct Structural;

impl Transform for Structural {
    fn transform(&mut self, schema: &mut Schema) {
        transform_subschemas(self, schema);
        let Some(members) = schema.as_object_mut() else { return };
        members.remove("default");
        if let Some(default) = members.remove(SERVER_DEFAULT) {
            members.insert("default".to_owned(), default);
        }
        remove_null_type(members);
        remove_null_branch(members);
    }
}

/// Replaces `type: [T, null]` with `type: T`.
fn remove_null_type(members: &mut Map<String, Value>) {
    let Some(Value::Array(types)) = members.get_mut("type") else { return };
    types.retain(|name| name != "null");
    if let [only] = types.as_slice() {
        let only = only.clone();
        members.insert("type".to_owned(), only);
    }
}

/// Replaces `anyOf: [S, null]` with `S`. Members next to `anyOf`, such as a description, override members of `S`.
fn remove_null_branch(members: &mut Map<String, Value>) {
    let Some(Value::Array(branches)) = members.get("anyOf") else { return };
    let mut branches = branches.iter().filter(|branch| branch.get("type") != Some(&Value::from("null")));
    let (Some(Value::Object(branch)), None) = (branches.next().cloned(), branches.next()) else { return };
    members.remove("anyOf");
    for (key, value) in branch {
        members.entry(key).or_insert(value);
    }
}
