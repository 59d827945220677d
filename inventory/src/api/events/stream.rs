//! `/v2/events/stream`: the changes of clusters, infra-envs and hosts while they happen, as server-sent events.
//!
//! An event names a changed record, and the client then reads the record again. Each event has an id. A client that
//! sends the id of its last event continues after that event. If that is impossible, the first event is `resync`: any
//! record may have changed. A browser cannot send headers when it opens a stream, so it requests a ticket and puts it
//! into the URL.

use std::pin::Pin;
use std::time::Duration;

use assisted::error::InfraError;
use axum::Json;
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::Response;
use chrono::{DateTime, TimeDelta, Utc};
use futures_util::stream::{self, BoxStream, Peekable};
use futures_util::{FutureExt as _, StreamExt as _};
use serde::Serialize;
use tokio::time::{Instant, timeout_at};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::api::auth::{Caller, ChangesOf, Operation, Streamer, User, WholeService, operation};
use crate::api::{ApiError, ApiErrors, Query};
use crate::id::InfraEnvId;
use crate::service::{ResourceChange, ResourceId, WatchEvent, WatchQuery};
use crate::store::{ChangeKind, FeedPosition, Kind};
use crate::{Inventory, Secret};

/// Validity of a ticket.
const TICKET_LIFETIME: TimeDelta = TimeDelta::seconds(60);
/// Maximum time without a message. Proxies close connections that are silent for longer, often for a minute.
const MAX_SILENCE: Duration = Duration::from_secs(15);
/// Maximum duration of a stream. The client must then send a valid token again.
const MAX_LIFETIME: Duration = Duration::from_secs(600);

pub(super) fn routes() -> Vec<Operation> {
    vec![operation!(create_ticket), operation!(stream_changes)]
}

/// A ticket for the stream of changes.
#[derive(Serialize, ToSchema)]
#[schema(as = stream_ticket)]
struct Ticket {
    /// The value of the parameter `ticket`. Empty if the service requires no tokens.
    #[schema(value_type = String)]
    ticket: Secret,
    /// When the ticket expires. A stream that it has opened continues.
    expires_at: DateTime<Utc>,
}

/// The data of an event about a changed record.
#[derive(Debug, Serialize)]
struct ChangeView {
    /// The kind of the record: `cluster`, `infra-env` or `host`.
    resource: &'static str,
    /// The id of the record.
    id: Uuid,
    /// The infra-env of a host.
    #[serde(skip_serializing_if = "Option::is_none")]
    infra_env_id: Option<Uuid>,
    /// A number that increases with every change to the record. Absent: only results of validations changed, which are
    /// not a part of the record.
    #[serde(skip_serializing_if = "Option::is_none")]
    generation: Option<i64>,
    /// `written` or `removed`.
    change: &'static str,
}

/// Creates a ticket for the stream of changes
#[utoipa::path(
    post,
    path = "/v2/events/tickets",
    operation_id = "v2CreateStreamTicket",
    tag = "events",
    responses((status = CREATED, body = Ticket), ApiErrors)
)]
async fn create_ticket(
    _: Caller<User, WholeService>,
    State(inventory): State<Inventory>,
) -> Result<(StatusCode, Json<Ticket>), ApiError> {
    let now = inventory.now();
    let expires_at = now + TICKET_LIFETIME;
    let ticket = inventory.policy().ticket(now, expires_at)?;
    Ok((StatusCode::CREATED, Json(Ticket { ticket, expires_at })))
}

/// Streams changes of clusters, infra-envs and hosts
#[utoipa::path(
    get,
    path = "/v2/events/stream",
    operation_id = "v2StreamChanges",
    tag = "events",
    params(
        ("infra_env_id" = Option<uuid::Uuid>, Query, description = "Only changes of this infra-env and its hosts"),
        ("ticket" = Option<String>, Query, description = "A ticket, for clients that cannot send headers"),
        ("last_event_id" = Option<String>, Query, description = "Like `Last-Event-ID`, which takes precedence"),
        ("Last-Event-ID" = Option<String>, Header, description = "The id of the last event that the client got")
    ),
    responses(
        (status = OK, content_type = "text/event-stream", body = String,
            description = "Events `change`, each with `resource`, `id`, `infra_env_id`, `generation` and `change` of a record, and events `resync`: any record may have changed"),
        (status = TOO_MANY_REQUESTS, body = InfraError,
            description = "The client has too many streams open; retry after the time in `Retry-After`."),
        ApiErrors
    )
)]
async fn stream_changes(
    caller: Caller<Streamer, ChangesOf>,
    query: Query,
    headers: HeaderMap,
    State(inventory): State<Inventory>,
) -> Result<Response, ApiError> {
    let ChangesOf(infra_env) = caller.target;
    let last = headers.get("last-event-id").and_then(|value| value.to_str().ok());
    let after = last.or_else(|| query.text("last_event_id")).and_then(FeedPosition::parse);
    let mut events = inventory.watch(WatchQuery { infra_env, after }).peekable();
    // This check follows the subscription: if the infra-env is removed later, the stream reports the removal.
    if let Some(id) = infra_env {
        inventory.infra_env(id).await?;
    }
    // The head of the response is sent with the first bytes of the body, so the stream always has a first message.
    let first = match Pin::new(&mut events).peek().now_or_never() {
        Some(Some(WatchEvent::Resync { .. })) => None,
        _ => Some(keep_alive_comment()),
    };
    let changes = ChangeStream { first, events, infra_env, ends_at: Some(Instant::now() + MAX_LIFETIME) };
    let messages = stream::try_unfold(changes, |mut changes| async move {
        let message = changes.next_message().await?;
        Ok::<_, ApiError>(message.map(|message| (message, changes)))
    });
    let mut response = Response::new(Body::from_stream(messages));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    // nginx would otherwise hold events back until its buffer is full.
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    Ok(response)
}

/// The changes for one client. They are not polled while the client does not read. This is safe, because a watch holds
/// no resource that other tasks wait for.
struct ChangeStream {
    first: Option<String>,
    events: Peekable<BoxStream<'static, WatchEvent>>,
    infra_env: Option<InfraEnvId>,
    /// `None` after the end of the stream.
    ends_at: Option<Instant>,
}

impl ChangeStream {
    /// Returns the next message, or `None` at the end of the stream.
    async fn next_message(&mut self) -> Result<Option<String>, ApiError> {
        if let Some(first) = self.first.take() {
            return Ok(Some(first));
        }
        let Some(ends_at) = self.ends_at else { return Ok(None) };
        let until = ends_at.min(Instant::now() + MAX_SILENCE);
        let change = match timeout_at(until, self.events.next()).await {
            Ok(Some(WatchEvent::Changed(change))) => change,
            Ok(Some(WatchEvent::Resync { position })) => return Ok(Some(resync_message(position))),
            Err(_) if until < ends_at => return Ok(Some(keep_alive_comment())),
            Ok(None) | Err(_) => return Ok(None),
        };
        // A stream ends after the removal of its infra-env.
        let is_of_infra_env = self.infra_env.is_some_and(|id| change.resource == ResourceId::InfraEnv(id));
        if change.kind == ChangeKind::Removed && is_of_infra_env {
            self.ends_at = None;
        }
        change_message(&change).map(Some)
    }
}

fn change_message(change: &ResourceChange) -> Result<String, ApiError> {
    let (kind, id, infra_env_id) = match change.resource {
        ResourceId::Cluster(id) => (Kind::Cluster, id.0, None),
        ResourceId::InfraEnv(id) => (Kind::InfraEnv, id.0, None),
        ResourceId::Host(key) => (Kind::Host, key.host_id.0, Some(key.infra_env_id.0)),
    };
    let view = ChangeView {
        resource: kind.as_str(),
        id,
        infra_env_id,
        generation: change.generation,
        change: match change.kind {
            ChangeKind::Written => "written",
            ChangeKind::Removed => "removed",
        },
    };
    let view = serde_json::to_string(&view)
        .map_err(|error| ApiError::broken(format_args!("a change as JSON: {error}")))?;
    Ok(format!("id: {}\nevent: change\ndata: {view}\n\n", change.position))
}

/// Returns a message that clients ignore.
fn keep_alive_comment() -> String {
    ":\n\n".to_owned()
}

fn resync_message(position: FeedPosition) -> String {
    format!("id: {position}\nevent: resync\ndata: {{}}\n\n")
}
