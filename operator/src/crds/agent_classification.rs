//! The kind AgentClassification: a query on inventories that labels the matching Agents.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::ValidationRule;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::condition::AgentInstallCondition;
use super::resource::{CustomResource, Kind};
use super::schema::{self, rule};
use super::wire::{nullable, zero};

/// A query on inventories that labels the matching Agents.
pub type AgentClassification = CustomResource<AgentClassificationSpec>;

impl Kind for AgentClassificationSpec {
    type Status = AgentClassificationStatus;
    const KIND: &'static str = "AgentClassification";
    const PLURAL: &'static str = "agentclassifications";
}

/// The label and the query that selects the Agents.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(extend("required" = ["labelKey", "labelValue", "query"], "x-kubernetes-validations" = rules()))]
pub struct AgentClassificationSpec {
    /// Key of the label, without the prefix `agentclassification.agent-install.openshift.io/`. Immutable.
    #[serde(deserialize_with = "nullable")]
    pub label_key: String,
    /// Value of the label on Agents for which the query is true. Immutable.
    #[serde(deserialize_with = "nullable")]
    pub label_value: String,
    /// A jq expression on the inventory in the status of an Agent. The result must be one boolean.
    #[serde(deserialize_with = "nullable")]
    pub query: String,
}

fn rules() -> Vec<ValidationRule> {
    vec![rule(
        "self.labelKey == oldSelf.labelKey && self.labelValue == oldSelf.labelValue",
        "Label modified: the specified label may not be modified after creation",
    )]
}

/// The result of a classification.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct AgentClassificationStatus {
    /// Number of Agents for which the query is true.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "zero")]
    #[schemars(schema_with = "schema::plain_integer")]
    pub matched_count: i64,
    /// Number of Agents for which the query failed.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "zero")]
    #[schemars(schema_with = "schema::plain_integer")]
    pub error_count: i64,
    /// The condition `QueryErrors`.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "zero")]
    pub conditions: Vec<AgentInstallCondition>,
}
