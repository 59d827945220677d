//! The journal of one attempt at an operation: its time, its request, and the events and jobs that are written with its
//! change.

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
    /// Returns the journal of an operation. `request` is the request that it answers, if any.
    pub(crate) fn new(now: DateTime<Utc>, request: Option<RequestId>) -> Self {
        Self { now, request, events: Vec::new(), jobs: Vec::new() }
    }

    /// Returns the time of the attempt.
    pub(crate) fn now(&self) -> DateTime<Utc> {
        self.now
    }

    /// Returns the time of the attempt with the precision of most times.
    pub(crate) fn millis(&self) -> Millis {
        Millis::new(self.now)
    }

    /// Returns the time of the attempt with the precision of creation and update times.
    pub(crate) fn micros(&self) -> Micros {
        Micros::new(self.now)
    }

    /// Returns `true` if no event and no job was added.
    pub(crate) fn is_empty(&self) -> bool {
        self.events.is_empty() && self.jobs.is_empty()
    }

    /// Returns an event of this operation, about no resource yet.
    pub(crate) fn event(&self, name: &str, severity: Severity, message: impl Into<String>) -> Event {
        let event = Event::new(name, severity, message, self.now);
        match self.request {
            Some(RequestId(request)) => event.in_answer_to(request),
            None => event,
        }
    }

    /// Adds an event.
    pub(crate) fn add(&mut self, event: Event) {
        self.events.push(event);
    }

    /// Adds a job.
    pub(crate) fn add_job(&mut self, work: JobWork) {
        self.jobs.push(JobRecord::new(work, self.now));
    }

    /// Adds the events and jobs to the change that they are part of.
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
