//! What an operation does to hosts, to be told as events.

use chrono::{DateTime, Utc};

use super::record::HostRecord;
use super::status::HostStatus;
use crate::inventory::event::{Event, Severity};
use crate::inventory::request::RequestId;
use crate::inventory::store::Change;
use crate::inventory::time::{Micros, Millis};

/// The events of one attempt at an operation, and the time that all of it happens at.
#[derive(Debug)]
pub(super) struct Journal {
    now: DateTime<Utc>,
    request: Option<RequestId>,
    events: Vec<Event>,
}

/// What `status_info` has at most, in characters.
const MOST_INFO: usize = 2040;

/// What a message has at most, in characters. What somebody sent may be quoted in it.
const MOST_MESSAGE: usize = 4096;

impl Journal {
    /// Of what is done in answer to a request.
    pub(super) fn of(request: RequestId) -> Self {
        Self { now: Utc::now(), request: Some(request), events: Vec::new() }
    }

    /// Of what comes to light on its own.
    pub(super) fn of_time() -> Self {
        Self { now: Utc::now(), request: None, events: Vec::new() }
    }

    /// When it happens.
    pub(super) fn now(&self) -> DateTime<Utc> {
        self.now
    }

    /// The same, with the decimals of most times.
    pub(super) fn millis(&self) -> Millis {
        Millis(Some(self.now))
    }

    /// The same, with the decimals of when a record was made and changed.
    pub(super) fn micros(&self) -> Micros {
        Micros(Some(self.now))
    }

    /// Something happened to a host. The message comes after its name.
    pub(super) fn tell(
        &mut self,
        host: &HostRecord,
        name: &str,
        severity: Severity,
        message: impl AsRef<str>,
    ) {
        let message = format!("Host {}: {}", host.name(), message.as_ref());
        self.tell_in_full(host, name, severity, message);
    }

    /// Something happened to a host; the message says to which.
    pub(super) fn tell_in_full(
        &mut self,
        host: &HostRecord,
        name: &str,
        severity: Severity,
        message: String,
    ) {
        let message: String = message.chars().take(MOST_MESSAGE).collect();
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

    /// The same, unless it was told of this host within the last hour.
    pub(super) fn tell_hourly(
        &mut self,
        host: &mut HostRecord,
        name: &str,
        severity: Severity,
        message: &str,
    ) {
        let last = host.told.get(name).and_then(|last| last.0);
        if last.is_some_and(|last| self.now.signed_duration_since(last) < chrono::Duration::hours(1)) {
            return;
        }
        host.told.insert(name.to_owned(), self.millis());
        self.tell(host, name, severity, message);
    }

    /// A host comes into a state, or stays in it for another reason.
    pub(super) fn move_host(&mut self, host: &mut HostRecord, status: HostStatus, info: &str) {
        let info: String = info.chars().take(MOST_INFO).collect();
        let before = host.status;
        host.status_info = info;
        if before == status {
            return;
        }
        host.status = status;
        host.status_updated_at = self.millis();
        let info = &host.status_info;
        let message = format!("updated status from {before} to {status} ({info})");
        self.tell(host, "host_status_updated", status.severity(), message);
    }

    /// What happened is told with the change that it is part of.
    pub(super) fn write(self, change: &mut Change) {
        for event in self.events {
            change.tell(event);
        }
    }
}
