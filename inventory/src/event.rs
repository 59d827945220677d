//! Events: the history of clusters, infra-envs and hosts, for users.

pub use assisted::event::{Category, Severity};
use chrono::{DateTime, Utc};
use uuid::Uuid;

use crate::id::{ClusterId, HostId, InfraEnvId};

/// An entry in the history of clusters, infra-envs and hosts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// Stable name of the kind of event.
    pub name: String,
    /// The severity, by which clients filter and count events.
    pub severity: Severity,
    /// The audience, by which clients filter events.
    pub category: Category,
    /// The cluster that the event is about.
    pub cluster: Option<ClusterId>,
    /// The host that the event is about.
    pub host: Option<HostId>,
    /// The infra-env that the event is about.
    pub infra_env: Option<InfraEnvId>,
    /// The text for the audience.
    pub message: String,
    /// Time of the event.
    pub time: DateTime<Utc>,
    /// Id of the request that caused the event.
    pub request: Option<Uuid>,
    /// Additional properties, as a JSON object.
    pub props: Option<String>,
}

impl Event {
    /// Creates an event without a resource. `time` is the time of the event.
    pub fn new(name: &str, severity: Severity, message: impl Into<String>, time: DateTime<Utc>) -> Self {
        Self {
            name: name.to_owned(),
            severity,
            category: Category::User,
            cluster: None,
            host: None,
            infra_env: None,
            message: message.into(),
            time,
            request: None,
            props: None,
        }
    }

    /// Sets the id of the request that caused the event.
    #[must_use]
    pub(crate) fn in_answer_to(self, request: Uuid) -> Self {
        Self { request: Some(request), ..self }
    }

    /// Sets the cluster that the event is about.
    #[must_use]
    pub fn of_cluster(self, cluster: Option<ClusterId>) -> Self {
        Self { cluster, ..self }
    }

    /// Sets the infra-env that the event is about.
    #[must_use]
    pub fn of_infra_env(self, infra_env: InfraEnvId) -> Self {
        Self { infra_env: Some(infra_env), ..self }
    }

    /// Sets the host that the event is about.
    #[must_use]
    pub fn of_host(self, host: HostId) -> Self {
        Self { host: Some(host), ..self }
    }
}

/// A filter for events, with their order and page.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EventQuery {
    /// Only events about this cluster.
    pub cluster: Option<ClusterId>,
    /// Only events about this infra-env.
    pub infra_env: Option<InfraEnvId>,
    /// Only events about these hosts. Empty: events about any host.
    pub hosts: Vec<HostId>,
    /// Whether to include only events about hosts that exist and are not deleted.
    pub live_hosts: bool,
    /// Whether to include events that are not about a host. Without `hosts`, only these events are included.
    pub cluster_level: bool,
    /// Only these severities. Empty: all.
    pub severities: Vec<Severity>,
    /// Only these categories. Empty: all.
    pub categories: Vec<Category>,
    /// Only events whose message contains this text, ignoring case.
    pub message: Option<String>,
    /// Whether the newest events are first.
    pub descending: bool,
    /// Maximum number of events. `None`: no limit.
    pub limit: Option<u64>,
    /// Number of events to skip.
    pub offset: u64,
    /// Only events after this position, in the requested order. The store then counts no events.
    pub after: Option<EventPosition>,
}

/// A position in a list of events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventPosition {
    /// Microseconds since 1970.
    pub(crate) micros: i64,
    /// The id of the event in the database.
    pub(crate) id: Uuid,
}

impl EventPosition {
    /// The position before all events.
    pub const START: Self = Self { micros: i64::MIN, id: Uuid::nil() };
}

/// Number of events for each severity in [`Severity::ALL`].
pub type SeverityCounts = [u64; Severity::ALL.len()];

/// The result of an event query.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EventPage {
    /// The requested page of events.
    pub events: Vec<Event>,
    /// Number of all matching events, on all pages.
    pub count: u64,
    /// Number of matching events of each severity, regardless of the severities in the query.
    pub by_severity: SeverityCounts,
    /// Position of the last event. The next page starts after it.
    pub last: Option<EventPosition>,
}
