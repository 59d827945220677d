//! Events and jobs of an operation on hosts.

use chrono::{DateTime, Utc};
use uuid::Uuid;

use super::record::HostRecord;
use super::state::Transition;
use crate::api::{ApiError, RequestId};
use crate::events::{Event, Severity};
use crate::jobs::{JobRecord, JobWork};
use crate::store::Change;
use crate::time::{Micros, Millis};

/// The events and jobs of one attempt at an operation, and the time of the attempt.
#[derive(Debug)]
pub(super) struct Journal {
    now: DateTime<Utc>,
    request: Option<RequestId>,
    events: Vec<Event>,
    jobs: Vec<JobRecord>,
}

/// The most characters of an event's message. A message may quote text that an agent or a user sent.
const MAX_MESSAGE: usize = 4096;

impl Journal {
    /// Returns the journal of an operation that answers a request.
    pub(super) fn new(request: RequestId) -> Self {
        Self { now: Utc::now(), request: Some(request), events: Vec::new(), jobs: Vec::new() }
    }

    /// Returns the journal of an operation that no request asked for.
    pub(super) fn without_request() -> Self {
        Self { now: Utc::now(), request: None, events: Vec::new(), jobs: Vec::new() }
    }

    /// Returns the time of the attempt.
    pub(super) fn now(&self) -> DateTime<Utc> {
        self.now
    }

    /// Returns the time of the attempt with the precision of most times.
    pub(super) fn millis(&self) -> Millis {
        Millis(Some(self.now))
    }

    /// Returns the time of the attempt with the precision of creation and update times.
    pub(super) fn micros(&self) -> Micros {
        Micros(Some(self.now))
    }

    /// Returns `true` if no event was added.
    pub(super) fn is_empty(&self) -> bool {
        self.events.is_empty()
    }

    /// Adds an event whose message starts with the name of the host.
    pub(super) fn add_host_event(
        &mut self,
        host: &HostRecord,
        name: &str,
        severity: Severity,
        message: impl AsRef<str>,
    ) {
        let message = format!("Host {}: {}", host.name(), message.as_ref());
        self.add_event(host, name, severity, message);
    }

    /// Adds an event of a host with exactly this message.
    pub(super) fn add_event(&mut self, host: &HostRecord, name: &str, severity: Severity, message: String) {
        let message: String = message.chars().take(MAX_MESSAGE).collect();
        let event = Event::now(name, severity, message)
            .at(self.now)
            .of_cluster(host.cluster_id)
            .of_infra_env(host.infra_env_id)
            .of_host(host.id);
        self.events.push(match self.request {
            Some(RequestId(request)) => event.in_answer_to(request),
            None => event,
        });
    }

    /// Adds such an event as [`add_host_event`](Self::add_host_event) does, unless the host had one of this name within
    /// the last hour.
    pub(super) fn add_hourly_event(
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

    /// Returns `true` and records the time, unless the host recorded the same key within the last hour.
    pub(super) fn starts_hour(&self, host: &mut HostRecord, key: String) -> bool {
        let last = host.hourly_events.get(&key).and_then(|last| last.0);
        if last.is_some_and(|last| self.now.signed_duration_since(last) < chrono::Duration::hours(1)) {
            return false;
        }
        host.hourly_events.insert(key, self.millis());
        true
    }

    /// Changes the status of a host. A new status adds an event.
    pub(super) fn apply(&mut self, host: &mut HostRecord, transition: &Transition) {
        // The transition may discard the reported name.
        let name = host.name();
        let Some(before) = host.apply(transition, self.millis()) else { return };
        let (status, info) = (host.status(), host.status_info());
        let message = format!("Host {name}: updated status from {before} to {status} ({info})");
        self.add_event(host, "host_status_updated", status.severity(), message);
    }

    /// Adds a job that deletes the logs of a host. Returns its id; `None` if the host has no cluster.
    pub(super) fn add_log_deletion(&mut self, host: &HostRecord) -> Option<Uuid> {
        let cluster = host.cluster_id?;
        let work = JobWork::DeleteHostLogs { cluster, infra_env: host.infra_env_id, host: host.id };
        let job = JobRecord::new(work);
        let id = job.id;
        self.jobs.push(job);
        Some(id)
    }

    /// Adds the events and jobs to the change that they are part of.
    pub(super) fn write(self, change: &mut Change) -> Result<(), ApiError> {
        for event in self.events {
            change.add_event(event);
        }
        for job in &self.jobs {
            change.insert(job)?;
        }
        Ok(())
    }
}
