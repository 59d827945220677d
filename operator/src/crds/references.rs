//! The types with which custom resources refer to other objects.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::wire::{nullable, zero};

/// A reference to an object in the same namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(extend("x-kubernetes-map-type" = "atomic"))]
pub struct LocalRef {
    /// Name of the object.
    #[serde(deserialize_with = "nullable")]
    #[schemars(extend("x-server-default" = ""))]
    pub name: String,
}

/// A reference to a ClusterDeployment in any namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ClusterRef {
    /// Name of the ClusterDeployment.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "zero")]
    pub name: String,
    /// Namespace of the ClusterDeployment.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "zero")]
    pub namespace: String,
}

/// A reference to a Secret or ConfigMap in any namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(extend("required" = ["name", "namespace"]))]
pub struct MirrorRef {
    /// Name of the object.
    #[serde(deserialize_with = "nullable")]
    pub name: String,
    /// Namespace of the object.
    #[serde(deserialize_with = "nullable")]
    pub namespace: String,
}

/// A selector of objects by their labels. All requirements must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-map-type" = "atomic"))]
pub struct Selector {
    /// Labels with their values.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "zero")]
    pub match_labels: BTreeMap<String, String>,
    /// Other requirements.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "zero")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub match_expressions: Vec<SelectorRequirement>,
}

/// A requirement on one label.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(extend("required" = ["key", "operator"]))]
pub struct SelectorRequirement {
    /// Key of the label.
    #[serde(deserialize_with = "nullable")]
    pub key: String,
    /// `In`, `NotIn`, `Exists` or `DoesNotExist`.
    #[serde(deserialize_with = "nullable")]
    pub operator: String,
    /// Values for `In` and `NotIn`.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "zero")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub values: Vec<String>,
}
