//! Events of clusters.

use crate::error::Error;
use crate::event::{Event, Severity};
use crate::id::ClusterId;
use crate::journal::Journal;

pub(crate) fn registered(id: ClusterId, journal: &Journal) -> Event {
    let message = "Successfully registered cluster";
    journal.event("cluster_registration_succeeded", Severity::Info, message).of_cluster(Some(id))
}

pub(crate) fn deregistered(id: ClusterId, journal: &Journal) -> Event {
    journal.event("cluster_deregistered", Severity::Info, "Deregistered cluster").of_cluster(Some(id))
}

pub(crate) fn deregister_failed(id: ClusterId, refusal: &Error, journal: &Journal) -> Event {
    let message = format!("Failed to deregister cluster. Error: {}", refusal.reason());
    journal.event("cluster_deregister_failed", Severity::Error, message).of_cluster(Some(id))
}

pub(crate) fn proxy_changed(id: ClusterId, journal: &Journal) -> Event {
    journal.event("proxy_settings_changed", Severity::Info, "Proxy settings changed").of_cluster(Some(id))
}

pub(crate) fn logs_uploaded(id: ClusterId, journal: &Journal) -> Event {
    let message = format!("Uploaded logs for the cluster {id}");
    journal.event("cluster_logs_uploaded", Severity::Info, message).of_cluster(Some(id))
}
