//! The operations of `/v2/component-versions`, `/v2/openshift-versions`, `/v2/support-levels` and `/v2/os-images`.

use std::collections::BTreeMap;

use assisted::version::{
    ComponentVersions, ListedOsImage, OpenshiftVersion, OsImageParams, SupportedArchitectures,
};
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::http::StatusCode;

use super::support::supported_architectures;
use super::view::{component_versions, listed_os_image};
use crate::Inventory;
use crate::api::auth::{Caller, Operation, User, WholeService, operation};
use crate::api::{ApiError, ApiErrors, Body, Query, Reply};
use crate::catalogue::{CpuArchitecture, Version, VersionQuery};
use crate::error::Error;

pub(crate) fn routes() -> Vec<Operation> {
    vec![
        operation!(list_component_versions),
        operation!(list_openshift_versions),
        operation!(list_supported_architectures),
        operation!(list_os_images),
        operation!(add_os_image),
        operation!(remove_os_image),
    ]
}

/// Returns the versions of the components of an installation
#[utoipa::path(
    get,
    path = "/v2/component-versions",
    operation_id = "v2ListComponentVersions",
    tag = "versions",
    responses((status = OK, body = ComponentVersions), ApiErrors)
)]
async fn list_component_versions(
    _caller: Caller<User, WholeService>,
    State(inventory): State<Inventory>,
) -> Reply<ComponentVersions> {
    Reply(StatusCode::OK, component_versions(inventory.settings()))
}

/// Lists the OpenShift versions of new clusters
#[utoipa::path(
    get,
    path = "/v2/openshift-versions",
    operation_id = "v2ListSupportedOpenshiftVersions",
    tag = "versions",
    params(
        ("version" = Option<String>, Query, description = "Only versions that contain this text"),
        ("only_latest" = Option<bool>, Query, description = "Only the newest release of each minor version"),
    ),
    responses((status = OK, body = BTreeMap<String, OpenshiftVersion>), ApiErrors)
)]
async fn list_openshift_versions(
    _caller: Caller<User, WholeService>,
    query: Query,
    State(inventory): State<Inventory>,
) -> Result<Reply<BTreeMap<String, OpenshiftVersion>>, ApiError> {
    let filter = VersionQuery { containing: query.text("version"), only_latest: query.flag("only_latest") };
    Ok(Reply(StatusCode::OK, inventory.present_catalogue().await?.openshift_versions(filter)))
}

/// Lists the CPU architectures that a version supports
#[utoipa::path(
    get,
    path = "/v2/support-levels/architectures",
    operation_id = "GetSupportedArchitectures",
    tag = "versions",
    params(("openshift_version" = String, Query, description = "OpenShift version")),
    responses((status = OK, body = SupportedArchitectures), ApiErrors)
)]
async fn list_supported_architectures(
    _caller: Caller<User, WholeService>,
    query: Query,
) -> Result<Reply<SupportedArchitectures>, ApiError> {
    let text = query.text("openshift_version").ok_or_else(|| Query::missing("openshift_version"))?;
    let version = Version::parse(text)
        .ok_or_else(|| ApiError::bad(format!("Openshift version {text:?} is not valid")))?;
    Ok(Reply(StatusCode::OK, supported_architectures(&version)))
}

/// Lists base images (not in the Assisted Installer API)
#[utoipa::path(
    get,
    path = "/v2/os-images",
    operation_id = "ListOsImages",
    tag = "versions",
    responses((status = OK, body = Vec<ListedOsImage>), ApiErrors)
)]
async fn list_os_images(
    _caller: Caller<User, WholeService>,
    State(inventory): State<Inventory>,
) -> Result<Reply<Vec<ListedOsImage>>, ApiError> {
    let images = inventory.os_images().await?.into_iter().map(listed_os_image);
    Ok(Reply(StatusCode::OK, images.collect()))
}

/// Adds a base image (not in the Assisted Installer API)
#[utoipa::path(
    post,
    path = "/v2/os-images",
    operation_id = "AddOsImage",
    tag = "versions",
    request_body = OsImageParams,
    responses((status = CREATED, body = ListedOsImage), ApiErrors)
)]
async fn add_os_image(
    _caller: Caller<User, WholeService>,
    State(inventory): State<Inventory>,
    Body(params): Body<OsImageParams>,
) -> Result<Reply<ListedOsImage>, ApiError> {
    Ok(Reply(StatusCode::CREATED, listed_os_image(inventory.add_os_image(params).await?)))
}

/// Removes an added base image (not in the Assisted Installer API)
#[utoipa::path(
    delete,
    path = "/v2/os-images/{openshift_version}/{cpu_architecture}",
    operation_id = "RemoveOsImage",
    tag = "versions",
    params(
        ("openshift_version" = String, Path, description = "OpenShift version"),
        ("cpu_architecture" = String, Path, description = "CPU architecture"),
    ),
    responses((status = NO_CONTENT), ApiErrors)
)]
async fn remove_os_image(
    _caller: Caller<User, WholeService>,
    path: Result<Path<(String, String)>, PathRejection>,
    State(inventory): State<Inventory>,
) -> Result<StatusCode, ApiError> {
    let Path((version, architecture)) = path.map_err(|error| ApiError::malformed(error.to_string()))?;
    inventory.remove_os_image(&version, architecture_in_path(&architecture)?).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Parses the CPU architecture in a path.
fn architecture_in_path(name: &str) -> Result<CpuArchitecture, Error> {
    CpuArchitecture::from_name(name).ok_or_else(|| {
        let message = "cpu_architecture in path should be one of [x86_64 aarch64 arm64 ppc64le s390x]";
        Error::malformed(message)
    })
}
