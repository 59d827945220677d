//! Operations that users call on single hosts.

use axum::extract::State;
use axum::http::StatusCode;

use crate::Inventory;
use crate::api::ApiError;
use crate::api::Body;
use crate::api::auth::{Caller, Operation, User, operation};
use crate::api::hosts::view::HostDetail;
use crate::api::{ApiErrors, Reply};
use crate::host::cluster::deregister;
use crate::host::draft::HostDraft;
use crate::host::key::HostKey;
use crate::host::model::{Host, HostIgnitionParams, HostUpdateParams, InstallerArgsParams};
use crate::host::record::HostRecord;
use crate::host::update::{
    check_ignition_override, check_installer_args, set_ignition_override, set_installer_args,
};
use crate::journal::Journal;

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
use crate::request_id::RequestId;

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
    let found = key.find(inventory.records()).await?;
    Ok(Reply(StatusCode::OK, Host::with_reports(&inventory, found.record, HostDetail::InFull).await?))
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
    params.check()?;
    let apply =
        |draft: &mut HostDraft, journal: &mut Journal| params.apply(draft, inventory.settings(), journal);
    let (host, ()) = key.change_with_reports(&inventory, request, params.needed_reports(), apply).await?;
    Ok(Reply(StatusCode::CREATED, Host::with_reports(&inventory, host, HostDetail::InFull).await?))
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
    let edit = |host: &mut HostRecord, journal: &mut Journal| {
        deregister(host, journal);
        journal.add_log_deletion(host);
        Ok(())
    };
    key.change(&inventory, request, edit).await?;
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
    check_installer_args(&params.args)?;
    let edit = |host: &mut HostRecord, journal: &mut Journal| set_installer_args(host, &params.args, journal);
    let (host, ()) = key.change(&inventory, request, edit).await?;
    Ok(Reply(StatusCode::CREATED, Host::with_reports(&inventory, host, HostDetail::AsStored).await?))
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
    let host = key.find(inventory.records()).await?.record;
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
    if !params.config.is_empty() {
        check_ignition_override(&params.config)?;
    }
    let edit = |host: &mut HostRecord, journal: &mut Journal| {
        set_ignition_override(host, &params.config, journal);
        Ok(())
    };
    key.change(&inventory, request, edit).await?;
    Ok(StatusCode::CREATED)
}
