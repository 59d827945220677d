//! Events as they are kept, asked for and shown.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::inventory::id::{ClusterId, HostId, InfraEnvId};
use crate::inventory::time::Millis;

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// For the record.
    Info,
    /// Somebody should look at it.
    Warning,
    /// Something failed.
    Error,
    /// An installation failed.
    Critical,
}

impl Severity {
    /// All of them, least bad first.
    pub const ALL: [Self; 4] = [Self::Info, Self::Warning, Self::Error, Self::Critical];

    /// As the API and the database write it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Info => "info",
            Self::Warning => "warning",
            Self::Error => "error",
            Self::Critical => "critical",
        }
    }
}

/// Whom an event is for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Category {
    /// People.
    #[default]
    User,
    /// Programs that count.
    Metrics,
}

impl Category {
    /// As the API and the database write it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Metrics => "metrics",
        }
    }
}

/// Something that happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// What kind of thing; stable.
    pub name: String,
    /// How bad it is.
    pub severity: Severity,
    /// For whom.
    pub category: Category,
    /// To which cluster.
    pub cluster: Option<ClusterId>,
    /// To which host.
    pub host: Option<HostId>,
    /// To which infra-env.
    pub infra_env: Option<InfraEnvId>,
    /// In words.
    pub message: String,
    /// When.
    pub time: DateTime<Utc>,
    /// In answer to which request.
    pub request: Option<Uuid>,
    /// More, as a JSON object.
    pub props: Option<String>,
}

impl Event {
    /// Something that happens now, to nothing yet.
    pub fn now(name: &str, severity: Severity, message: impl Into<String>) -> Self {
        Self {
            name: name.to_owned(),
            severity,
            category: Category::User,
            cluster: None,
            host: None,
            infra_env: None,
            message: message.into(),
            time: Utc::now(),
            request: None,
            props: None,
        }
    }

    /// At a time.
    #[must_use]
    pub fn at(self, time: DateTime<Utc>) -> Self {
        Self { time, ..self }
    }

    /// In answer to a request.
    #[must_use]
    pub fn in_answer_to(self, request: Uuid) -> Self {
        Self { request: Some(request), ..self }
    }

    /// To a cluster.
    #[must_use]
    pub fn of_cluster(self, cluster: Option<ClusterId>) -> Self {
        Self { cluster, ..self }
    }

    /// To an infra-env.
    #[must_use]
    pub fn of_infra_env(self, infra_env: InfraEnvId) -> Self {
        Self { infra_env: Some(infra_env), ..self }
    }

    /// To a host.
    #[must_use]
    pub fn of_host(self, host: HostId) -> Self {
        Self { host: Some(host), ..self }
    }
}

/// An event as the API shows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = event)]
pub struct EventView {
    /// What kind of thing; stable.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// To which cluster.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cluster_id: Option<ClusterId>,
    /// To which host.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host_id: Option<HostId>,
    /// To which infra-env.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub infra_env_id: Option<InfraEnvId>,
    /// How bad it is.
    pub severity: Severity,
    /// In words.
    pub message: String,
    /// When.
    pub event_time: Millis,
    /// More, as a JSON object in a string.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub props: Option<String>,
}

impl From<Event> for EventView {
    fn from(event: Event) -> Self {
        Self {
            name: event.name,
            cluster_id: event.cluster,
            host_id: event.host,
            infra_env_id: event.infra_env,
            severity: event.severity,
            message: event.message,
            event_time: Millis(Some(event.time)),
            props: event.props,
        }
    }
}

/// Which events.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EventQuery {
    /// Of a cluster.
    pub cluster: Option<ClusterId>,
    /// Of an infra-env.
    pub infra_env: Option<InfraEnvId>,
    /// Of any of these hosts, if there are any here.
    pub hosts: Vec<HostId>,
    /// Only of hosts that are there and not deleted.
    pub live_hosts: bool,
    /// With `cluster` and beside `hosts`: also what happened to the cluster as such.
    pub cluster_level: bool,
    /// Of these severities; all if there are none here.
    pub severities: Vec<Severity>,
    /// Of these categories; all if there are none here.
    pub categories: Vec<Category>,
    /// With this in the message, in capitals or not.
    pub message: Option<String>,
    /// The last ones first.
    pub descending: bool,
    /// At most so many; all if nothing.
    pub limit: Option<u64>,
    /// Without the first so many.
    pub offset: u64,
    /// Only those after this one, in the order that is asked for. Nothing is counted then.
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

/// How many events there are of each severity.
pub type SeverityCounts = [u64; Severity::ALL.len()];

/// What is found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EventPage {
    /// The events between offset and limit.
    pub events: Vec<Event>,
    /// How many there are in all.
    pub count: u64,
    /// How many of each severity there are, whatever the query says of severities.
    pub by_severity: SeverityCounts,
    /// The last of these events, after which the next ones come.
    pub last: Option<EventPosition>,
}
