//! The operations of `/v2/events`.

use assisted::event::{ListedEvent, ReportedEvent};
use axum::extract::State;
use axum::http::{HeaderName, HeaderValue, StatusCode};
use axum::response::Response;
use futures_util::TryStreamExt as _;

use crate::Inventory;
use crate::api::auth::{Agent, Caller, EventsOf, Logs, NamedInBody, Operation, operation};
use crate::api::{ApiError, ApiErrors, Body, Query, json_list, request_bodies};
use crate::auth::{Named, Scope};
use crate::event::{Category, Severity, SeverityCounts};
use crate::request_id::RequestId;
use crate::service::events::{EventListQuery, EventSubject};
use crate::store::ListRange;

request_bodies! {
    ReportedEvent: "triggerEventParams";
}

pub(crate) fn routes() -> Vec<Operation> {
    let mut routes = vec![operation!(list_events), operation!(trigger_event)];
    routes.extend(super::stream::routes());
    routes
}

/// Value of `limit` if the request has none.
const USUAL_LIMIT: u64 = 5000;

/// Lists events
#[utoipa::path(
    get,
    path = "/v2/events",
    operation_id = "v2ListEvents",
    tag = "events",
    params(
        ("cluster_id" = Option<uuid::Uuid>, Query, description = "Only events of this cluster"),
        ("host_id" = Option<uuid::Uuid>, Query, description = "Like `host_ids`, for one host"),
        ("host_ids" = Option<String>, Query, description = "Only events of these hosts, separated by commas"),
        ("infra_env_id" = Option<uuid::Uuid>, Query, description = "Only events of this infra-env. Ignored if a cluster or hosts are given"),
        ("limit" = Option<i64>, Query, description = "Maximum number of events. Default: 5000. -1: no limit"),
        ("offset" = Option<i64>, Query, description = "Number of events to skip"),
        ("order" = Option<String>, Query, description = "Order by time: `ascending` or `descending`"),
        ("severities" = Option<String>, Query, description = "Only events with these severities, separated by commas"),
        ("categories" = Option<String>, Query, description = "Only events of these categories, separated by commas. Default: `user`"),
        ("message" = Option<String>, Query, description = "With a cluster: only events whose message contains this text"),
        ("deleted_hosts" = Option<bool>, Query, description = "With a cluster: also select its deleted hosts"),
        ("cluster_level" = Option<bool>, Query, description = "With a cluster: also events about no host")
    ),
    responses(
        (status = OK, body = Vec<ListedEvent>, headers(
            ("Event-Count" = u64, description = "Number of all matching events"),
            ("Severity-Count-Info" = u64), ("Severity-Count-Warning" = u64),
            ("Severity-Count-Error" = u64), ("Severity-Count-Critical" = u64)
        )),
        ApiErrors
    )
)]
async fn list_events(
    caller: Caller<Logs, EventsOf>,
    query: Query,
    State(inventory): State<Inventory>,
) -> Result<Response, ApiError> {
    let selected = select_by_resources(read_filters(&query)?, caller.target.0, caller.scope, &query);
    // The Assisted Installer counts severities only for clusters.
    let is_for_cluster = matches!(selected.subject, EventSubject::Cluster { .. });
    let list = inventory.events(selected).await?;
    let response = json_list(list.events.map_ok(ListedEvent::from)).await?;
    let by_severity = if is_for_cluster { list.by_severity } else { SeverityCounts::default() };
    Ok(with_count_headers(response, list.count, by_severity))
}

/// Selects the events of the resources that a request names. A cluster takes precedence over hosts, and hosts over an
/// infra-env. `scope` is the scope of the token, which was already checked against these resources.
fn select_by_resources(
    filters: EventListQuery,
    resources: Named,
    scope: Scope,
    query: &Query,
) -> EventListQuery {
    let Named { infra_env, cluster, hosts } = resources;
    let subject = match cluster {
        Some(id) => EventSubject::Cluster {
            id,
            hosts,
            deleted_hosts: query.flag("deleted_hosts"),
            cluster_level: query.flag("cluster_level"),
        },
        None if hosts.is_empty() => EventSubject::Any,
        None => EventSubject::Hosts(hosts),
    };
    let infra_env = match scope {
        // The token grants access only to the events in its own infra-env.
        Scope::InfraEnv(own) => Some(own),
        Scope::Cluster(_) | Scope::Everything => infra_env.filter(|_| subject == EventSubject::Any),
    };
    // As in the Assisted Installer, the message filter applies only to the events of a cluster.
    let message = filters.message.filter(|_| cluster.is_some());
    EventListQuery { subject, infra_env, message, ..filters }
}

/// Adds the counts of events to a response, as headers.
fn with_count_headers(mut response: Response, count: u64, by_severity: SeverityCounts) -> Response {
    let headers = response.headers_mut();
    headers.insert(HeaderName::from_static("event-count"), HeaderValue::from(count));
    for (severity, count) in Severity::ALL.iter().zip(by_severity) {
        headers.insert(count_header(*severity), HeaderValue::from(count));
    }
    response
}

fn count_header(severity: Severity) -> HeaderName {
    HeaderName::from_static(match severity {
        Severity::Info => "severity-count-info",
        Severity::Warning => "severity-count-warning",
        Severity::Error => "severity-count-error",
        Severity::Critical => "severity-count-critical",
    })
}

/// Reads the filters, the order and the page of a request for events.
fn read_filters(query: &Query) -> Result<EventListQuery, ApiError> {
    const SEVERITIES: [(&str, Severity); 4] = [
        ("info", Severity::Info),
        ("warning", Severity::Warning),
        ("error", Severity::Error),
        ("critical", Severity::Critical),
    ];
    const CATEGORIES: [(&str, Category); 2] = [("user", Category::User), ("metrics", Category::Metrics)];
    const ORDERS: [(&str, bool); 2] = [("ascending", false), ("descending", true)];
    let mut categories = query.choices("categories", &CATEGORIES)?;
    if categories.is_empty() {
        categories.push(Category::User);
    }
    let severities = query.choices("severities", &SEVERITIES)?;
    let descending = query.choice("order", &ORDERS)?.unwrap_or_default();
    let range = ListRange {
        // A negative limit means no limit, and a negative offset means 0.
        limit: query.number("limit")?.map_or(Some(USUAL_LIMIT), |limit| u64::try_from(limit).ok()),
        offset: query.number("offset")?.and_then(|offset| u64::try_from(offset).ok()).unwrap_or_default(),
    };
    Ok(EventListQuery {
        severities,
        categories,
        message: query.text("message").map(str::to_owned),
        descending,
        range,
        ..EventListQuery::default()
    })
}

/// Reports an event
#[utoipa::path(
    post,
    path = "/v2/events",
    operation_id = "v2TriggerEvent",
    tag = "events",
    request_body = ReportedEvent,
    responses((status = CREATED), ApiErrors)
)]
async fn trigger_event(
    caller: Caller<Agent, NamedInBody>,
    request: RequestId,
    State(inventory): State<Inventory>,
    Body(reported): Body<ReportedEvent>,
) -> Result<StatusCode, ApiError> {
    let (infra_env, cluster) = (reported.infra_env_id, reported.cluster_id);
    let hosts = reported.host_id.into_iter().collect();
    caller.require(&inventory, &Named { infra_env, cluster, hosts }).await?;
    inventory.report_event(reported, request).await?;
    Ok(StatusCode::CREATED)
}
