//! Adds events about hosts, and limits repeated events.

use rules::host::state::Transition;
use rules::host::status::severity;

use super::record::HostRecord;
use crate::event::Severity;
use crate::job::JobWork;
use crate::journal::Journal;

/// Maximum number of characters in the message of an event. A message may quote text that an agent or a user sent.
const MAX_MESSAGE: usize = 4096;

impl Journal {
    /// Adds an event whose message starts with the name of the host.
    pub(crate) fn add_host_event(
        &mut self,
        host: &HostRecord,
        name: &str,
        severity: Severity,
        message: impl AsRef<str>,
    ) {
        let message = format!("Host {}: {}", host.name(), message.as_ref());
        self.add_event(host, name, severity, message);
    }

    /// Adds a host event with exactly this message.
    pub(crate) fn add_event(&mut self, host: &HostRecord, name: &str, severity: Severity, message: String) {
        let message: String = message.chars().take(MAX_MESSAGE).collect();
        let event = self.event(name, severity, message);
        self.add(event.of_cluster(host.cluster_id).of_infra_env(host.infra_env_id).of_host(host.id));
    }

    /// Adds an event like [`add_host_event`](Self::add_host_event), unless the host had an event with this name within
    /// the last hour.
    pub(crate) fn add_hourly_event(
        &mut self,
        host: &mut HostRecord,
        name: &str,
        severity: Severity,
        message: &str,
    ) {
        if self.starts_hour(host, name.to_owned()) {
            self.add_host_event(host, name, severity, message);
        }
    }

    /// Records the current time for `key` and returns `true`, unless the host recorded the key within the last hour.
    pub(crate) fn starts_hour(&self, host: &mut HostRecord, key: String) -> bool {
        let last = host.hourly_events.get(&key).and_then(|last| last.0);
        if last.is_some_and(|last| self.now().signed_duration_since(last) < chrono::Duration::hours(1)) {
            return false;
        }
        host.hourly_events.insert(key, self.millis());
        true
    }

    /// Changes the status of a host. A new status adds an event.
    pub(crate) fn apply(&mut self, host: &mut HostRecord, transition: &Transition) {
        // The transition may discard the reported name, so the name is read first.
        let name = host.name();
        let Some(before) = host.apply(transition) else { return };
        let (status, info) = (host.status(), host.status_info());
        let message = format!("Host {name}: updated status from {before} to {status} ({info})");
        self.add_event(host, "host_status_updated", severity(status), message);
    }

    /// Adds a job that deletes the logs of a host, unless the host has no cluster.
    pub(crate) fn add_log_deletion(&mut self, host: &HostRecord) {
        if let Some(cluster) = host.cluster_id {
            self.add_job(JobWork::DeleteHostLogs { cluster, infra_env: host.infra_env_id, host: host.id });
        }
    }
}
