//! `/v2/events`.

use std::sync::Arc;

use axum::extract::State;
use axum::http::{HeaderName, HeaderValue, StatusCode};
use axum::response::Response;
use futures_util::stream::{self, BoxStream};
use futures_util::{StreamExt, TryStreamExt};

use super::told::ToldEvent;
use super::{Category, Event, EventPage, EventQuery, EventView, Severity, SeverityCounts};
use crate::api_error::ApiError;
use crate::api_error::ApiErrors;
use crate::inventory::Inventory;
use crate::inventory::auth::{
    Agent, Caller, EventsOf, Logs, Named, NamedInBody, Operation, Scope, operation,
};
use crate::inventory::host::HostRecord;
use crate::inventory::id::ClusterId;
use crate::inventory::infra_env::InfraEnvRecord;
use crate::inventory::list::json_list;
use crate::inventory::request::{Body, Query, RequestId};
use crate::inventory::store::{Filter, Key, Kind, Record, Store};

pub(crate) fn routes() -> Vec<Operation> {
    vec![operation!(list_events), operation!(trigger_event)]
}

/// How many events an answer has that asks for no number.
const USUAL_LIMIT: u64 = 5000;

/// How many events are read at a time. One may have 80 KiB.
const PAGE: u64 = 50;

/// Events
#[utoipa::path(
    get,
    path = "/v2/events",
    operation_id = "v2ListEvents",
    tag = "events",
    params(
        ("cluster_id" = Option<uuid::Uuid>, Query, description = "Only those of this cluster"),
        ("host_id" = Option<uuid::Uuid>, Query, description = "As `host_ids`, for one"),
        ("host_ids" = Option<String>, Query, description = "Only those of these hosts, with commas between them"),
        ("infra_env_id" = Option<uuid::Uuid>, Query, description = "Only those of this infra-env, without cluster or hosts"),
        ("limit" = Option<i64>, Query, description = "At most so many; 5000 without, all with -1"),
        ("offset" = Option<i64>, Query, description = "Without the first so many"),
        ("order" = Option<String>, Query, description = "`ascending` or `descending`, by time"),
        ("severities" = Option<String>, Query, description = "Only these, with commas between them"),
        ("categories" = Option<String>, Query, description = "Only these, with commas between them; `user` without"),
        ("message" = Option<String>, Query, description = "With a cluster: only those that say this"),
        ("deleted_hosts" = Option<bool>, Query, description = "With a cluster: those of its deleted hosts"),
        ("cluster_level" = Option<bool>, Query, description = "With a cluster: those of no host")
    ),
    responses(
        (status = OK, body = Vec<EventView>, headers(
            ("Event-Count" = u64, description = "How many there are in all"),
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
    let asked = Asked::read(&query, caller.target.0)?;
    let Some(query) = asked.resolve(&inventory, caller.scope).await? else {
        return counted(json_list(stream::empty::<Result<EventView, ApiError>>()).await?, 0, [0; 4]);
    };
    let store = Arc::clone(inventory.records().store());
    let first = EventQuery { limit: Some(query.limit.unwrap_or(PAGE).min(PAGE)), ..query.clone() };
    let page = store.events(&first).await?;
    // By severity they are counted for clusters only.
    let by_severity = if asked.named.cluster.is_some() { page.by_severity } else { Default::default() };
    let count = page.count;
    let response = json_list(events_from(page, query, store).map_ok(EventView::from)).await?;
    counted(response, count, by_severity)
}

/// The events of a page and all that follow it, read page by page.
fn events_from(
    page: EventPage,
    query: EventQuery,
    store: Arc<dyn Store>,
) -> BoxStream<'static, Result<Event, ApiError>> {
    let pages = stream::try_unfold((Some(page), query), move |(page, query)| {
        let store = Arc::clone(&store);
        async move {
            let page = match page {
                Some(first) => first,
                None => {
                    let limit = Some(query.limit.unwrap_or(PAGE).min(PAGE));
                    store.events(&EventQuery { limit, offset: 0, ..query.clone() }).await?
                }
            };
            if page.events.is_empty() {
                return Ok::<_, ApiError>(None);
            }
            let found = u64::try_from(page.events.len()).unwrap_or(u64::MAX);
            let limit = query.limit.map(|limit| limit.saturating_sub(found));
            let rest = EventQuery { limit, after: page.last, ..query };
            Ok(Some((stream::iter(page.events.into_iter().map(Ok)), (None, rest))))
        }
    });
    pages.try_flatten().boxed()
}

/// An answer with how many events there are in all.
fn counted(mut response: Response, count: u64, by_severity: SeverityCounts) -> Result<Response, ApiError> {
    let headers = response.headers_mut();
    headers.insert(HeaderName::from_static("event-count"), HeaderValue::from(count));
    for (severity, count) in Severity::ALL.into_iter().zip(by_severity) {
        headers.insert(count_header(severity), HeaderValue::from(count));
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

/// What somebody asks for.
#[derive(Debug)]
struct Asked {
    named: Named,
    deleted_hosts: bool,
    cluster_level: bool,
    /// The rest.
    page: EventQuery,
}

impl Asked {
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
            // A number below zero is no limit.
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

    /// The query that the store is asked. Nothing if nothing can be found. A cluster counts more than hosts, and these more
    /// than an infra-env.
    async fn resolve(&self, inventory: &Inventory, scope: Scope) -> Result<Option<EventQuery>, ApiError> {
        let resolved = if let Some(cluster) = self.named.cluster {
            self.of_cluster(inventory, cluster).await?
        } else if !self.named.hosts.is_empty() {
            Some(EventQuery {
                hosts: self.named.hosts.clone(),
                live_hosts: true,
                message: None,
                ..self.page.clone()
            })
        } else {
            self.of_infra_env(inventory).await?
        };
        Ok(resolved.map(|query| match scope {
            // Its token was checked against the infra-env or the hosts that were named; more of these it does not reach.
            Scope::InfraEnv(own) => EventQuery { infra_env: Some(own), ..query },
            Scope::Cluster(_) | Scope::Everything => query,
        }))
    }

    async fn of_cluster(
        &self,
        inventory: &Inventory,
        cluster: ClusterId,
    ) -> Result<Option<EventQuery>, ApiError> {
        let mut hosts = self.named.hosts.clone();
        if self.deleted_hosts {
            let filter = Filter::all(Kind::Host).of_cluster(cluster.0).with_deleted();
            let all = inventory.records().stream::<HostRecord>(filter);
            let deleted = all.try_filter_map(|host| {
                std::future::ready(Ok(host.record.is_deleted().then_some(host.record.id)))
            });
            hosts.extend(deleted.try_collect::<Vec<_>>().await?);
            if hosts.is_empty() && !self.cluster_level {
                return Ok(None);
            }
        }
        let cluster_level = self.cluster_level;
        Ok(Some(EventQuery { cluster: Some(cluster), hosts, cluster_level, ..self.page.clone() }))
    }

    async fn of_infra_env(&self, inventory: &Inventory) -> Result<Option<EventQuery>, ApiError> {
        if let Some(infra_env) = self.named.infra_env {
            let key = Key { kind: InfraEnvRecord::KIND, parent: None, id: infra_env.0 };
            if !inventory.records().store().is_there(key).await? {
                return Ok(None);
            }
        }
        Ok(Some(EventQuery { infra_env: self.named.infra_env, message: None, ..self.page.clone() }))
    }
}

/// Tells an event
#[utoipa::path(
    post,
    path = "/v2/events",
    operation_id = "v2TriggerEvent",
    tag = "events",
    request_body = ToldEvent,
    responses((status = CREATED), ApiErrors)
)]
async fn trigger_event(
    caller: Caller<Agent, NamedInBody>,
    request: RequestId,
    State(inventory): State<Inventory>,
    Body(told): Body<ToldEvent>,
) -> Result<StatusCode, ApiError> {
    let (infra_env, cluster) = (told.infra_env_id, told.cluster_id);
    let hosts = told.host_id.into_iter().collect();
    caller.require(&inventory, &Named { infra_env, cluster, hosts }).await?;
    // What cannot be kept is let go: who tells it could not do better.
    if let Some(event) = told.into_event(request) {
        inventory.records().tell(event).await?;
    }
    Ok(StatusCode::CREATED)
}
