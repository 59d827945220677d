//! What users call.

use axum::extract::State;
use axum::http::StatusCode;

use super::super::choice::{
    check_ignition_override, check_installer_args, keep_ignition_override, keep_installer_args,
};
use super::super::cluster::deregister;
use super::super::journal::Journal;
use super::super::key::HostKey;
use super::super::model::{Host, HostIgnitionParams, HostUpdateParams, InstallerArgsParams};
use super::super::record::HostRecord;
use super::super::refresh::up_to_date;
use super::super::view::Shown;
use crate::api_error::ApiError;
use crate::api_error::{ApiErrors, Reply};
use crate::inventory::auth::{Caller, Operation, User, operation};
use crate::inventory::request::{Body, RequestId};
use crate::inventory::{Inventory, logs};

pub(super) fn routes() -> Vec<Operation> {
    vec![
        operation!(get_host),
        operation!(update_host),
        operation!(deregister_host),
        operation!(update_installer_args),
        operation!(get_host_ignition),
        operation!(update_host_ignition),
    ]
}

/// A host
#[utoipa::path(
    get,
    path = "/v2/infra-envs/{infra_env_id}/hosts/{host_id}",
    operation_id = "v2GetHost",
    tag = "hosts",
    params(HostKey),
    responses((status = OK, body = Host), ApiErrors)
)]
async fn get_host(
    Caller { target: place, .. }: Caller<User, HostKey>,
    State(inventory): State<Inventory>,
) -> Result<Reply<Host>, ApiError> {
    let found = place.find(inventory.records()).await?;
    let host = up_to_date(&inventory, found.record).await?;
    // It was there a moment ago.
    let host = host.ok_or_else(|| ApiError::not_found("record not found"))?;
    Ok(Reply(StatusCode::OK, Host::of(host, Shown::InFull, inventory.settings())))
}

/// Changes a host
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
    Caller { target: place, .. }: Caller<User, HostKey>,
    request: RequestId,
    State(inventory): State<Inventory>,
    Body(params): Body<HostUpdateParams>,
) -> Result<Reply<Host>, ApiError> {
    params.check()?;
    let apply =
        |host: &mut HostRecord, journal: &mut Journal| params.apply(host, inventory.settings(), journal);
    let (host, ()) = place.change(&inventory, request, apply).await?;
    Ok(Reply(StatusCode::CREATED, Host::of(host, Shown::InFull, inventory.settings())))
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
    Caller { target: place, .. }: Caller<User, HostKey>,
    request: RequestId,
    State(inventory): State<Inventory>,
) -> Result<StatusCode, ApiError> {
    let go = |host: &mut HostRecord, journal: &mut Journal| {
        deregister(host, journal);
        Ok(())
    };
    let (host, ()) = place.change(&inventory, request, go).await?;
    logs::delete_of_host(&inventory, host.cluster_id, &host).await;
    Ok(StatusCode::NO_CONTENT)
}

/// Sets arguments of the installer
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
    Caller { target: place, .. }: Caller<User, HostKey>,
    request: RequestId,
    State(inventory): State<Inventory>,
    Body(params): Body<InstallerArgsParams>,
) -> Result<Reply<Host>, ApiError> {
    check_installer_args(&params.args)?;
    let keep = |host: &mut HostRecord, journal: &mut Journal| {
        keep_installer_args(host, &params.args, journal);
        Ok(())
    };
    let (host, ()) = place.change(&inventory, request, keep).await?;
    Ok(Reply(StatusCode::CREATED, Host::of(host, Shown::AsKept, inventory.settings())))
}

/// What is otherwise in the Ignition config of a host
#[utoipa::path(
    get,
    path = "/v2/infra-envs/{infra_env_id}/hosts/{host_id}/ignition",
    operation_id = "v2GetHostIgnition",
    tag = "hosts",
    params(HostKey),
    responses((status = OK, body = HostIgnitionParams), ApiErrors)
)]
async fn get_host_ignition(
    Caller { target: place, .. }: Caller<User, HostKey>,
    State(inventory): State<Inventory>,
) -> Result<Reply<HostIgnitionParams>, ApiError> {
    let host = place.find(inventory.records()).await?.record;
    Ok(Reply(StatusCode::OK, HostIgnitionParams { config: host.choices.ignition_config_overrides }))
}

/// Says what shall be otherwise in the Ignition config of a host
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
    Caller { target: place, .. }: Caller<User, HostKey>,
    request: RequestId,
    State(inventory): State<Inventory>,
    Body(params): Body<HostIgnitionParams>,
) -> Result<StatusCode, ApiError> {
    if !params.config.is_empty() {
        check_ignition_override(&params.config)?;
    }
    let keep = |host: &mut HostRecord, journal: &mut Journal| {
        keep_ignition_override(host, &params.config, journal);
        Ok(())
    };
    place.change(&inventory, request, keep).await?;
    Ok(StatusCode::CREATED)
}
