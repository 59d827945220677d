//! The operators of a cluster in a response.

use serde::Serialize;
use utoipa::ToSchema;

use crate::Settings;
use crate::cluster::ClusterRecord;
use crate::cluster::operators::{BUILT_IN_TIMEOUT_SECONDS, built_in_operators};
use crate::id::ClusterId;
use crate::time::Millis;

/// An operator of a cluster.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = monitored_operator)]
pub(super) struct MonitoredOperator {
    /// Id of the cluster.
    pub cluster_id: ClusterId,
    /// Name of the operator.
    pub name: String,
    /// Type of the operator: `builtin` or `olm`.
    pub operator_type: &'static str,
    /// Properties of the operator, in its own format.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub properties: String,
    /// Timeout in seconds after which the operator counts as failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = i64, required = false)]
    pub timeout_seconds: Option<i64>,
    /// Time of the last change of the status.
    pub status_updated_at: Millis,
    /// Bundles that contain the operator.
    pub bundles: Vec<String>,
    /// Bundles that requested the operator.
    pub source_bundles: Vec<String>,
}

/// Returns the operators of a cluster: the built-in ones, then the requested ones.
pub(super) fn monitored_operators(record: &ClusterRecord, settings: &Settings) -> Vec<MonitoredOperator> {
    let built_in = built_in_operators(record, settings);
    let requested = record.spec.olm_operators.iter().filter(|operator| !built_in.contains(&&*operator.name));
    let requested = requested.map(|operator| MonitoredOperator {
        properties: operator.properties.clone(),
        ..MonitoredOperator::new(record.id, &operator.name, "olm")
    });
    let built_in = built_in.iter().map(|name| MonitoredOperator {
        timeout_seconds: Some(BUILT_IN_TIMEOUT_SECONDS),
        ..MonitoredOperator::new(record.id, name, "builtin")
    });
    built_in.chain(requested).collect()
}

impl MonitoredOperator {
    fn new(cluster_id: ClusterId, name: &str, operator_type: &'static str) -> Self {
        Self {
            cluster_id,
            name: name.to_owned(),
            operator_type,
            properties: String::new(),
            timeout_seconds: None,
            status_updated_at: Millis::default(),
            bundles: Vec::new(),
            source_bundles: Vec::new(),
        }
    }
}
