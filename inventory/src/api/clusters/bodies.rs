//! Request bodies for clusters, and the removal of response fields that clients send back.

use assisted::cluster::{
    ClusterCreateParams, ClusterImportParams, ClusterUpdateParams, DisconnectedClusterParams,
};
use serde_json::Value;

use crate::api::request_bodies;

request_bodies! {
    ClusterCreateParams: "newClusterParams";
    ClusterUpdateParams: "clusterUpdateParams", prepared by remove_response_fields;
    ClusterImportParams: "newImportClusterParams";
    DisconnectedClusterParams: "newDisconnectedClusterParams";
}

/// Removes the fields of a GET response that a PATCH does not accept.
fn remove_response_fields(body: &mut Value) {
    /// Fields that only the service sets.
    const RESPONSE_ONLY: [&str; 33] = [
        "kind",
        "href",
        "user_name",
        "email_domain",
        "status",
        "status_info",
        "status_updated_at",
        "openshift_cluster_id",
        "imported",
        "pull_secret_set",
        "hosts",
        "host_networks",
        "ready_host_count",
        "enabled_host_count",
        "total_host_count",
        "monitored_operators",
        "progress",
        "last-installation-preparation",
        "validations_info",
        "feature_usage",
        "image_info",
        "controller_logs_collected_at",
        "controller_logs_started_at",
        "install_started_at",
        "install_completed_at",
        "created_at",
        "updated_at",
        "deleted_at",
        "org_id",
        "logs_info",
        "schedulable_masters_forced_true",
        "connectivity_majority_groups",
        "ip_collisions",
    ];
    let Value::Object(map) = body else { return };
    for key in RESPONSE_ONLY {
        map.shift_remove(key);
    }
    // The platform of a cluster not installed by this service may be unknown. GET returns it as an empty object.
    if map.get("platform").and_then(Value::as_object).is_some_and(serde_json::Map::is_empty) {
        map.shift_remove("platform");
    }
}
