//! Conversion of events into their API representation.

use assisted::event::ListedEvent;

use crate::event::Event;
use crate::time::Millis;

impl From<Event> for ListedEvent {
    fn from(event: Event) -> Self {
        Self {
            name: event.name,
            cluster_id: event.cluster,
            host_id: event.host,
            infra_env_id: event.infra_env,
            severity: event.severity.into(),
            message: event.message,
            event_time: Millis(Some(event.time)),
            props: event.props,
        }
    }
}
