//! The built-in and requested operators in the response for a cluster.

use assisted::cluster::MonitoredOperator;

use crate::Settings;
use crate::cluster::ClusterRecord;
use crate::cluster::operators::{BUILT_IN_TIMEOUT_SECONDS, built_in_operators};
use crate::id::ClusterId;
use crate::time::Millis;

/// Returns the operators of a cluster: the built-in ones, then the requested ones.
pub(super) fn monitored_operators(record: &ClusterRecord, settings: &Settings) -> Vec<MonitoredOperator> {
    let built_in = built_in_operators(record, settings);
    let requested = record.spec.olm_operators.iter().filter(|operator| !built_in.contains(&&*operator.name));
    let requested = requested.map(|operator| MonitoredOperator {
        properties: operator.properties.clone(),
        ..monitored_operator(record.id, &operator.name, "olm")
    });
    let built_in = built_in.iter().map(|name| MonitoredOperator {
        timeout_seconds: BUILT_IN_TIMEOUT_SECONDS,
        ..monitored_operator(record.id, name, "builtin")
    });
    built_in.chain(requested).collect()
}

fn monitored_operator(cluster_id: ClusterId, name: &str, operator_type: &'static str) -> MonitoredOperator {
    MonitoredOperator {
        cluster_id,
        name: name.to_owned(),
        version: String::new(),
        namespace: String::new(),
        subscription_name: String::new(),
        operator_type: operator_type.into(),
        properties: String::new(),
        timeout_seconds: 0,
        status: None,
        status_info: String::new(),
        status_updated_at: Millis::default(),
        bundles: Vec::new(),
        dependency_only: false,
        source_bundles: Vec::new(),
    }
}
