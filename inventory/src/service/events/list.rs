//! Lists of events.

use std::sync::Arc;

use futures_util::stream::{self, BoxStream};
use futures_util::{StreamExt, TryStreamExt};

use crate::Inventory;
use crate::auth::{Named, Scope};
use crate::error::Error;
use crate::event::{Event, EventPage, EventQuery, SeverityCounts};
use crate::id::{ClusterId, InfraEnvId};
use crate::infra_env::InfraEnvRecord;
use crate::store::{Key, Record, Store};

/// The parameters of a list of events.
#[derive(Clone, Debug)]
pub(crate) struct EventListParams {
    /// The resources whose events are listed. A cluster takes precedence over hosts, and hosts over an infra-env.
    pub(crate) named: Named,
    /// The scope of the caller's token, which was checked against the named resources.
    pub(crate) scope: Scope,
    /// With a cluster: also selects its deleted hosts.
    pub(crate) deleted_hosts: bool,
    /// With a cluster: also selects events about no host.
    pub(crate) cluster_level: bool,
    /// Filters, order and paging.
    pub(crate) page: EventQuery,
}

/// The events that a request selects.
pub(crate) struct SelectedEvents {
    /// Number of all matching events.
    pub(crate) count: u64,
    /// Number of matching events of each severity, for a cluster. Otherwise 0.
    pub(crate) by_severity: SeverityCounts,
    /// The events between offset and limit, read page by page.
    pub(crate) events: BoxStream<'static, Result<Event, Error>>,
}

impl Inventory {
    /// Returns a list of events.
    ///
    /// # Errors
    ///
    /// Returns an error if the database fails.
    pub(crate) async fn list_events(&self, params: &EventListParams) -> Result<SelectedEvents, Error> {
        let Some(query) = self.event_query(params).await? else {
            return Ok(SelectedEvents {
                count: 0,
                by_severity: SeverityCounts::default(),
                events: stream::empty().boxed(),
            });
        };
        let store = Arc::clone(self.records().store());
        let page = store.events(&one_page_query(&query)).await?;
        // The Assisted Installer counts severities only for clusters.
        let by_severity = if params.named.cluster.is_some() { page.by_severity } else { Default::default() };
        Ok(SelectedEvents { count: page.count, by_severity, events: events_from(page, query, store) })
    }

    /// Returns the query for the store, or `None` if no event can match.
    async fn event_query(&self, params: &EventListParams) -> Result<Option<EventQuery>, Error> {
        let query = if let Some(cluster) = params.named.cluster {
            self.event_query_for_cluster(params, cluster).await?
        } else if !params.named.hosts.is_empty() {
            let hosts = params.named.hosts.clone();
            Some(EventQuery { hosts, live_hosts: true, message: None, ..params.page.clone() })
        } else {
            self.event_query_for_infra_env(params, params.named.infra_env).await?
        };
        Ok(query.map(|query| match params.scope {
            // The token was checked against the named infra-env or hosts. It gives access to their events in its own
            // infra-env only.
            Scope::InfraEnv(own) => EventQuery { infra_env: Some(own), ..query },
            Scope::Cluster(_) | Scope::Everything => query,
        }))
    }

    async fn event_query_for_cluster(
        &self,
        params: &EventListParams,
        cluster: ClusterId,
    ) -> Result<Option<EventQuery>, Error> {
        let mut hosts = params.named.hosts.clone();
        if params.deleted_hosts {
            hosts.extend(self.records().store().deleted_hosts(cluster).await?);
            if hosts.is_empty() && !params.cluster_level {
                return Ok(None);
            }
        }
        let cluster_level = params.cluster_level;
        Ok(Some(EventQuery { cluster: Some(cluster), hosts, cluster_level, ..params.page.clone() }))
    }

    async fn event_query_for_infra_env(
        &self,
        params: &EventListParams,
        infra_env: Option<InfraEnvId>,
    ) -> Result<Option<EventQuery>, Error> {
        if let Some(infra_env) = infra_env {
            let key = Key { kind: InfraEnvRecord::KIND, parent: None, id: infra_env.0 };
            if !self.records().store().exists(key).await? {
                return Ok(None);
            }
        }
        Ok(Some(EventQuery { infra_env, message: None, ..params.page.clone() }))
    }
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
