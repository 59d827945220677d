//! The operations that bind, unbind, reset and install hosts.

use std::convert::Infallible;

use assisted::host::{BindHostParams, Host};
use axum::extract::{FromRequestParts, RawPathParams, State};
use axum::http::StatusCode;
use axum::http::request::Parts;

use crate::Inventory;
use crate::api::auth::{Caller, Operation, User, operation};
use crate::api::hosts::view::{HostDetail, view_with_reports};
use crate::api::{ApiError, ApiErrors, Body, Reply};
use crate::id::HostKey;
use crate::request_id::RequestId;

pub(crate) fn routes() -> Vec<Operation> {
    vec![
        operation!(bind_host),
        operation!(unbind_host),
        operation!(reset_host),
        operation!(install_host),
        operation!(reset_host_validation),
    ]
}

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
    let host = inventory.bind_host(key, params.cluster_id, Some(request)).await?;
    Ok(Reply(StatusCode::OK, view_with_reports(&inventory, host, HostDetail::AsStored).await?))
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
    let host = inventory.unbind_host(key, Some(request)).await?;
    Ok(Reply(StatusCode::OK, view_with_reports(&inventory, host, HostDetail::AsStored).await?))
}

/// Resets a host added to an existing cluster
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
) -> Result<Infallible, ApiError> {
    Ok(inventory.reset_host(key).await?)
}

/// Installs a host added to an existing cluster
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
) -> Result<Infallible, ApiError> {
    Ok(inventory.install_host(key).await?)
}

/// The id of the validation in the path.
struct ValidationId(String);

impl<S: Send + Sync> FromRequestParts<S> for ValidationId {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let parameters = RawPathParams::from_request_parts(parts, state).await;
        let parameters = parameters.map_err(|error| ApiError::malformed(error.to_string()))?;
        let parameter = parameters.iter().find(|(name, _)| *name == "validation_id");
        let (_, text) =
            parameter.ok_or_else(|| ApiError::broken("the route has no parameter validation_id"))?;
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
) -> Result<Infallible, ApiError> {
    Ok(inventory.reset_host_validation(key, &id).await?)
}
