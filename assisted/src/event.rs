//! Events: the event log of the service, and the events that agents and controllers report.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::extensible::Extensible;
use crate::id::{ClusterId, HostId, InfraEnvId};
use crate::string_enum::string_enum;
use crate::time::Millis;
use crate::wire::empty_as_none;

string_enum! {
    /// The severity of an event, in ascending order.
    Severity as Severity {
        /// Information.
        Info = "info",
        /// A user should check the cause.
        Warning = "warning",
        /// Something failed.
        Error = "error",
        /// An installation failed.
        Critical = "critical",
    }

    /// The audience of an event.
    #[derive(Default)]
    Category as Category {
        /// Users.
        #[default]
        User = "user",
        /// Programs that collect metrics.
        Metrics = "metrics",
    }
}

/// An event in the event log of the service.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = event))]
pub struct ListedEvent {
    /// Name of the kind of event. Stable.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// Cluster that the event is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster_id: Option<ClusterId>,
    /// Host that the event is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host_id: Option<HostId>,
    /// Infra-env that the event is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub infra_env_id: Option<InfraEnvId>,
    /// Severity.
    #[cfg_attr(feature = "openapi", schema(value_type = Severity))]
    pub severity: Extensible<Severity>,
    /// Message for users.
    pub message: String,
    /// Time of the event.
    pub event_time: Millis,
    /// Additional properties: a JSON object, in a string.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub props: Option<String>,
}

/// Parameters of an event that a client reports.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = trigger_event_params))]
pub struct ReportedEvent {
    /// Name of the kind of event. Stable.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Cluster that the event is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cluster_id: Option<ClusterId>,
    /// Host that the event is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host_id: Option<HostId>,
    /// Infra-env that the event is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub infra_env_id: Option<InfraEnvId>,
    /// Severity.
    pub severity: Severity,
    /// Audience.
    #[serde(default, deserialize_with = "empty_as_none", skip_serializing_if = "Option::is_none")]
    pub category: Option<Category>,
    /// Message for users.
    pub message: String,
    /// Time of the event by the client's clock. Ignored: the service uses its own clock.
    pub event_time: Millis,
    /// Id of the request that caused the event, by the client. Ignored: the service uses the id of this request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request_id: Option<Uuid>,
    /// Additional properties: an object, or a list of alternating names and values, as JSON in a string.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub props: Option<String>,
}

impl ReportedEvent {
    /// Returns an event with the current time and without a cluster, host or infra-env.
    pub fn now(name: impl Into<String>, severity: Severity, message: impl Into<String>) -> Self {
        Self {
            name: Some(name.into()),
            cluster_id: None,
            host_id: None,
            infra_env_id: None,
            severity,
            category: None,
            message: message.into(),
            event_time: Millis::now(),
            request_id: None,
            props: None,
        }
    }
}
