//! Events about validations that changed.

use assisted::event::Severity;

use super::cluster::ClusterValidationId;
use super::definition::ValidationId;
use super::host::HostValidationId;
use super::outcome::{OutcomeStatus, ValidationOutcome};
use super::results::ValidationResults;
use crate::view::HostView;

/// A validation that failed, or that was fixed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ValidationChange<Id> {
    /// Id.
    pub id: Id,
    /// Kind.
    pub kind: ValidationChangeKind,
}

/// The kind of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValidationChangeKind {
    /// The validation failed.
    Failed {
        /// Whether it was a success before.
        used_to_succeed: bool,
    },
    /// The validation succeeded after a failure.
    Fixed,
}

/// The event of a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ValidationEvent {
    /// Name of the event.
    pub name: &'static str,
    /// Severity.
    pub severity: Severity,
    /// Message for users.
    pub message: String,
}

/// Returns the validations whose change is an event, in computing order. Only validations that clients see before and
/// after are compared, so the first results of a host or cluster have no changes.
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
    /// Returns the event with the name that fits, and a message that begins with `subject`.
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
    /// Returns the event.
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
    /// Returns the event.
    #[must_use]
    pub fn event(&self) -> ValidationEvent {
        self.event_of(["cluster_validation_failed", "cluster_validation_fixed"], "Cluster validation")
    }
}

#[cfg(test)]
mod tests;
