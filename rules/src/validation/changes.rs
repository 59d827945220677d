//! Compares older and newer validation results, and creates the events about validations that failed or were fixed.

use assisted::event::Severity;

use super::cluster::ClusterValidationId;
use super::definition::ValidationId;
use super::host::HostValidationId;
use super::outcome::{OutcomeStatus, ValidationOutcome};
use super::results::ValidationResults;
use crate::view::HostView;

/// A validation that has started to fail, or no longer fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ValidationChange<Id> {
    /// Id of the validation.
    pub id: Id,
    /// Whether the validation failed or was fixed.
    pub kind: ValidationChangeKind,
}

/// The direction of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValidationChangeKind {
    /// The validation fails now, and did not fail before.
    Failed {
        /// Whether the validation succeeded before.
        used_to_succeed: bool,
    },
    /// The validation succeeds now, after a failure.
    Fixed,
}

/// The event that reports a change to users.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ValidationEvent {
    /// Name of the event in the API, such as `host_validation_failed`.
    pub name: &'static str,
    /// Severity of the event.
    pub severity: Severity,
    /// Message of the event.
    pub message: String,
}

/// Returns the changes to report as events, in computing order. A validation counts only if clients see it in both
/// results. So the first results of a host or cluster have no changes.
#[must_use]
pub fn changes<O: ValidationOutcome>(
    before: Option<&ValidationResults<O>>,
    after: &ValidationResults<O>,
) -> Vec<ValidationChange<O::Id>> {
    let Some(before) = before else { return Vec::new() };
    let change = |outcome: &O| {
        let id = outcome.id();
        let old = before.shown_status(before.outcome(id)?)?;
        let kind = match (old, after.shown_status(outcome)?) {
            (OutcomeStatus::Failure, OutcomeStatus::Success) => ValidationChangeKind::Fixed,
            (OutcomeStatus::Failure, OutcomeStatus::Failure) => return None,
            (_, OutcomeStatus::Failure) => {
                ValidationChangeKind::Failed { used_to_succeed: old == OutcomeStatus::Success }
            }
            _ => return None,
        };
        Some(ValidationChange { id, kind })
    };
    after.outcomes().iter().filter_map(change).collect()
}

impl<Id: ValidationId> ValidationChange<Id> {
    /// Returns the event for this change. The array contains the event names for a failed and for a fixed validation.
    /// The message begins with `subject`.
    fn event_of(&self, [failed, fixed]: [&'static str; 2], subject: &str) -> ValidationEvent {
        let (name, severity, change) = match self.kind {
            ValidationChangeKind::Failed { used_to_succeed: true } => {
                (failed, Severity::Warning, "that used to succeed is now failing")
            }
            ValidationChangeKind::Failed { used_to_succeed: false } => (failed, Severity::Warning, "failed"),
            ValidationChangeKind::Fixed => (fixed, Severity::Info, "is now fixed"),
        };
        ValidationEvent { name, severity, message: format!("{subject} '{}' {change}", self.id.as_str()) }
    }
}

impl ValidationChange<HostValidationId> {
    /// Returns the event about a host validation.
    #[must_use]
    pub fn event(&self, host: &HostView) -> ValidationEvent {
        let name = match host.hostname() {
            "" => host.id.to_string(),
            name => name.to_owned(),
        };
        let names = ["host_validation_failed", "host_validation_fixed"];
        self.event_of(names, &format!("Host {name}: validation"))
    }
}

impl ValidationChange<ClusterValidationId> {
    /// Returns the event about a cluster validation.
    #[must_use]
    pub fn event(&self) -> ValidationEvent {
        self.event_of(["cluster_validation_failed", "cluster_validation_fixed"], "Cluster validation")
    }
}

#[cfg(test)]
mod tests;
