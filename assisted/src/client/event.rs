//! Operations on events.

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

/// Selects events. A cluster takes precedence over hosts, and hosts over an infra-env.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EventFilter {
    /// Only events of this cluster.
    pub cluster_id: Option<ClusterId>,
    /// Only events of this infra-env.
    pub infra_env_id: Option<InfraEnvId>,
    /// Only events of these hosts. Empty: of any host.
    pub host_ids: Vec<HostId>,
    /// The most events. `None`: 5000. -1: no limit.
    pub limit: Option<i64>,
    /// Number of events to skip.
    pub offset: u64,
    /// Order by time.
    pub order: EventOrder,
    /// Only these severities. Empty: all.
    pub severities: Vec<Severity>,
    /// Only these categories. Empty: only [`Category::User`].
    pub categories: Vec<Category>,
    /// With a cluster: only events whose message contains this text, ignoring case.
    pub message: Option<String>,
    /// With a cluster: also events of its deleted hosts.
    pub deleted_hosts: bool,
    /// With a cluster: also events about no host.
    pub cluster_level: bool,
}

impl EventFilter {
    /// Returns a filter for the events of a cluster.
    #[must_use]
    pub fn for_cluster(id: ClusterId) -> Self {
        Self { cluster_id: Some(id), ..Self::default() }
    }

    /// Returns a filter for the events of an infra-env.
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

/// Returns a parameter with values that are separated by commas, if there are any.
fn list(name: &'static str, values: impl Iterator<Item = String>) -> Option<(&'static str, String)> {
    let values: Vec<_> = values.collect();
    (!values.is_empty()).then(|| (name, values.join(",")))
}

/// Events, and the numbers of all events that match the filter.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EventList {
    /// The events.
    pub events: Vec<ListedEvent>,
    /// Number of all matching events, before limit and offset. `None`: the service does not say.
    pub count: Option<u64>,
    /// Number of events of each severity, before the filter by severity. 0 unless the filter has a cluster.
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

    /// Reports an event. Agents and controllers call this.
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
