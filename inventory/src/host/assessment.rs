//! The assessment of a host without a cluster, and the selection of disks.
//!
//! A host without a cluster is assessed alone, in each change that may affect one of its facts. The hosts of a cluster
//! are [assessed together](crate::service::clusters), because the validations of one host depend on the others.

use std::sync::Arc;

use ignition::version::Version;
use rules::assessment::{EvaluationSettings, HostEvaluation};
use rules::disk::{DiskReasons, disks_to_be_formatted, eligibility, installation_disk, reasons_in_report};
use rules::host::state::{HostEvent, PoolConclusions, decide};
use rules::validation::{IgnoredValidations, ValidationEvent, changes};
use rules::view::{ClusterSettings, ClusterView, HostView};

use super::connection::{is_connected, set_silent};
use super::draft::HostDraft;
use super::facts::host_view;
use super::record::{HostRecord, InstallationDisk};
use super::refused_report;
use super::stored_results::AssessmentResults;
use crate::Settings;
use crate::error::Error;
use crate::journal::Journal;

/// The data that a change to a host reads in addition to the host's record and reports.
#[derive(Clone, Debug)]
pub(crate) struct HostContext<'a> {
    pub(crate) settings: &'a Settings,
    /// Digest of the rules and settings of assessments in this process.
    pub(crate) basis: &'a str,
    /// The cluster of the host. The cluster's view of this host may be older than the record.
    pub(crate) cluster: Option<Arc<ClusterView>>,
    /// The version of the infra-env's base image, if the infra-env names one.
    pub(crate) image_version: Option<Version>,
}

impl HostContext<'_> {
    fn cluster_settings(&self) -> Option<&ClusterSettings> {
        self.cluster.as_deref().map(|view| &*view.cluster)
    }

    fn evaluation(&self) -> EvaluationSettings<'_> {
        self.settings.evaluation()
    }

    /// Returns the reasons against an installation on each disk of a host, in the order of the host's report.
    pub(crate) fn disk_reasons(&self, host: &HostView) -> Vec<DiskReasons> {
        let Some(inventory) = &host.summary.inventory else { return Vec::new() };
        let image_version = self.image_version.as_ref();
        eligibility(inventory, &self.evaluation().disk_rules(host, self.cluster_settings(), image_version))
    }
}

/// Assesses a host without a cluster: validates it, and updates its status if a rule matches. New results are written
/// in the same change, with events for validations that failed or were fixed.
///
/// A host in a cluster is left unchanged. The cluster is assessed after the change.
///
/// # Errors
///
/// Returns an internal error if the change did not read the host's summary.
pub(crate) fn assess_unbound(
    draft: &mut HostDraft,
    context: &HostContext<'_>,
    journal: &mut Journal,
) -> Result<(), Error> {
    if draft.record.cluster_id.is_some() {
        return Ok(());
    }
    let is_connected = is_connected(&draft.record, context.settings, journal.now());
    set_silent(&mut draft.record, !is_connected);
    let summary = Arc::new(draft.summary()?.clone());
    let view = host_view(&draft.record, is_connected, summary);
    let HostEvaluation { disks, results } =
        HostEvaluation::new(&view, None, context.image_version.as_ref(), context.evaluation());
    let results = AssessmentResults::new(results, reasons_in_report(&view.summary, disks));
    context.basis.clone_into(&mut draft.record.findings.assessed_by);
    let conclusions = PoolConclusions::new(&view, &results.validations, &IgnoredValidations::none());
    let event = HostEvent::RefreshUnbound(conclusions);
    // If no rule matches the situation, the status does not change.
    if let Ok(transition) = decide(draft.record.status(), &event, journal.now()) {
        let refusal = refused_report::shown_reason(&draft.record.findings);
        let transition = refused_report::with_reason(refusal, transition);
        let transition = match view.summary.excess_text() {
            Some(excess) => transition.with_info_suffix(&format!("; {excess}")),
            None => transition,
        };
        journal.apply(&mut draft.record, &transition);
    }
    if draft.results().is_none_or(|before| !before.is_same(&results)) {
        report_changes(&draft.record, &view, draft.results(), &results, journal);
        draft.set_results(results);
    }
    Ok(())
}

/// Selects the disks to format, and the installation disk unless the current one is still usable. The change must
/// contain a new inventory.
///
/// # Errors
///
/// Returns an internal error if the change did not read the host's summary.
pub(crate) fn choose_disks(draft: &mut HostDraft, context: &HostContext<'_>) -> Result<(), Error> {
    let view = host_view(&draft.record, true, Arc::new(draft.summary()?.clone()));
    let Some(inventory) = &view.summary.inventory else { return Ok(()) };
    let reasons = context.disk_reasons(&view);
    let choices = &mut draft.record.choices;
    let current = choices.installation_disk.as_ref().map(|disk| disk.id.as_str());
    let disk = installation_disk(inventory, &reasons, current);
    choices.installation_disk = disk.map(|disk| InstallationDisk { id: disk.id, path: disk.path });
    choices.disks_to_be_formatted = disks_to_be_formatted(inventory);
    Ok(())
}

/// Adds the events for validations that failed or were fixed.
pub(crate) fn report_changes(
    host: &HostRecord,
    view: &HostView,
    before: Option<&AssessmentResults>,
    after: &AssessmentResults,
    journal: &mut Journal,
) {
    for change in changes(before.map(|before| &before.validations), &after.validations) {
        let ValidationEvent { name, severity, message } = change.event(view);
        journal.add_event(host, name, severity, message);
    }
}
