//! The schemas of the types against the published API document of the service.

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

/// Schemas of the document that no type of this crate has: operations of the service alone, and a form.
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

fn collect<T: ToSchema>(found: &mut Vec<(String, RefOr<Schema>)>) {
    found.push((T::name().into_owned(), T::schema()));
    T::schemas(found);
}

fn schemas() -> BTreeMap<String, Value> {
    let mut found = Vec::new();
    collect::<Cluster>(&mut found);
    collect::<ClusterCreateParams>(&mut found);
    collect::<ClusterUpdateParams>(&mut found);
    collect::<ClusterImportParams>(&mut found);
    collect::<DisconnectedClusterParams>(&mut found);
    collect::<ClusterDefaults>(&mut found);
    collect::<InfraEnv>(&mut found);
    collect::<InfraEnvCreateParams>(&mut found);
    collect::<InfraEnvUpdateParams>(&mut found);
    collect::<Preflight>(&mut found);
    collect::<PresignedUrl>(&mut found);
    collect::<Host>(&mut found);
    collect::<HostCreateParams>(&mut found);
    collect::<RegisteredHost>(&mut found);
    collect::<HostUpdateParams>(&mut found);
    collect::<BindHostParams>(&mut found);
    collect::<InstallerArgsParams>(&mut found);
    collect::<HostIgnitionParams>(&mut found);
    collect::<HostProgressParams>(&mut found);
    collect::<LogsProgressParams>(&mut found);
    collect::<Steps>(&mut found);
    collect::<StepReply>(&mut found);
    collect::<ListedEvent>(&mut found);
    collect::<ReportedEvent>(&mut found);
    collect::<Category>(&mut found);
    collect::<ComponentVersions>(&mut found);
    collect::<OpenshiftVersion>(&mut found);
    collect::<SupportedArchitectures>(&mut found);
    collect::<ListedOsImage>(&mut found);
    collect::<OsImageParams>(&mut found);
    collect::<EitherError>(&mut found);
    found.into_iter().map(|(name, schema)| (name, serde_json::to_value(schema).unwrap())).collect()
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
        // As text: the order of the keys is part of the document.
        assert_eq!(format!("{schema:#}"), format!("{expected:#}"), "{name}");
    }
}

#[test]
fn every_published_schema_has_a_type() {
    let missing: BTreeSet<_> = published().into_keys().collect();
    let missing: Vec<_> = missing.difference(&schemas().into_keys().collect()).cloned().collect();
    assert_eq!(missing, OTHERS);
}
