//! Events as clients see them.

use assisted::event::ListedEvent;

use crate::event::Event;
use crate::time::Millis;

/// Returns an event as clients see it.
pub(super) fn listed_event(event: Event) -> ListedEvent {
    ListedEvent {
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
