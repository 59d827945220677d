//! The operations for agents and installers.

use std::convert::Infallible;

use assisted::host::{
    HostCreateParams, HostProgressParams, LogsProgressParams, RegisteredHost, RunnerArguments, RunnerCommand,
};
use assisted::reply::StepReply;
use assisted::step::{StepType, Steps};
use axum::extract::{FromRequestParts, State};
use axum::http::StatusCode;
use axum::http::request::Parts;

use crate::Inventory;
use crate::api::auth::{Agent, Caller, Operation, operation};
use crate::api::hosts::view::{HostDetail, view_with_reports};
use crate::api::{ApiError, ApiErrors, Body, LargeBodies, Query, Reply, UnparsedBody};
use crate::error::Error;
use crate::id::{HostKey, InfraEnvId};
use crate::json::to_json_text;
use crate::request_id::RequestId;
use crate::service::hosts::check_in::Poll;
use crate::service::hosts::recent_replies::ReplyDigest;
use crate::service::hosts::registration::Registration;

pub(crate) fn routes() -> Vec<Operation> {
    vec![
        operation!(register_host),
        operation!(get_next_steps),
        operation!(post_step_reply),
        operation!(update_host_progress),
        operation!(update_host_logs_progress),
    ]
}

/// Maximum length of the agent version in a header, in bytes. A longer version is ignored.
const MAX_VERSION_LEN: usize = 2048;

/// The headers that an agent sends with each request.
#[derive(Debug)]
struct AgentCall {
    request: RequestId,
    /// Container image of the agent, if it sends one.
    agent_version: Option<String>,
}

impl<S: Send + Sync> FromRequestParts<S> for AgentCall {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Infallible> {
        let request = RequestId::from_request_parts(parts, state).await?;
        let version = parts.headers.get("discovery_agent_version").and_then(|value| value.to_str().ok());
        let agent_version =
            version.filter(|version| (1..=MAX_VERSION_LEN).contains(&version.len())).map(str::to_owned);
        Ok(Self { request, agent_version })
    }
}

/// Registers a host; agents call this after boot
#[utoipa::path(
    post,
    path = "/v2/infra-envs/{infra_env_id}/hosts",
    operation_id = "v2RegisterHost",
    tag = "hosts",
    params(("infra_env_id" = uuid::Uuid, Path)),
    request_body = HostCreateParams,
    responses((status = CREATED, body = RegisteredHost), ApiErrors)
)]
async fn register_host(
    Caller { target: infra_env_id, .. }: Caller<Agent, InfraEnvId>,
    call: AgentCall,
    State(inventory): State<Inventory>,
    Body(params): Body<HostCreateParams>,
) -> Result<Reply<RegisteredHost>, ApiError> {
    let key = HostKey { infra_env_id, host_id: params.host_id };
    let agent_version = params.discovery_agent_version.or(call.agent_version).unwrap_or_default();
    let host =
        inventory.register_host(&Registration { key, agent_version, request: Some(call.request) }).await?;
    let arguments = RunnerArguments {
        infra_env_id,
        host_id: params.host_id,
        agent_version: inventory.settings().agent_image.clone(),
    };
    let args = vec![to_json_text("the arguments of the step runner", &arguments)?];
    let next_step_runner_command = Some(RunnerCommand { args, ..RunnerCommand::default() });
    let host = view_with_reports(&inventory, host, HostDetail::InFull).await?;
    Ok(Reply(StatusCode::CREATED, RegisteredHost { host, next_step_runner_command }))
}

/// Returns the next steps of a host's agent
#[utoipa::path(
    get,
    path = "/v2/infra-envs/{infra_env_id}/hosts/{host_id}/instructions",
    operation_id = "v2GetNextSteps",
    tag = "hosts",
    params(HostKey, ("timestamp" = Option<i64>, Query, description = "Clock of the host, in seconds since 1970")),
    responses((status = OK, body = Steps), ApiErrors)
)]
async fn get_next_steps(
    Caller { target: key, .. }: Caller<Agent, HostKey>,
    call: AgentCall,
    query: Query,
    State(inventory): State<Inventory>,
) -> Result<Reply<Steps>, ApiError> {
    // An agent that cannot read its clock sends 0, which is not a time.
    let clock = query.number("timestamp")?.filter(|clock| *clock != 0);
    let poll = Poll { key, request: Some(call.request), clock, agent_version: call.agent_version };
    Ok(Reply(StatusCode::OK, inventory.check_in(&poll).await?))
}

/// Reports the result of a step
#[utoipa::path(
    post,
    path = "/v2/infra-envs/{infra_env_id}/hosts/{host_id}/instructions",
    operation_id = "v2PostStepReply",
    tag = "hosts",
    params(HostKey),
    request_body = StepReply,
    responses((status = NO_CONTENT), ApiErrors)
)]
async fn post_step_reply(
    Caller { target: key, .. }: Caller<Agent, HostKey>,
    request: RequestId,
    State(inventory): State<Inventory>,
    body: Result<UnparsedBody, Error>,
) -> Result<StatusCode, ApiError> {
    let mut step = None;
    if let Err(error) = store_reply(&inventory, (key, request), body, &mut step).await {
        if !LargeBodies::is_incomplete_body(&error) {
            inventory.record_refused_reply(key, step, &error, Some(request)).await?;
        }
        return Err(error.into());
    }
    Ok(StatusCode::NO_CONTENT)
}

/// Stores the reply in a body, and records its step as soon as the step is known.
async fn store_reply(
    inventory: &Inventory,
    (key, request): (HostKey, RequestId),
    body: Result<UnparsedBody, Error>,
    step: &mut Option<StepType>,
) -> Result<(), Error> {
    let body = body?;
    let digest = ReplyDigest::new(body.bytes());
    if inventory.is_repeated_reply(key, digest).await? {
        return Ok(());
    }
    let reply: StepReply = body.parse().await?;
    *step = reply.known_type();
    inventory.store_reply(key, (&reply, digest), Some(request)).await
}

/// Updates the installation progress of a host
#[utoipa::path(
    put,
    path = "/v2/infra-envs/{infra_env_id}/hosts/{host_id}/progress",
    operation_id = "v2UpdateHostInstallProgress",
    tag = "hosts",
    params(HostKey),
    request_body = HostProgressParams,
    responses((status = OK), ApiErrors)
)]
async fn update_host_progress(
    Caller { target: key, .. }: Caller<Agent, HostKey>,
    request: RequestId,
    State(inventory): State<Inventory>,
    Body(params): Body<HostProgressParams>,
) -> Result<StatusCode, ApiError> {
    inventory.update_host_progress(key, &params, Some(request)).await?;
    Ok(StatusCode::OK)
}

/// Updates the state of a host's log upload
#[utoipa::path(
    put,
    path = "/v2/infra-envs/{infra_env_id}/hosts/{host_id}/logs-progress",
    operation_id = "v2UpdateHostLogsProgress",
    tag = "hosts",
    params(HostKey),
    request_body = LogsProgressParams,
    responses((status = NO_CONTENT), ApiErrors)
)]
async fn update_host_logs_progress(
    Caller { target: key, .. }: Caller<Agent, HostKey>,
    request: RequestId,
    State(inventory): State<Inventory>,
    Body(params): Body<LogsProgressParams>,
) -> Result<StatusCode, ApiError> {
    inventory.update_host_logs_state(key, params.logs_state, Some(request)).await?;
    Ok(StatusCode::NO_CONTENT)
}
