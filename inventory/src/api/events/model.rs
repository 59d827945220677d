//! Events as clients see them.

use serde::Serialize;
use utoipa::ToSchema;

use crate::event::{Event, Severity};
use crate::id::{ClusterId, HostId, InfraEnvId};
use crate::time::Millis;

/// An event.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = event)]
pub(super) struct EventView {
    /// Name of the kind of event. Stable.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
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
    /// Message for users.
    pub message: String,
    /// Time of the event.
    pub event_time: Millis,
    /// Additional properties: a JSON object, in a string.
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
