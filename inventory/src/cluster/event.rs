//! Events of clusters.

use super::record::ClusterRecord;
use crate::api::ApiError;
use crate::events::{Event, Severity};
use crate::id::ClusterId;

pub(super) fn registered(record: &ClusterRecord) -> Event {
    Event::now("cluster_registration_succeeded", Severity::Info, "Successfully registered cluster")
        .of_cluster(Some(record.id))
}

pub(super) fn deregistered(id: ClusterId) -> Event {
    Event::now("cluster_deregistered", Severity::Info, "Deregistered cluster").of_cluster(Some(id))
}

pub(super) fn deregister_failed(id: ClusterId, refusal: &ApiError) -> Event {
    let message = format!("Failed to deregister cluster. Error: {}", refusal.reason());
    Event::now("cluster_deregister_failed", Severity::Error, message).of_cluster(Some(id))
}

pub(super) fn proxy_changed(id: ClusterId) -> Event {
    Event::now("proxy_settings_changed", Severity::Info, "Proxy settings changed").of_cluster(Some(id))
}
