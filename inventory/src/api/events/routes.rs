//! Routes of `/v2/events`.

use std::sync::Arc;

use axum::extract::State;
use axum::http::{HeaderName, HeaderValue, StatusCode};
use axum::response::Response;
use futures_util::stream::{self, BoxStream};
use futures_util::{StreamExt, TryStreamExt};

use super::EventView;
use super::reported::ReportedEvent;
use crate::Inventory;
use crate::api::ApiError;
use crate::api::ApiErrors;
use crate::api::auth::{Agent, Caller, EventsOf, Logs, NamedInBody, Operation, operation};
use crate::api::json_list;
use crate::api::{Body, Query};
use crate::auth::{Named, Scope};
use crate::error::Error;
use crate::event::{Category, Event, EventPage, EventQuery, Severity, SeverityCounts};
use crate::id::ClusterId;
use crate::infra_env::InfraEnvRecord;
use crate::store::{Key, Record, Store};

pub(crate) fn routes() -> Vec<Operation> {
    let mut routes = vec![operation!(list_events), operation!(trigger_event)];
    routes.extend(super::stream::routes());
    routes
}
use crate::request_id::RequestId;

/// Limit of a request without `limit`.
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
        (status = OK, body = Vec<EventView>, headers(
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
    let asked = EventParams::read(&query, caller.target.0)?;
    let Some(query) = asked.resolve(&inventory, caller.scope).await? else {
        return with_count_headers(json_list(stream::empty::<Result<EventView, Error>>()).await?, 0, [0; 4]);
    };
    let store = Arc::clone(inventory.records().store());
    let page = store.events(&one_page_query(&query)).await?;
    // The Assisted Installer counts severities only for clusters.
    let by_severity = if asked.named.cluster.is_some() { page.by_severity } else { Default::default() };
    let count = page.count;
    let response = json_list(events_from(page, query, store).map_ok(EventView::from)).await?;
    with_count_headers(response, count, by_severity)
}

/// Returns the query for one page of a query's events.
fn one_page_query(query: &EventQuery) -> EventQuery {
    // The store returns pages if there is a limit.
    EventQuery { limit: Some(query.limit.unwrap_or(u64::MAX)), ..query.clone() }
}

/// Returns the events of a page and all that follow, read page by page.
fn events_from(
    page: EventPage,
    query: EventQuery,
    store: Arc<dyn Store>,
) -> BoxStream<'static, Result<Event, Error>> {
    let pages = stream::try_unfold((Some(page), query), move |(page, query)| {
        let store = Arc::clone(&store);
        async move {
            let page = match page {
                Some(first) => first,
                None => store.events(&EventQuery { offset: 0, ..one_page_query(&query) }).await?,
            };
            if page.events.is_empty() {
                return Ok::<_, Error>(None);
            }
            let found = u64::try_from(page.events.len()).unwrap_or(u64::MAX);
            let limit = query.limit.map(|limit| limit.saturating_sub(found));
            let rest = EventQuery { limit, after: page.last, ..query };
            Ok(Some((stream::iter(page.events.into_iter().map(Ok)), (None, rest))))
        }
    });
    pages.try_flatten().boxed()
}

/// Adds the counts of events to an answer, as headers.
fn with_count_headers(
    mut response: Response,
    count: u64,
    by_severity: SeverityCounts,
) -> Result<Response, ApiError> {
    let headers = response.headers_mut();
    headers.insert(HeaderName::from_static("event-count"), HeaderValue::from(count));
    for (severity, count) in Severity::ALL.iter().zip(by_severity) {
        headers.insert(count_header(*severity), HeaderValue::from(count));
    }
    Ok(response)
}

fn count_header(severity: Severity) -> HeaderName {
    HeaderName::from_static(match severity {
        Severity::Info => "severity-count-info",
        Severity::Warning => "severity-count-warning",
        Severity::Error => "severity-count-error",
        Severity::Critical => "severity-count-critical",
    })
}

/// The parameters of a request for events.
#[derive(Debug)]
struct EventParams {
    named: Named,
    deleted_hosts: bool,
    cluster_level: bool,
    /// Filters, order and paging.
    page: EventQuery,
}

impl EventParams {
    fn read(query: &Query, named: Named) -> Result<Self, ApiError> {
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
        let page = EventQuery {
            severities: query.choices("severities", &SEVERITIES)?,
            categories,
            message: query.text("message").map(str::to_owned),
            descending: query.choice("order", &ORDERS)?.unwrap_or_default(),
            // A negative limit means no limit, and a negative offset means 0.
            limit: query.number("limit")?.map_or(Some(USUAL_LIMIT), |limit| u64::try_from(limit).ok()),
            offset: query.number("offset")?.and_then(|offset| u64::try_from(offset).ok()).unwrap_or_default(),
            ..EventQuery::default()
        };
        Ok(Self {
            named,
            deleted_hosts: query.flag("deleted_hosts"),
            cluster_level: query.flag("cluster_level"),
            page,
        })
    }

    /// Returns the query for the store, or `None` if no event can match. A cluster takes precedence over hosts, and
    /// hosts over an infra-env.
    async fn resolve(&self, inventory: &Inventory, scope: Scope) -> Result<Option<EventQuery>, ApiError> {
        let resolved = if let Some(cluster) = self.named.cluster {
            self.query_for_cluster(inventory, cluster).await?
        } else if !self.named.hosts.is_empty() {
            Some(EventQuery {
                hosts: self.named.hosts.clone(),
                live_hosts: true,
                message: None,
                ..self.page.clone()
            })
        } else {
            self.query_for_infra_env(inventory).await?
        };
        Ok(resolved.map(|query| match scope {
            // The token was checked against the named infra-env or hosts. It gives access to their events in its own
            // infra-env only.
            Scope::InfraEnv(own) => EventQuery { infra_env: Some(own), ..query },
            Scope::Cluster(_) | Scope::Everything => query,
        }))
    }

    async fn query_for_cluster(
        &self,
        inventory: &Inventory,
        cluster: ClusterId,
    ) -> Result<Option<EventQuery>, ApiError> {
        let mut hosts = self.named.hosts.clone();
        if self.deleted_hosts {
            hosts.extend(inventory.records().store().deleted_hosts(cluster).await?);
            if hosts.is_empty() && !self.cluster_level {
                return Ok(None);
            }
        }
        let cluster_level = self.cluster_level;
        Ok(Some(EventQuery { cluster: Some(cluster), hosts, cluster_level, ..self.page.clone() }))
    }

    async fn query_for_infra_env(&self, inventory: &Inventory) -> Result<Option<EventQuery>, ApiError> {
        if let Some(infra_env) = self.named.infra_env {
            let key = Key { kind: InfraEnvRecord::KIND, parent: None, id: infra_env.0 };
            if !inventory.records().store().exists(key).await? {
                return Ok(None);
            }
        }
        Ok(Some(EventQuery { infra_env: self.named.infra_env, message: None, ..self.page.clone() }))
    }
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
    Body(told): Body<ReportedEvent>,
) -> Result<StatusCode, ApiError> {
    let (infra_env, cluster) = (told.infra_env_id, told.cluster_id);
    let hosts = told.host_id.into_iter().collect();
    caller.require(&inventory, &Named { infra_env, cluster, hosts }).await?;
    // An event that is too long is dropped: an error would not help the client.
    if let Some(event) = told.into_event(&inventory.journal(Some(request))) {
        inventory.records().add_event(event).await?;
    }
    Ok(StatusCode::CREATED)
}
