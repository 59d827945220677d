//! What agents and installers call.

use std::convert::Infallible;

use axum::extract::{FromRequestParts, State};
use axum::http::StatusCode;
use axum::http::request::Parts;
use serde_json::json;

use super::super::journal::Journal;
use super::super::key::HostKey;
use super::super::model::{
    Host, HostCreateParams, HostProgressParams, LogsProgressParams, RegisteredHost, RunnerCommand,
};
use super::super::progress::{keep_logs_state, keep_progress};
use super::super::record::HostRecord;
use super::super::refresh::refresh;
use super::super::registration::Registration;
use super::super::reply::Finding;
use super::super::steps::{StepReply, Steps, has_to_upgrade, steps_for};
use super::super::view::Shown;
use crate::api_error::ApiError;
use crate::api_error::{ApiErrors, Reply};
use crate::inventory::Inventory;
use crate::inventory::auth::{Agent, Caller, Operation, operation};
use crate::inventory::event::Severity;
use crate::inventory::id::InfraEnvId;
use crate::inventory::infra_env::InfraEnvRecord;
use crate::inventory::request::{Body, Query, RequestId};

pub(super) fn routes() -> Vec<Operation> {
    vec![
        operation!(register_host),
        operation!(get_next_steps),
        operation!(post_step_reply),
        operation!(update_host_progress),
        operation!(update_host_logs_progress),
    ]
}

/// What the name of an image has at most, in bytes; a longer one is none.
const MOST_VERSION: usize = 2048;

/// What comes with all requests of an agent.
#[derive(Debug)]
struct AgentCall {
    request: RequestId,
    /// The image that it comes from, if it says so.
    agent_version: Option<String>,
}

impl<S: Send + Sync> FromRequestParts<S> for AgentCall {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Infallible> {
        let request = RequestId::from_request_parts(parts, state).await?;
        let version = parts.headers.get("discovery_agent_version").and_then(|value| value.to_str().ok());
        let agent_version =
            version.filter(|version| (1..=MOST_VERSION).contains(&version.len())).map(str::to_owned);
        Ok(Self { request, agent_version })
    }
}

/// A machine booted, and its agent registers it
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
    let place = HostKey { infra_env_id, host_id: params.host_id };
    let agent_version = params.discovery_agent_version.or(call.agent_version).unwrap_or_default();
    let host = Registration { place, agent_version, request: call.request }.register(&inventory).await?;
    let settings = inventory.settings();
    let asked = json!({
        "infra_env_id": infra_env_id,
        "host_id": params.host_id,
        "agent_version": settings.agent_image,
    });
    let host = Host::of(host, Shown::InFull, settings);
    let next_step_runner_command = RunnerCommand { args: vec![asked.to_string()] };
    Ok(Reply(StatusCode::CREATED, RegisteredHost { host, next_step_runner_command }))
}

/// What the agent of a host shall do
#[utoipa::path(
    get,
    path = "/v2/infra-envs/{infra_env_id}/hosts/{host_id}/instructions",
    operation_id = "v2GetNextSteps",
    tag = "hosts",
    params(HostKey, ("timestamp" = Option<i64>, Query, description = "The clock of the host, in seconds since 1970")),
    responses((status = OK, body = Steps), ApiErrors)
)]
async fn get_next_steps(
    Caller { target: place, .. }: Caller<Agent, HostKey>,
    call: AgentCall,
    query: Query,
    State(inventory): State<Inventory>,
) -> Result<Reply<Steps>, ApiError> {
    let clock = query.number("timestamp")?;
    let records = inventory.records();
    let infra_env =
        records.find::<InfraEnvRecord>(None, place.infra_env_id.0).await?.map(|found| found.record);
    let check_in = |host: &mut HostRecord, journal: &mut Journal| {
        // That it was silent until now, somebody may have missed.
        refresh(host, inventory.settings(), journal);
        host.clock = clock.unwrap_or(host.clock);
        host.checked_in_at = journal.millis();
        if let Some(version) = &call.agent_version {
            host.agent_version.clone_from(version);
        }
        if has_to_upgrade(host, inventory.settings()) {
            let message = format!("Agent is upgraded to {}", inventory.settings().agent_image);
            journal.tell_hourly(host, "upgrade_agent_started", Severity::Info, &message);
        }
        let steps = steps_for(host, infra_env.as_ref(), inventory.settings());
        refresh(host, inventory.settings(), journal);
        Ok(steps)
    };
    let (_, steps) = place.change(&inventory, call.request, check_in).await?;
    Ok(Reply(StatusCode::OK, steps))
}

/// What came of a step
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
    Caller { target: place, .. }: Caller<Agent, HostKey>,
    request: RequestId,
    State(inventory): State<Inventory>,
    Body(reply): Body<StepReply>,
) -> Result<StatusCode, ApiError> {
    place.find(inventory.records()).await?;
    let finding = Finding::read(&reply, &inventory.settings().host_limits)?;
    let keep =
        |host: &mut HostRecord, journal: &mut Journal| finding.keep(host, inventory.settings(), journal);
    place.change(&inventory, request, keep).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// How far the installation of a host is
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
    Caller { target: place, .. }: Caller<Agent, HostKey>,
    request: RequestId,
    State(inventory): State<Inventory>,
    Body(said): Body<HostProgressParams>,
) -> Result<StatusCode, ApiError> {
    place.change(&inventory, request, |host, journal| keep_progress(host, &said, journal)).await?;
    Ok(StatusCode::OK)
}

/// How far the logs of a host are
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
    Caller { target: place, .. }: Caller<Agent, HostKey>,
    request: RequestId,
    State(inventory): State<Inventory>,
    Body(said): Body<LogsProgressParams>,
) -> Result<StatusCode, ApiError> {
    let keep = |host: &mut HostRecord, journal: &mut Journal| {
        keep_logs_state(host, said.logs_state, journal);
        Ok(())
    };
    place.change(&inventory, request, keep).await?;
    Ok(StatusCode::NO_CONTENT)
}
