//! Tests that the schemas of the types match the service's published API document.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "test code: what is not as expected must stop the test"
)]

use std::collections::{BTreeMap, BTreeSet};

use assisted::cluster::{
    Cluster, ClusterCreateParams, ClusterDefaults, ClusterImportParams, ClusterUpdateParams,
    DisconnectedClusterParams,
};
use assisted::error::EitherError;
use assisted::event::{Category, ListedEvent, ReportedEvent};
use assisted::host::{
    BindHostParams, Host, HostCreateParams, HostIgnitionParams, HostProgressParams, HostUpdateParams,
    InstallerArgsParams, LogsProgressParams, RegisteredHost,
};
use assisted::infra_env::{InfraEnv, InfraEnvCreateParams, InfraEnvUpdateParams, Preflight, PresignedUrl};
use assisted::reply::StepReply;
use assisted::step::Steps;
use assisted::version::{
    ComponentVersions, ListedOsImage, OpenshiftVersion, OsImageParams, SupportedArchitectures,
};
use serde_json::Value;
use utoipa::ToSchema;
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::Schema;

/// Schemas in the document without a type in this crate: types of operations that only the service has, and an upload
/// form.
const OTHERS: [&str; 22] = [
    "base_image_health",
    "base_image_state",
    "boot_trace",
    "boot_trace_last_range",
    "boot_trace_range",
    "boot_trace_reader",
    "boot_trace_state",
    "database_health",
    "dependency_state",
    "health",
    "infra_env_file",
    "infra_env_files",
    "kubernetes_health",
    "logs_form",
    "monitor_health",
    "network_file",
    "network_file_host",
    "network_file_hosts",
    "network_files",
    "reachability",
    "readiness",
    "stream_ticket",
];

fn collect<T: ToSchema>(schemas: &mut Vec<(String, RefOr<Schema>)>) {
    schemas.push((T::name().into_owned(), T::schema()));
    T::schemas(schemas);
}

fn schemas() -> BTreeMap<String, Value> {
    let mut collected = Vec::new();
    collect::<Cluster>(&mut collected);
    collect::<ClusterCreateParams>(&mut collected);
    collect::<ClusterUpdateParams>(&mut collected);
    collect::<ClusterImportParams>(&mut collected);
    collect::<DisconnectedClusterParams>(&mut collected);
    collect::<ClusterDefaults>(&mut collected);
    collect::<InfraEnv>(&mut collected);
    collect::<InfraEnvCreateParams>(&mut collected);
    collect::<InfraEnvUpdateParams>(&mut collected);
    collect::<Preflight>(&mut collected);
    collect::<PresignedUrl>(&mut collected);
    collect::<Host>(&mut collected);
    collect::<HostCreateParams>(&mut collected);
    collect::<RegisteredHost>(&mut collected);
    collect::<HostUpdateParams>(&mut collected);
    collect::<BindHostParams>(&mut collected);
    collect::<InstallerArgsParams>(&mut collected);
    collect::<HostIgnitionParams>(&mut collected);
    collect::<HostProgressParams>(&mut collected);
    collect::<LogsProgressParams>(&mut collected);
    collect::<Steps>(&mut collected);
    collect::<StepReply>(&mut collected);
    collect::<ListedEvent>(&mut collected);
    collect::<ReportedEvent>(&mut collected);
    collect::<Category>(&mut collected);
    collect::<ComponentVersions>(&mut collected);
    collect::<OpenshiftVersion>(&mut collected);
    collect::<SupportedArchitectures>(&mut collected);
    collect::<ListedOsImage>(&mut collected);
    collect::<OsImageParams>(&mut collected);
    collect::<EitherError>(&mut collected);
    collected.into_iter().map(|(name, schema)| (name, serde_json::to_value(schema).unwrap())).collect()
}

fn published() -> BTreeMap<String, Value> {
    let document = include_str!("../../docs/openapi.json");
    let document: Value = serde_json::from_str(document).unwrap();
    let schemas = document.pointer("/components/schemas").and_then(Value::as_object).unwrap();
    schemas.iter().map(|(name, schema)| (name.clone(), schema.clone())).collect()
}

#[test]
fn schemas_match_the_published_document() {
    let published = published();
    for (name, schema) in schemas() {
        let Some(expected) = published.get(&name) else { panic!("{name} is not in the document") };
        // Compare as text, because the order of the keys matters too.
        assert_eq!(format!("{schema:#}"), format!("{expected:#}"), "{name}");
    }
}

#[test]
fn every_published_schema_has_a_type() {
    let missing: BTreeSet<_> = published().into_keys().collect();
    let missing: Vec<_> = missing.difference(&schemas().into_keys().collect()).cloned().collect();
    assert_eq!(missing, OTHERS);
}
