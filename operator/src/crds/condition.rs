//! The type of conditions in the status of custom resources.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::timestamp::Timestamp;
use super::wire::{nullable, zero};

/// A condition in the form of OpenShift's custom-resource-status package: without `observedGeneration`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(extend("required" = ["status", "type"]))]
pub struct AgentInstallCondition {
    /// Name of the condition, such as `ImageCreated`.
    #[serde(rename = "type", deserialize_with = "nullable")]
    pub type_: String,
    /// `True`, `False` or `Unknown`.
    #[serde(deserialize_with = "nullable")]
    pub status: String,
    /// Cause of the status as one word.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "zero")]
    pub reason: String,
    /// Cause of the status for people.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "zero")]
    pub message: String,
    /// Time of the last change of `status`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_transition_time: Option<Timestamp>,
    /// Time of the last update. Not written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_heartbeat_time: Option<Timestamp>,
}
