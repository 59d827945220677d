//! The operations for users on a single host.

use assisted::host::{Host, HostIgnitionParams, HostUpdateParams, InstallerArgsParams};
use axum::extract::State;
use axum::http::StatusCode;

use crate::Inventory;
use crate::api::auth::{Caller, Operation, User, operation};
use crate::api::hosts::view::{HostDetail, view_with_reports};
use crate::api::{ApiError, ApiErrors, Body, Reply};
use crate::id::HostKey;
use crate::request_id::RequestId;

pub(crate) fn routes() -> Vec<Operation> {
    vec![
        operation!(get_host),
        operation!(update_host),
        operation!(deregister_host),
        operation!(update_installer_args),
        operation!(get_host_ignition),
        operation!(update_host_ignition),
    ]
}

/// Returns a host
#[utoipa::path(
    get,
    path = "/v2/infra-envs/{infra_env_id}/hosts/{host_id}",
    operation_id = "v2GetHost",
    tag = "hosts",
    params(HostKey),
    responses((status = OK, body = Host), ApiErrors)
)]
async fn get_host(
    Caller { target: key, .. }: Caller<User, HostKey>,
    State(inventory): State<Inventory>,
) -> Result<Reply<Host>, ApiError> {
    let host = inventory.host(key).await?;
    Ok(Reply(StatusCode::OK, view_with_reports(&inventory, host, HostDetail::InFull).await?))
}

/// Updates a host
#[utoipa::path(
    patch,
    path = "/v2/infra-envs/{infra_env_id}/hosts/{host_id}",
    operation_id = "v2UpdateHost",
    tag = "hosts",
    params(HostKey),
    request_body = HostUpdateParams,
    responses((status = CREATED, body = Host), ApiErrors)
)]
async fn update_host(
    Caller { target: key, .. }: Caller<User, HostKey>,
    request: RequestId,
    State(inventory): State<Inventory>,
    Body(params): Body<HostUpdateParams>,
) -> Result<Reply<Host>, ApiError> {
    let host = inventory.update_host(key, params, Some(request)).await?;
    Ok(Reply(StatusCode::CREATED, view_with_reports(&inventory, host, HostDetail::InFull).await?))
}

/// Deletes a host
#[utoipa::path(
    delete,
    path = "/v2/infra-envs/{infra_env_id}/hosts/{host_id}",
    operation_id = "v2DeregisterHost",
    tag = "hosts",
    params(HostKey),
    responses((status = NO_CONTENT), ApiErrors)
)]
async fn deregister_host(
    Caller { target: key, .. }: Caller<User, HostKey>,
    request: RequestId,
    State(inventory): State<Inventory>,
) -> Result<StatusCode, ApiError> {
    inventory.deregister_host(key, Some(request)).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Sets the arguments of coreos-installer for a host
#[utoipa::path(
    patch,
    path = "/v2/infra-envs/{infra_env_id}/hosts/{host_id}/installer-args",
    operation_id = "v2UpdateHostInstallerArgs",
    tag = "hosts",
    params(HostKey),
    request_body = InstallerArgsParams,
    responses((status = CREATED, body = Host), ApiErrors)
)]
async fn update_installer_args(
    Caller { target: key, .. }: Caller<User, HostKey>,
    request: RequestId,
    State(inventory): State<Inventory>,
    Body(params): Body<InstallerArgsParams>,
) -> Result<Reply<Host>, ApiError> {
    let host = inventory.set_host_installer_args(key, params.args, Some(request)).await?;
    Ok(Reply(StatusCode::CREATED, view_with_reports(&inventory, host, HostDetail::AsStored).await?))
}

/// Returns the Ignition override of a host
#[utoipa::path(
    get,
    path = "/v2/infra-envs/{infra_env_id}/hosts/{host_id}/ignition",
    operation_id = "v2GetHostIgnition",
    tag = "hosts",
    params(HostKey),
    responses((status = OK, body = HostIgnitionParams), ApiErrors)
)]
async fn get_host_ignition(
    Caller { target: key, .. }: Caller<User, HostKey>,
    State(inventory): State<Inventory>,
) -> Result<Reply<HostIgnitionParams>, ApiError> {
    let host = inventory.host(key).await?;
    Ok(Reply(StatusCode::OK, HostIgnitionParams { config: host.choices.ignition_config_overrides }))
}

/// Sets the Ignition override of a host
#[utoipa::path(
    patch,
    path = "/v2/infra-envs/{infra_env_id}/hosts/{host_id}/ignition",
    operation_id = "v2UpdateHostIgnition",
    tag = "hosts",
    params(HostKey),
    request_body = HostIgnitionParams,
    responses((status = CREATED), ApiErrors)
)]
async fn update_host_ignition(
    Caller { target: key, .. }: Caller<User, HostKey>,
    request: RequestId,
    State(inventory): State<Inventory>,
    Body(params): Body<HostIgnitionParams>,
) -> Result<StatusCode, ApiError> {
    inventory.set_host_ignition(key, params.config, Some(request)).await?;
    Ok(StatusCode::CREATED)
}
