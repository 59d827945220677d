//! The members that the status of a kind may have, from its CRD schema.

use std::sync::LazyLock;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::JSONSchemaProps;
use serde_json::{Map, Value};

use crate::crds::{Agent, Error};
use crate::errors::ReconcileError;

static AGENT: LazyLock<Result<Value, String>> =
    LazyLock::new(|| members_of_agent().map_err(|it| it.to_string()));

/// Returns the members that the status of an Agent may have, as JSON. Objects contain their members; all other values
/// are null.
///
/// # Errors
///
/// Returns an error if the definition cannot be generated. No input can cause this.
pub(crate) fn agent_status_members() -> Result<&'static Value, ReconcileError> {
    AGENT.as_ref().map_err(|error| ReconcileError::Backend(error.clone()))
}

fn members_of_agent() -> Result<Value, Error> {
    let definition = Agent::definition()?;
    let schemas =
        definition.spec.versions.into_iter().filter_map(|version| version.schema?.open_api_v3_schema);
    let status = schemas.filter_map(|schema| schema.properties?.remove("status")).next();
    Ok(status.map_or(Value::Null, |status| members(&status)))
}

fn members(schema: &JSONSchemaProps) -> Value {
    let Some(properties) = &schema.properties else { return Value::Null };
    let members: Map<_, _> =
        properties.iter().map(|(name, schema)| (name.clone(), members(schema))).collect();
    Value::Object(members)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_of_the_inventory_are_listed() {
        let members = agent_status_members().unwrap();
        assert_eq!(members["inventory"]["cpu"]["architecture"], Value::Null);
        assert!(members["inventory"]["cpu"].as_object().unwrap().contains_key("architecture"));
        assert_eq!(members["conditions"], Value::Null);
    }
}
