//! `/v2/component-versions`, `/v2/openshift-versions` and what they support.

use std::collections::BTreeMap;

use axum::extract::State;
use axum::http::StatusCode;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::{ComponentVersions, SupportedArchitectures};
use crate::images::{OpenshiftVersion, Version, VersionQuery};
use crate::inventory::auth::{Caller, User};
use crate::inventory::error::{Refusals, Reply};
use crate::inventory::request::Query;
use crate::inventory::{Inventory, Refusal};

pub(crate) fn routes() -> OpenApiRouter<Inventory> {
    OpenApiRouter::new()
        .routes(routes!(list_component_versions))
        .routes(routes!(list_openshift_versions))
        .routes(routes!(list_supported_architectures))
}

/// The versions of the parts of an installation
#[utoipa::path(
    get,
    path = "/v2/component-versions",
    operation_id = "v2ListComponentVersions",
    tag = "versions",
    responses((status = OK, body = ComponentVersions), Refusals)
)]
async fn list_component_versions(
    _caller: Caller<User>,
    State(inventory): State<Inventory>,
) -> Reply<ComponentVersions> {
    let settings = inventory.settings();
    let versions = BTreeMap::from([
        ("assisted-installer-service", settings.self_version.clone()),
        ("discovery-agent", settings.agent_image.clone()),
        ("assisted-installer", settings.installer_image.clone()),
        ("assisted-installer-controller", settings.controller_image.clone()),
    ]);
    Reply(StatusCode::OK, ComponentVersions { versions, release_tag: settings.release_tag.clone() })
}

/// The versions that clusters can be made of
#[utoipa::path(
    get,
    path = "/v2/openshift-versions",
    operation_id = "v2ListSupportedOpenshiftVersions",
    tag = "versions",
    params(
        ("version" = Option<String>, Query, description = "Those of releases with this in their version"),
        ("only_latest" = Option<bool>, Query, description = "The newest one of each minor version"),
    ),
    responses((status = OK, body = BTreeMap<String, OpenshiftVersion>), Refusals)
)]
async fn list_openshift_versions(
    _caller: Caller<User>,
    query: Query,
    State(inventory): State<Inventory>,
) -> Reply<BTreeMap<String, OpenshiftVersion>> {
    let asked = VersionQuery { containing: query.text("version"), only_latest: query.flag("only_latest") };
    Reply(StatusCode::OK, inventory.catalogue().openshift_versions(asked))
}

/// The processors that a version supports
#[utoipa::path(
    get,
    path = "/v2/support-levels/architectures",
    operation_id = "GetSupportedArchitectures",
    tag = "versions",
    params(("openshift_version" = String, Query, description = "The version")),
    responses((status = OK, body = SupportedArchitectures), Refusals)
)]
async fn list_supported_architectures(
    _caller: Caller<User>,
    query: Query,
) -> Result<Reply<SupportedArchitectures>, Refusal> {
    let text = query.text("openshift_version").ok_or_else(|| Query::missing("openshift_version"))?;
    let version = Version::parse(text)
        .ok_or_else(|| Refusal::bad(format!("Openshift version {text:?} is not valid")))?;
    Ok(Reply(StatusCode::OK, SupportedArchitectures::of(&version)))
}
