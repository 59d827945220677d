//! Lists of events.

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

/// Selects events. The default selects all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EventListQuery {
    /// The resources that the events are about.
    pub subject: EventSubject,
    /// Only events of this infra-env. With [`EventSubject::Any`], the infra-env must exist, or the list is empty.
    pub infra_env: Option<InfraEnvId>,
    /// Only these severities. Empty: all.
    pub severities: Vec<Severity>,
    /// Only these categories. Empty: all.
    pub categories: Vec<Category>,
    /// Only events whose message contains this text, ignoring case.
    pub message: Option<String>,
    /// Newest events first.
    pub descending: bool,
    /// The part of the list.
    pub range: ListRange,
}

/// The resources that events are about.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum EventSubject {
    /// Any resource, or none.
    #[default]
    Any,
    /// These hosts, if they exist and are not deleted.
    Hosts(Vec<HostId>),
    /// A cluster.
    Cluster {
        /// The cluster.
        id: ClusterId,
        /// Only events of these hosts. Empty: of any host.
        hosts: Vec<HostId>,
        /// Adds the deleted hosts of the cluster to `hosts`.
        deleted_hosts: bool,
        /// With `hosts`: also events about no host. Without `hosts`: only those.
        cluster_level: bool,
    },
}

impl EventListQuery {
    /// Selects the events of an infra-env.
    #[must_use]
    pub fn for_infra_env(infra_env: InfraEnvId) -> Self {
        Self { infra_env: Some(infra_env), ..Self::default() }
    }

    /// Selects the events of a cluster and its hosts.
    #[must_use]
    pub fn for_cluster(id: ClusterId) -> Self {
        let hosts = Vec::new();
        let subject = EventSubject::Cluster { id, hosts, deleted_hosts: false, cluster_level: false };
        Self { subject, ..Self::default() }
    }

    /// Selects the events of hosts that exist and are not deleted.
    #[must_use]
    pub fn for_hosts(hosts: impl IntoIterator<Item = HostId>) -> Self {
        Self { subject: EventSubject::Hosts(hosts.into_iter().collect()), ..Self::default() }
    }

    /// Returns the query for the store, without the subject.
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

/// The events that a query selects.
pub struct SelectedEvents {
    /// Number of all matching events, also of those outside of the requested part.
    pub count: u64,
    /// Number of matching events of each severity, in the order of [`Severity::ALL`]. Ignores the severities of the
    /// query.
    pub by_severity: SeverityCounts,
    /// The events of the requested part, read page by page.
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
    /// Returns the events that a query selects, in the order of their times.
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

    /// Returns the query for the store, or `None` if no event can match.
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
