//! The steps that make up a change, and the outcome of a change.

use std::collections::BTreeSet;

use uuid::Uuid;

use super::{Bound, CheckIn, CheckInLimit, Filter, Key, ReportKind, Row, StoreError};
use crate::event::{Event, EventPosition};

/// One step of a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Inserts a new record with the generation of the row, which must be at least 1.
    Insert(Row),
    /// Replaces a record. The row has the next generation, and the stored record must have the generation before it.
    Replace(Row),
    /// Removes a record that still has this generation. Removing a cluster also removes its assessment.
    Remove(Key, i64),
    /// Stores a report of a host, and replaces a stored report of the same kind.
    ///
    /// A reader gets a host and its reports from the same change only if the change also writes the host. Removing a
    /// host removes its reports.
    ///
    /// A report of a kind that the host's document does not name is skipped if the host does not exist or is deleted.
    /// Such a report is removed when the host is deleted.
    PutReport(Key, ReportKind, String),
    /// Replaces a report of a host, if the host exists, is not deleted, and has a report of this kind. Otherwise the
    /// step is skipped.
    RewriteReport(Key, ReportKind, String),
    /// Removes a report of a host if it exists.
    RemoveReport(Key, ReportKind),
    /// Requires that a record exists and is not deleted until the change is committed. The generation does not matter.
    Require(Key),
    /// Requires that a record has this generation until the change is committed. Generation 0 requires that the record
    /// does not exist.
    RequireAt(Key, i64),
    /// Requires that a host has not checked in since a time, in microseconds since 1970. The step must be before the
    /// step that replaces the host.
    RequireSilent(Key, i64),
    /// Requires that no record matches the filter after all other steps have run.
    ///
    /// The requirement also holds against a concurrent change that requires a record which this change replaces or
    /// removes. For example, a change that deletes an infra-env requires that it has no hosts, and a change that adds a
    /// host requires the infra-env.
    RequireNone(Filter),
    /// Requires that the records of a parent are within a bound after all other steps have run. Otherwise the outcome
    /// is [`Outcome::OutOfBounds`].
    RequireWithin(Bound),
    /// Requires that hosts have joined or left a cluster [this many times](super::Records::membership_changes) when the
    /// change is committed.
    RequireMembership(Uuid, i64),
    /// Stores check-ins without changing the generations of their hosts. A later stored check-in is kept. Hosts that do
    /// not exist or are deleted are skipped.
    StoreCheckIns(Vec<CheckIn>),
    /// Replaces check-ins later than a limit without changing the generations of their hosts.
    LimitCheckIns(CheckInLimit),
    /// Deletes events.
    ForgetEvents(Vec<EventPosition>),
}

/// All changes by one operation. The store commits either all of them or none.
#[derive(Clone, Debug, Default)]
pub struct Changes {
    /// The steps. Steps on the same record run in this order. The order between records is undefined.
    pub steps: Vec<Step>,
    /// The events of the operation.
    pub events: Vec<Event>,
}

impl Changes {
    pub(super) fn from_step(step: Step) -> Self {
        Self { steps: vec![step], events: Vec::new() }
    }

    pub(super) fn check_in_count(&self) -> usize {
        let count = |step: &Step| if let Step::StoreCheckIns(all) = step { all.len() } else { 0 };
        self.steps.iter().map(count).sum()
    }

    /// Returns the keys of all records that the steps address.
    pub(super) fn keys(&self) -> BTreeSet<Key> {
        self.steps.iter().filter_map(Step::key).collect()
    }
}

impl Step {
    /// Returns the key of the record that the step addresses. Returns `None` if the step addresses no single record.
    pub(super) fn key(&self) -> Option<Key> {
        match self {
            Self::Insert(row) | Self::Replace(row) => Some(row.key),
            Self::Remove(key, _) | Self::Require(key) | Self::RequireAt(key, _) => Some(*key),
            Self::RequireSilent(key, _) => Some(*key),
            Self::PutReport(key, ..) | Self::RewriteReport(key, ..) => Some(*key),
            Self::RemoveReport(key, _) => Some(*key),
            Self::RequireNone(_) | Self::RequireWithin(_) | Self::RequireMembership(..) => None,
            Self::StoreCheckIns(_) | Self::LimitCheckIns(_) | Self::ForgetEvents(_) => None,
        }
    }
}

/// The outcome of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Outcome {
    /// All steps were committed and are on disk.
    Done,
    /// Nothing was written, because a record does not have the expected generation or state: the change conflicts with
    /// another one.
    Overtaken,
    /// Nothing was written: the change would exceed a bound.
    OutOfBounds,
}

impl Outcome {
    /// Returns an error unless the outcome of a change without requirements is [`Outcome::Done`].
    pub(super) fn require_done(self) -> Result<(), StoreError> {
        match self {
            Self::Done => Ok(()),
            Self::Overtaken | Self::OutOfBounds => Err(StoreError::Contended),
        }
    }
}
