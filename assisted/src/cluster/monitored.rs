//! Operators of a cluster, and the reports of the controller in the cluster about them.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::extensible::Extensible;
use crate::id::ClusterId;
use crate::string_enum::string_enum;
use crate::time::Millis;
use crate::wire::{empty_as_none, is_default, null_as_default};

string_enum! {
    /// State of an operator.
    OperatorStatus as operator_status {
        /// The operator failed.
        Failed = "failed",
        /// The operator is being installed.
        Progressing = "progressing",
        /// The operator works.
        Available = "available",
    }
}

/// An operator of a cluster.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = monitored_operator))]
pub struct MonitoredOperator {
    /// Id of the cluster.
    pub cluster_id: ClusterId,
    /// Name of the operator.
    pub name: String,
    /// Version of the operator.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[cfg_attr(feature = "openapi", schema(ignore))]
    pub version: String,
    /// Namespace of the operator.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[cfg_attr(feature = "openapi", schema(ignore))]
    pub namespace: String,
    /// Name of the operator's OLM subscription.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[cfg_attr(feature = "openapi", schema(ignore))]
    pub subscription_name: String,
    /// Type of the operator: `builtin` or `olm`.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(required = true, schema_with = schema::operator_type))]
    pub operator_type: Cow<'static, str>,
    /// Properties of the operator, in its own format.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub properties: String,
    /// Timeout in seconds after which the operator counts as failed.
    #[serde(default, skip_serializing_if = "is_default")]
    #[cfg_attr(feature = "openapi", schema(required = false))]
    pub timeout_seconds: i64,
    /// State of the operator.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(ignore))]
    pub status: Option<Extensible<OperatorStatus>>,
    /// Reason for the state, as text.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[cfg_attr(feature = "openapi", schema(ignore))]
    pub status_info: String,
    /// Time of the last change of the status.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(required = true))]
    pub status_updated_at: Millis,
    /// Bundles that contain the operator.
    #[serde(default, deserialize_with = "null_as_default")]
    #[cfg_attr(feature = "openapi", schema(required = true))]
    pub bundles: Vec<String>,
    /// Whether the operator is installed only because another one needs it.
    #[serde(default, skip_serializing_if = "is_default")]
    #[cfg_attr(feature = "openapi", schema(ignore))]
    pub dependency_only: bool,
    /// Bundles that requested the operator.
    #[serde(default, deserialize_with = "null_as_default")]
    #[cfg_attr(feature = "openapi", schema(required = true))]
    pub source_bundles: Vec<String>,
}

/// State of an operator, as the controller in the cluster reports it. An empty version or reason leaves the stored text
/// unchanged.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OperatorReport {
    /// Name of the operator.
    pub name: String,
    /// Version of the operator.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub version: String,
    /// State of the operator.
    #[serde(default, deserialize_with = "empty_as_none", skip_serializing_if = "Option::is_none")]
    pub status: Option<OperatorStatus>,
    /// Reason for the state, as text.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub status_info: String,
}

impl OperatorReport {
    /// Returns the report of a state, without version and reason.
    ///
    /// # Examples
    ///
    /// ```
    /// use assisted::cluster::{OperatorReport, OperatorStatus};
    ///
    /// let version = "4.18.3".to_owned();
    /// let report = OperatorReport { version, ..OperatorReport::new("console", OperatorStatus::Available) };
    /// ```
    pub fn new(name: impl Into<String>, status: OperatorStatus) -> Self {
        Self { name: name.into(), version: String::new(), status: Some(status), status_info: String::new() }
    }
}

/// Result of an installation, as the controller in the cluster reports it. The service ignores it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CompletionParams {
    /// Whether the installation succeeded.
    pub is_success: bool,
    /// Reason for a failure. Empty after a success.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub error_info: String,
    /// Additional data. The key `CLUSTER_OPERATORS_REPORT` contains reports about operators.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub data: Map<String, Value>,
}

impl CompletionParams {
    /// Returns the result of a successful installation.
    #[must_use]
    pub fn success() -> Self {
        Self { is_success: true, ..Self::default() }
    }

    /// Returns the result of a failed installation.
    pub fn failure(reason: impl Into<String>) -> Self {
        Self { is_success: false, error_info: reason.into(), ..Self::default() }
    }
}

#[cfg(feature = "openapi")]
mod schema {
    use utoipa::openapi::schema::{Object, ObjectBuilder, Type};

    pub(super) fn operator_type() -> Object {
        let description = "Type of the operator: `builtin` or `olm`.";
        ObjectBuilder::new().schema_type(Type::String).description(Some(description)).build()
    }
}
