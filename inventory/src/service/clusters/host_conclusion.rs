//! The changes to one host that result from the assessment of its cluster.

use rules::assessment::AssessedHost;
use rules::disk::reasons_in_report;
use rules::host::state::Transition;

use crate::error::Error;
use crate::event::Severity;
use crate::host::assessment::report_changes;
use crate::host::draft::HostDraft;
use crate::host::stored_results::AssessmentResults;
use crate::host::{HostRecord, HostRole, refused_report};
use crate::journal::Journal;
use crate::service::cluster_views::ViewedHost;
use crate::store::{Change, Stored};

/// The parts of a host that an assessment changes. Unchanged parts are `None`.
#[derive(Debug)]
pub(crate) struct HostConclusion<'a> {
    viewed: &'a ViewedHost,
    suggested_role: Option<HostRole>,
    transition: Option<Transition>,
    results: Option<AssessmentResults>,
}

impl<'a> HostConclusion<'a> {
    /// Compares the assessment of a host with its stored state.
    pub(crate) fn new(viewed: &'a ViewedHost, assessed: &AssessedHost) -> Self {
        let view = &viewed.view;
        let disks = reasons_in_report(&view.summary, assessed.evaluation.disks.clone());
        let results = AssessmentResults::new(assessed.evaluation.results.clone(), disks);
        let is_same = |stored: &AssessmentResults| stored.is_same(&results);
        Self {
            viewed,
            suggested_role: Some(assessed.suggested_role).filter(|role| *role != view.suggested_role),
            transition: changed_transition(viewed, assessed),
            results: if viewed.results.as_deref().is_some_and(is_same) { None } else { Some(results) },
        }
    }

    /// Returns `true` if the record or the validation results of the host change.
    pub(crate) fn is_change(&self) -> bool {
        self.changes_record() || self.results.is_some()
    }

    fn changes_record(&self) -> bool {
        self.suggested_role.is_some() || self.transition.is_some()
    }

    /// Adds the writes of the host and its results to a change, with their events. `stored` must have the generation in
    /// the view. Returns the generation of the host after the change.
    pub(crate) fn write(
        self,
        stored: Stored<HostRecord>,
        change: &mut Change,
        journal: &mut Journal,
    ) -> Result<i64, Error> {
        let (mut generation, changes_record) = (stored.generation, self.changes_record());
        let mut draft = HostDraft::new(stored);
        if let Some(results) = self.results {
            let before = self.viewed.results.as_deref();
            report_changes(&draft.record, &self.viewed.view, before, &results, journal);
            change.put_results(self.viewed.key, results.to_stored()?);
        }
        if let Some(transition) = &self.transition {
            journal.apply(&mut draft.record, transition);
        }
        if let Some(role) = self.suggested_role {
            draft.record.suggested_role = role;
            let message = format!("calculated role is {role}");
            journal.add_host_event(&draft.record, "host_role_updated", Severity::Info, message);
        }
        if changes_record {
            draft.record.updated_at = journal.micros();
            draft.write(change)?;
            generation = generation.saturating_add(1);
        }
        Ok(generation)
    }
}

/// Returns the transition of a host if it changes the status or the status info. The status info ends with the limits
/// that the host's reports exceed.
fn changed_transition(viewed: &ViewedHost, assessed: &AssessedHost) -> Option<Transition> {
    let transition = assessed.transition.clone()?;
    let transition = refused_report::with_reason(viewed.refusal.as_deref(), transition);
    let transition = match viewed.view.summary.excess_text() {
        Some(excess) => transition.with_info_suffix(&format!("; {excess}")),
        None => transition,
    };
    let is_same_status = transition.status().is_none_or(|status| status == viewed.view.status);
    let is_same_info =
        transition.info().is_none_or(|info| HostRecord::cut_status_info(info).eq(viewed.status_info.chars()));
    (!(is_same_status && is_same_info)).then_some(transition)
}
