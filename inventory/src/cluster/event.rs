//! The events that changes to clusters add.

use rules::cluster::state::ClusterTransition;
use rules::validation::{ClusterResults, ValidationEvent, changes};

use super::record::ClusterRecord;
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
    let message = "Uploaded logs for the cluster";
    journal.event("cluster_logs_uploaded", Severity::Info, message).of_cluster(Some(id))
}

impl Journal {
    /// Changes the status of a cluster, and adds an event if the status is new.
    pub(crate) fn apply_to_cluster(&mut self, cluster: &mut ClusterRecord, transition: &ClusterTransition) {
        if cluster.apply(transition).is_none() {
            return;
        }
        let message = format!("Updated status of the cluster to {}", cluster.status());
        let event = self.event("cluster_status_updated", Severity::Info, message);
        self.add(event.of_cluster(Some(cluster.id)));
    }

    /// Adds an event for each cluster validation that has failed or has been fixed.
    pub(crate) fn add_cluster_validations(
        &mut self,
        cluster: ClusterId,
        before: Option<&ClusterResults>,
        after: &ClusterResults,
    ) {
        for change in changes(before.map(|before| &before.outcomes), &after.outcomes) {
            let ValidationEvent { name, severity, message } = change.event();
            self.add(self.event(name, severity, message).of_cluster(Some(cluster)));
        }
    }
}
