//! Operations that bind, unbind, reset and install hosts.

use axum::extract::{FromRequestParts, RawPathParams, State};
use axum::http::StatusCode;
use axum::http::request::Parts;

use crate::Inventory;
use crate::api::ApiError;
use crate::api::Body;
use crate::api::auth::{Caller, Operation, User, operation};
use crate::api::hosts::view::HostDetail;
use crate::api::{ApiErrors, Reply};
use crate::host::key::HostKey;
use crate::host::membership::{Binding, unbind};
use crate::host::model::{BindHostParams, Host};
use crate::host::record::HostRecord;
use crate::host::status::HostStatus;

pub(crate) fn routes() -> Vec<Operation> {
    vec![
        operation!(bind_host),
        operation!(unbind_host),
        operation!(reset_host),
        operation!(install_host),
        operation!(reset_host_validation),
    ]
}
use crate::request_id::RequestId;

/// Binds a host to a cluster
#[utoipa::path(
    post,
    path = "/v2/infra-envs/{infra_env_id}/hosts/{host_id}/actions/bind",
    operation_id = "BindHost",
    tag = "hosts",
    params(HostKey),
    request_body = BindHostParams,
    responses((status = OK, body = Host), ApiErrors)
)]
async fn bind_host(
    Caller { target: key, .. }: Caller<User, HostKey>,
    request: RequestId,
    State(inventory): State<Inventory>,
    Body(params): Body<BindHostParams>,
) -> Result<Reply<Host>, ApiError> {
    let host = Binding { key, cluster: params.cluster_id, request }.bind(&inventory).await?;
    Ok(Reply(StatusCode::OK, Host::with_reports(&inventory, host, HostDetail::AsStored).await?))
}

/// Unbinds a host from its cluster
#[utoipa::path(
    post,
    path = "/v2/infra-envs/{infra_env_id}/hosts/{host_id}/actions/unbind",
    operation_id = "UnbindHost",
    tag = "hosts",
    params(HostKey),
    responses((status = OK, body = Host), ApiErrors)
)]
async fn unbind_host(
    Caller { target: key, .. }: Caller<User, HostKey>,
    request: RequestId,
    State(inventory): State<Inventory>,
) -> Result<Reply<Host>, ApiError> {
    let host = unbind(&inventory, key, request).await?;
    Ok(Reply(StatusCode::OK, Host::with_reports(&inventory, host, HostDetail::AsStored).await?))
}

/// Resets a host that was added to an existing cluster
///
/// Not implemented by this service: the response to a request that an Assisted Service would accept is 501.
#[utoipa::path(
    post,
    path = "/v2/infra-envs/{infra_env_id}/hosts/{host_id}/actions/reset",
    operation_id = "v2ResetHost",
    tag = "hosts",
    params(HostKey),
    extensions(("x-not-implemented" = json!(true))),
    responses(
        (status = NOT_IMPLEMENTED, description = "This service does not implement the operation.", body = crate::api::OperationError),
        ApiErrors
    )
)]
async fn reset_host(
    Caller { target: key, .. }: Caller<User, HostKey>,
    State(inventory): State<Inventory>,
) -> Result<StatusCode, ApiError> {
    let host = key.find(inventory.records()).await?.record;
    require_joining(&host)?;
    Err(not_implemented("hosts cannot be reset: this service does not install clusters"))
}

/// Installs a host that is added to an existing cluster
///
/// Not implemented by this service: the response to a request that an Assisted Service would accept is 501.
#[utoipa::path(
    post,
    path = "/v2/infra-envs/{infra_env_id}/hosts/{host_id}/actions/install",
    operation_id = "v2InstallHost",
    tag = "hosts",
    params(HostKey),
    extensions(("x-not-implemented" = json!(true))),
    responses(
        (status = NOT_IMPLEMENTED, description = "This service does not implement the operation.", body = crate::api::OperationError),
        ApiErrors
    )
)]
async fn install_host(
    Caller { target: key, .. }: Caller<User, HostKey>,
    State(inventory): State<Inventory>,
) -> Result<StatusCode, ApiError> {
    let host = key.find(inventory.records()).await?.record;
    if host.cluster_id.is_none() {
        return Err(ApiError::not_found(format!("Host {} belongs to no cluster", host.id)));
    }
    require_joining(&host)?;
    if host.status() != HostStatus::Known {
        let reason = format!("Host {} is in state {}, not {}", host.id, host.status(), HostStatus::Known);
        return Err(ApiError::conflict(reason));
    }
    Err(not_implemented("hosts cannot be installed: this service does not install clusters"))
}

fn require_joining(host: &HostRecord) -> Result<(), ApiError> {
    if host.cluster_id.is_some() && host.joins() {
        return Ok(());
    }
    Err(ApiError::conflict(format!("Host {} is not being added to an installed cluster", host.id)))
}

fn not_implemented(reason: &str) -> ApiError {
    ApiError::new(StatusCode::NOT_IMPLEMENTED, reason)
}

/// The id of the validation in the path.
struct ValidationId(String);

impl<S: Send + Sync> FromRequestParts<S> for ValidationId {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let parameters = RawPathParams::from_request_parts(parts, state).await;
        let parameters = parameters.map_err(|error| ApiError::malformed(error.to_string()))?;
        let found = parameters.iter().find(|(name, _)| *name == "validation_id");
        let (_, text) = found.ok_or_else(|| ApiError::broken("the route has no parameter validation_id"))?;
        Ok(Self(text.to_owned()))
    }
}

/// Updates the validation of a host
///
/// Not implemented by this service: the response to a request that an Assisted Service would accept is 501.
#[utoipa::path(
    patch,
    path = "/v2/infra-envs/{infra_env_id}/hosts/{host_id}/actions/reset-validation/{validation_id}",
    operation_id = "v2ResetHostValidation",
    tag = "hosts",
    params(HostKey, ("validation_id" = String, Path, description = "Id of the validation")),
    extensions(("x-not-implemented" = json!(true))),
    responses(
        (status = NOT_IMPLEMENTED, description = "This service does not implement the operation.", body = crate::api::OperationError),
        ApiErrors
    )
)]
async fn reset_host_validation(
    Caller { target: key, .. }: Caller<User, HostKey>,
    ValidationId(id): ValidationId,
    State(inventory): State<Inventory>,
) -> Result<StatusCode, ApiError> {
    let host = key.find(inventory.records()).await?.record;
    if !matches!(id.as_str(), "sufficient-installation-disk-speed" | "container-images-available") {
        return Err(ApiError::bad(format!("Validation {id:?} cannot be reset")));
    }
    if host.cluster_id.is_none() {
        return Err(ApiError::conflict(format!("Host {} belongs to no cluster", host.id)));
    }
    Err(not_implemented(
        "validations of an installation cannot be reset: this service does not install clusters",
    ))
}
