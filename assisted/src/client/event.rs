//! Client methods that list and report events.

use std::collections::BTreeMap;

use http::HeaderMap;

use super::{ApiClient, ClientError};
use crate::event::{Category, ListedEvent, ReportedEvent, Severity};
use crate::id::{ClusterId, HostId, InfraEnvId};

/// Order of a list of events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EventOrder {
    /// Oldest events first.
    #[default]
    Ascending,
    /// Newest events first.
    Descending,
}

/// A filter for a list of events. `cluster_id` takes precedence over `host_ids`, and `host_ids` over `infra_env_id`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EventFilter {
    /// Only events about this cluster.
    pub cluster_id: Option<ClusterId>,
    /// Only events about this infra-env.
    pub infra_env_id: Option<InfraEnvId>,
    /// Only events about these hosts. If empty, events about all hosts.
    pub host_ids: Vec<HostId>,
    /// Maximum number of events in the list. `None`: 5000. -1: no limit.
    pub limit: Option<i64>,
    /// Number of matching events to skip, for paging.
    pub offset: u64,
    /// Order of the events by time.
    pub order: EventOrder,
    /// Only events with these severities. If empty, events with any severity.
    pub severities: Vec<Severity>,
    /// Only events in these categories. If empty, only events in [`Category::User`].
    pub categories: Vec<Category>,
    /// Only events whose message contains this text, case-insensitively. Requires `cluster_id`.
    pub message: Option<String>,
    /// Whether the list contains events about the cluster's deleted hosts. Requires `cluster_id`.
    pub deleted_hosts: bool,
    /// Whether the list contains events that are not about a host. Requires `cluster_id`.
    pub cluster_level: bool,
}

impl EventFilter {
    /// Returns a filter for the events about a cluster.
    #[must_use]
    pub fn for_cluster(id: ClusterId) -> Self {
        Self { cluster_id: Some(id), ..Self::default() }
    }

    /// Returns a filter for the events about an infra-env.
    #[must_use]
    pub fn for_infra_env(id: InfraEnvId) -> Self {
        Self { infra_env_id: Some(id), ..Self::default() }
    }

    fn query(&self) -> Vec<(&'static str, String)> {
        let mut query = Vec::new();
        query.extend(self.cluster_id.map(|id| ("cluster_id", id.to_string())));
        query.extend(self.infra_env_id.map(|id| ("infra_env_id", id.to_string())));
        query.extend(list("host_ids", self.host_ids.iter().map(ToString::to_string)));
        query.extend(self.limit.map(|limit| ("limit", limit.to_string())));
        if self.offset > 0 {
            query.push(("offset", self.offset.to_string()));
        }
        if self.order == EventOrder::Descending {
            query.push(("order", "descending".to_owned()));
        }
        query.extend(list("severities", self.severities.iter().map(ToString::to_string)));
        query.extend(list("categories", self.categories.iter().map(ToString::to_string)));
        query.extend(self.message.clone().map(|text| ("message", text)));
        for (name, flag) in [("deleted_hosts", self.deleted_hosts), ("cluster_level", self.cluster_level)] {
            if flag {
                query.push((name, true.to_string()));
            }
        }
        query
    }
}

/// Returns a query parameter with comma-separated values, or `None` if there are no values.
fn list(name: &'static str, values: impl Iterator<Item = String>) -> Option<(&'static str, String)> {
    let values: Vec<_> = values.collect();
    (!values.is_empty()).then(|| (name, values.join(",")))
}

/// A list of events, and the counts of all events that match the filter.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EventList {
    /// The events within limit and offset, in the order of the filter.
    pub events: Vec<ListedEvent>,
    /// Number of all matching events, regardless of limit and offset. `None` if the service does not return the count.
    pub count: Option<u64>,
    /// Number of events of each severity, regardless of the filter by severity. 0 unless the filter has a cluster.
    pub by_severity: BTreeMap<Severity, u64>,
}

impl ApiClient {
    /// Lists events.
    ///
    /// # Errors
    ///
    /// Returns an error if the request or its response fails.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # use assisted::client::{ApiClient, ClientError};
    /// # use assisted::ClusterId;
    /// use assisted::client::EventFilter;
    ///
    /// # async fn example(client: ApiClient, cluster: ClusterId) -> Result<(), ClientError> {
    /// let list = client.list_events(&EventFilter::for_cluster(cluster)).await?;
    /// for event in &list.events {
    ///     println!("{} {}", event.severity, event.message);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn list_events(&self, filter: &EventFilter) -> Result<EventList, ClientError> {
        let call = self.get("list events", &["events"]).query(&filter.query());
        let (headers, events) = call.read_with_headers().await?;
        let count_of = |severity: &Severity| {
            count(&headers, &format!("severity-count-{severity}")).map(|count| (*severity, count))
        };
        let by_severity = Severity::ALL.iter().filter_map(count_of).collect();
        Ok(EventList { events, count: count(&headers, "event-count"), by_severity })
    }

    /// Reports an event. Agents and controllers use this operation.
    ///
    /// # Errors
    ///
    /// Returns an error if the request or its response fails.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # use assisted::client::{ApiClient, ClientError};
    /// # use assisted::{HostId, InfraEnvId};
    /// use assisted::event::{ReportedEvent, Severity};
    ///
    /// # async fn example(client: ApiClient, infra_env: InfraEnvId, host: HostId) -> Result<(), ClientError> {
    /// let event = ReportedEvent {
    ///     host_id: Some(host),
    ///     infra_env_id: Some(infra_env),
    ///     ..ReportedEvent::now("reboots_for_node", Severity::Info, "Node node-1 has been rebooted 2 times")
    /// };
    /// client.report_event(&event).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn report_event(&self, event: &ReportedEvent) -> Result<(), ClientError> {
        self.post("report event", &["events"]).json(event).send_expecting(201).await
    }
}

fn count(headers: &HeaderMap, name: &str) -> Option<u64> {
    headers.get(name)?.to_str().ok()?.parse().ok()
}
