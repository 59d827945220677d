//! The journal of one attempt at an operation: its time, its request, and the events and jobs to write with its change.

use chrono::{DateTime, Utc};

use crate::error::Error;
use crate::event::{Event, Severity};
use crate::job::{JobRecord, JobWork};
use crate::request_id::RequestId;
use crate::store::Change;
use crate::time::{Micros, Millis};

/// The events and jobs of one attempt at an operation, and the time of the attempt.
#[derive(Clone, Debug)]
pub(crate) struct Journal {
    now: DateTime<Utc>,
    request: Option<RequestId>,
    events: Vec<Event>,
    jobs: Vec<JobRecord>,
}

impl Journal {
    /// Creates the journal of an operation. `request` is the id of the request that caused the operation, if any.
    pub(crate) fn new(now: DateTime<Utc>, request: Option<RequestId>) -> Self {
        Self { now, request, events: Vec::new(), jobs: Vec::new() }
    }

    /// Returns the time of the attempt.
    pub(crate) fn now(&self) -> DateTime<Utc> {
        self.now
    }

    /// Returns the time of the attempt in milliseconds, the precision of most stored times.
    pub(crate) fn millis(&self) -> Millis {
        Millis::new(self.now)
    }

    /// Returns the time of the attempt in microseconds, the precision of creation and update times.
    pub(crate) fn micros(&self) -> Micros {
        Micros::new(self.now)
    }

    /// Returns `true` if the journal contains no event and no job.
    pub(crate) fn is_empty(&self) -> bool {
        self.events.is_empty() && self.jobs.is_empty()
    }

    /// Creates an event of this operation. The event names no resource yet.
    pub(crate) fn event(&self, name: &str, severity: Severity, message: impl Into<String>) -> Event {
        let event = Event::new(name, severity, message, self.now);
        match self.request {
            Some(RequestId(request)) => event.in_answer_to(request),
            None => event,
        }
    }

    pub(crate) fn add(&mut self, event: Event) {
        self.events.push(event);
    }

    pub(crate) fn add_job(&mut self, work: JobWork) {
        self.jobs.push(JobRecord::new(work, self.now));
    }

    /// Adds the events and jobs to the operation's change.
    pub(crate) fn write(self, change: &mut Change) -> Result<(), Error> {
        for event in self.events {
            change.add_event(event);
        }
        for job in &self.jobs {
            change.insert(job)?;
        }
        Ok(())
    }
}
