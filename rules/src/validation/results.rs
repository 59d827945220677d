//! The outcomes of all validations of one host or cluster, evaluated together.

use std::collections::BTreeMap;

use assisted::host::Validation;

use super::definition::{ListOrder, ValidationCategory, ValidationId};
use super::ignored::IgnoredValidations;
use super::outcome::{OutcomeStatus, ValidationInput as _, ValidationOutcome};

/// The outcomes of all validations of one host or cluster, evaluated together.
#[derive(Clone, Debug, PartialEq)]
pub struct ValidationResults<O: ValidationOutcome> {
    /// Sorted by id, with at most one outcome for each id.
    outcomes: Vec<O>,
    /// Validations that clients do not see in the current stage of the installation.
    hidden: Vec<O::Id>,
}

impl<O: ValidationOutcome> Default for ValidationResults<O> {
    fn default() -> Self {
        Self { outcomes: Vec::new(), hidden: Vec::new() }
    }
}

impl<O: ValidationOutcome> ValidationResults<O> {
    /// Evaluates all validations of the registry.
    #[must_use]
    pub fn evaluate(input: &O::Input<'_>) -> Self {
        let outcome =
            |id: O::Id| if input.is_disabled(id) { O::disabled(id) } else { O::evaluate(id, input) };
        let ids = || O::Id::ALL.iter().copied();
        Self {
            outcomes: ids().map(outcome).collect(),
            hidden: ids().filter(|id| input.is_hidden(*id)).collect(),
        }
    }

    /// Creates results from outcomes in any order. If several outcomes have the same id, the last one is used.
    pub(super) fn from_parts(outcomes: impl IntoIterator<Item = O>, hidden: Vec<O::Id>) -> Self {
        let outcomes: BTreeMap<_, _> = outcomes.into_iter().map(|outcome| (outcome.id(), outcome)).collect();
        Self { outcomes: outcomes.into_values().collect(), hidden }
    }

    /// Returns all outcomes, in computing order.
    #[must_use]
    pub fn outcomes(&self) -> &[O] {
        &self.outcomes
    }

    /// Returns the validations that clients do not see in the current stage of the installation.
    #[must_use]
    pub fn hidden(&self) -> &[O::Id] {
        &self.hidden
    }

    /// Returns the outcome of a validation. `None` if a version without this validation stored the results.
    #[must_use]
    pub fn outcome(&self, id: O::Id) -> Option<&O> {
        self.outcomes.iter().find(|outcome| outcome.id() == id)
    }

    /// Returns `true` if all validations have the same statuses and the same failing items in both results. Measured
    /// numbers are ignored. Such results need not be stored again.
    #[must_use]
    pub fn has_same_outcomes(&self, other: &Self) -> bool {
        self.hidden == other.hidden
            && self.outcomes.len() == other.outcomes.len()
            && self.outcomes.iter().zip(&other.outcomes).all(|(one, other)| one.has_same_items(other))
    }

    /// Returns `true` if the validation does not block a rule: it passed, it is disabled, or clients see it and the
    /// user ignores it.
    #[must_use]
    pub fn is_satisfied(&self, id: O::Id, ignored: &IgnoredValidations<O::Id>) -> bool {
        let Some(outcome) = self.outcome(id) else { return false };
        let status = outcome.describe().status;
        let passes = match status {
            OutcomeStatus::Success => true,
            OutcomeStatus::Suppressed | OutcomeStatus::Disabled => !id.is_of_operator(),
            OutcomeStatus::Failure | OutcomeStatus::Pending | OutcomeStatus::Error => false,
        };
        passes || (ignored.contains(id) && self.shown_status(outcome).is_some())
    }

    /// Returns `true` if all validations of a group are [satisfied](Self::is_satisfied).
    #[must_use]
    pub fn satisfies(
        &self,
        group: <O::Id as ValidationId>::Group,
        ignored: &IgnoredValidations<O::Id>,
    ) -> bool {
        let mut members = O::Id::ALL.iter().filter(|id| id.definition().groups.contains(&group));
        members.all(|id| self.is_satisfied(*id, ignored))
    }

    /// Returns the messages of the failed validations that clients see, sorted. Status texts contain them.
    #[must_use]
    pub fn failing_messages(&self) -> Vec<String> {
        let visible = self.outcomes.iter().filter(|outcome| self.shown_status(outcome).is_some());
        let failing = visible.map(O::describe).filter(|it| it.status == OutcomeStatus::Failure);
        let mut messages: Vec<_> = failing.map(|it| it.message.into_owned()).collect();
        messages.sort_unstable();
        messages
    }

    /// Returns the validations that clients see, by category.
    #[must_use]
    pub fn shown(&self) -> BTreeMap<&'static str, Vec<Validation>> {
        let mut categories = BTreeMap::<_, Vec<_>>::new();
        for outcome in &self.outcomes {
            let description = outcome.describe();
            let Some(status) = description.status.shown().filter(|_| !self.is_hidden(outcome)) else {
                continue;
            };
            let id = outcome.id();
            let validation = Validation {
                id: id.as_str().to_owned(),
                status: status.into(),
                message: description.message.into_owned(),
            };
            categories.entry(id.definition().category).or_default().push(validation);
        }
        let sorted = |category| category == ValidationCategory::Operators || O::Id::ORDER == ListOrder::ById;
        for (_, validations) in categories.iter_mut().filter(|(category, _)| sorted(**category)) {
            validations.sort_unstable_by(|one, other| one.id.cmp(&other.id));
        }
        categories.into_iter().map(|(category, validations)| (category.as_str(), validations)).collect()
    }

    /// Returns the status of an outcome, or `None` if clients do not see the outcome.
    pub(super) fn shown_status(&self, outcome: &O) -> Option<OutcomeStatus> {
        let status = outcome.describe().status;
        (status.shown().is_some() && !self.is_hidden(outcome)).then_some(status)
    }

    fn is_hidden(&self, outcome: &O) -> bool {
        self.hidden.contains(&outcome.id())
    }
}

#[cfg(test)]
mod tests;
