//! Lists the events of clusters, infra-envs and hosts.

use std::fmt;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use futures_util::stream::{self, BoxStream};
use futures_util::{StreamExt, TryStreamExt};

use crate::Inventory;
use crate::error::Error;
use crate::event::{Category, Event, EventPage, EventQuery, Severity, SeverityCounts};
use crate::id::{ClusterId, HostId, InfraEnvId};
use crate::infra_env::InfraEnvRecord;
use crate::store::{Key, ListRange, Record, Store};

/// A query for a list of events. By default, it selects all events.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EventListQuery {
    /// The resources that the selected events are about.
    pub subject: EventSubject,
    /// The infra-env of the selected events. `None` for no restriction. With [`EventSubject::Any`], the list is empty
    /// if the infra-env does not exist.
    pub infra_env: Option<InfraEnvId>,
    /// The severities of the selected events. Empty for all severities.
    pub severities: Vec<Severity>,
    /// The categories of the selected events. Empty for all categories.
    pub categories: Vec<Category>,
    /// A text that the messages of the selected events contain. `None` for no restriction. The search is
    /// case-insensitive.
    pub message: Option<String>,
    /// Whether the newest events come first.
    pub descending: bool,
    /// The range of the list to return.
    pub range: ListRange,
}

/// The resources that events must refer to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum EventSubject {
    /// Events about any resource, and events about no resource.
    #[default]
    Any,
    /// Events about these hosts, as far as they exist and are not deleted.
    Hosts(Vec<HostId>),
    /// Events of one cluster, optionally restricted to some of its hosts.
    Cluster {
        /// Id of the cluster.
        id: ClusterId,
        /// The hosts that the selected events are about. Empty for any host.
        hosts: Vec<HostId>,
        /// Whether the deleted hosts of the cluster are added to `hosts`.
        deleted_hosts: bool,
        /// Whether events about no host are listed. With `hosts`, they are listed in addition. Without `hosts`, only
        /// these events are listed.
        cluster_level: bool,
    },
}

impl EventListQuery {
    /// Returns a query for the events of an infra-env.
    #[must_use]
    pub fn for_infra_env(infra_env: InfraEnvId) -> Self {
        Self { infra_env: Some(infra_env), ..Self::default() }
    }

    /// Returns a query for the events of a cluster and its hosts.
    #[must_use]
    pub fn for_cluster(id: ClusterId) -> Self {
        let hosts = Vec::new();
        let subject = EventSubject::Cluster { id, hosts, deleted_hosts: false, cluster_level: false };
        Self { subject, ..Self::default() }
    }

    /// Returns a query for the events of hosts that exist and are not deleted.
    #[must_use]
    pub fn for_hosts(hosts: impl IntoIterator<Item = HostId>) -> Self {
        Self { subject: EventSubject::Hosts(hosts.into_iter().collect()), ..Self::default() }
    }

    /// Returns the store query without the condition on the subject.
    fn without_subject(&self) -> EventQuery {
        EventQuery {
            infra_env: self.infra_env,
            severities: self.severities.clone(),
            categories: self.categories.clone(),
            message: self.message.clone(),
            descending: self.descending,
            limit: self.range.limit,
            offset: self.range.offset,
            ..EventQuery::default()
        }
    }
}

/// The events of a list, with the numbers of all matching events.
pub struct SelectedEvents {
    /// Number of matching events, including events outside of the requested range.
    pub count: u64,
    /// Number of matching events of each severity, in the order of [`Severity::ALL`]. Counts all severities, even those
    /// that the query excludes.
    pub by_severity: SeverityCounts,
    /// The events in the requested range, read page by page.
    pub events: BoxStream<'static, Result<Event, Error>>,
}

impl fmt::Debug for SelectedEvents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { count, by_severity, .. } = self;
        f.debug_struct("SelectedEvents")
            .field("count", count)
            .field("by_severity", by_severity)
            .finish_non_exhaustive()
    }
}

impl Inventory {
    /// Returns the selected events, ordered by time.
    ///
    /// # Errors
    ///
    /// Returns an error if the database fails.
    pub fn events(&self, query: EventListQuery) -> BoxFuture<'_, Result<SelectedEvents, Error>> {
        Box::pin(async move {
            let Some(query) = self.event_query(&query).await? else {
                return Ok(SelectedEvents {
                    count: 0,
                    by_severity: SeverityCounts::default(),
                    events: stream::empty().boxed(),
                });
            };
            let store = Arc::clone(self.records().store());
            let page = store.events(&one_page_query(&query)).await?;
            let (count, by_severity) = (page.count, page.by_severity);
            Ok(SelectedEvents { count, by_severity, events: events_from(page, query, store) })
        })
    }

    /// Returns the store query for a list. Returns `None` if no event can match.
    async fn event_query(&self, selected: &EventListQuery) -> Result<Option<EventQuery>, Error> {
        let query = selected.without_subject();
        match &selected.subject {
            EventSubject::Any => {
                let Some(infra_env) = selected.infra_env else { return Ok(Some(query)) };
                let key = Key { kind: InfraEnvRecord::KIND, parent: None, id: infra_env.0 };
                Ok(self.records().store().exists(key).await?.then_some(query))
            }
            EventSubject::Hosts(hosts) if hosts.is_empty() => Ok(None),
            EventSubject::Hosts(hosts) => {
                Ok(Some(EventQuery { hosts: hosts.clone(), live_hosts: true, ..query }))
            }
            EventSubject::Cluster { id, hosts, deleted_hosts, cluster_level } => {
                let (mut hosts, cluster_level) = (hosts.clone(), *cluster_level);
                if *deleted_hosts {
                    hosts.extend(self.records().store().deleted_hosts(*id).await?);
                    if hosts.is_empty() && !cluster_level {
                        return Ok(None);
                    }
                }
                Ok(Some(EventQuery { cluster: Some(*id), hosts, cluster_level, ..query }))
            }
        }
    }
}

/// Returns the query for a single page of events.
fn one_page_query(query: &EventQuery) -> EventQuery {
    // The store returns a page only if the query has a limit.
    EventQuery { limit: Some(query.limit.unwrap_or(u64::MAX)), ..query.clone() }
}

/// Returns the events of a page and all later events, read page by page.
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
            let returned = u64::try_from(page.events.len()).unwrap_or(u64::MAX);
            let limit = query.limit.map(|limit| limit.saturating_sub(returned));
            let rest = EventQuery { limit, after: page.last, ..query };
            Ok(Some((stream::iter(page.events.into_iter().map(Ok)), (None, rest))))
        }
    });
    pages.try_flatten().boxed()
}
