//! The assessment of one host: its validations, and the status that follows from them.
//!
//! It belongs to each change that may change one of the facts. A task assesses the hosts of a cluster together, because
//! validations of one host may depend on the others.

use std::sync::Arc;

use ignition::version::Version;
use rules::cluster::peer_facts::PeerFacts;
use rules::disk::{
    DiskReasons, DiskRules, disks_to_be_formatted, eligibility, installation_disk, reasons_in_report,
};
use rules::host::state::{HostConclusions, HostEvent, PoolConclusions, decide};
use rules::host::status::is_unbound;
use rules::validation::host::{HostCluster, MinimumHardware};
use rules::validation::{
    HostInput, HostResults, HostValidationId, IgnoredValidations, ValidationEvent, changes,
};
use rules::view::{ClusterSettings, ClusterView, HostView};

use super::connection::is_connected;
use super::draft::HostDraft;
use super::facts::host_view;
use super::record::{HostRecord, InstallationDisk};
use super::refused_report;
use super::stored_results::AssessmentResults;
use crate::Settings;
use crate::error::Error;
use crate::journal::Journal;

/// What an assessment of a host reads besides its record and its reports.
#[derive(Clone, Debug)]
pub(crate) struct HostContext<'a> {
    pub(crate) settings: &'a Settings,
    /// What assessments of this process depend on.
    pub(crate) basis: &'a str,
    /// The cluster of the host. Its view of this host may be older than the record.
    pub(crate) cluster: Option<Arc<ClusterView>>,
    /// The version of the infra-env's base image, if it names one.
    pub(crate) image_version: Option<Version>,
}

impl HostContext<'_> {
    fn cluster_settings(&self) -> Option<&ClusterSettings> {
        self.cluster.as_deref().map(|view| &*view.cluster)
    }

    /// Returns the rules for the disks of a host. An unbound host can get any role of its image's version.
    fn disk_rules(&self, host: &HostView) -> DiskRules {
        let hardware = &self.settings.hardware;
        let image_version = self.image_version.as_ref();
        let required = match self.cluster_settings() {
            Some(cluster) => hardware.total_for_host(cluster, host),
            None => hardware.for_unbound_host(&image_version.map(Version::to_string).unwrap_or_default()),
        };
        let version = self.cluster_settings().filter(|_| !host.joins()).and_then(|it| it.version.as_ref());
        let architecture = host.summary.inventory.as_ref().map_or("", |inventory| &inventory.architecture);
        DiskRules::new(&required, version.or(image_version), architecture)
    }

    /// Returns the reasons against an installation on each disk of a host, in the order of its report.
    pub(crate) fn disk_reasons(&self, host: &HostView) -> Vec<DiskReasons> {
        let Some(inventory) = &host.summary.inventory else { return Vec::new() };
        eligibility(inventory, &self.disk_rules(host))
    }

    /// Returns the results of an assessment of a host.
    pub(crate) fn results(&self, host: &HostView) -> AssessmentResults {
        let disks = self.disk_reasons(host);
        let peers = self.cluster.as_deref().map(PeerFacts::new);
        let cluster = self.cluster.as_deref().zip(peers.as_ref());
        let validations = HostResults::evaluate(&HostInput {
            host,
            cluster: cluster.map(|(view, peers)| HostCluster { view, peers }),
            eligible_disks: disks.iter().filter(|disk| disk.is_eligible()).count(),
            minimum: self.minimum_hardware(),
            settings: &self.settings.validations,
        });
        AssessmentResults::new(validations, reasons_in_report(&host.summary, disks))
    }

    /// Returns the hardware that each role needs.
    fn minimum_hardware(&self) -> MinimumHardware {
        let (hardware, cluster) = (&self.settings.hardware, self.cluster_settings());
        let roles = match cluster {
            Some(cluster) => hardware.for_cluster(cluster),
            None => {
                hardware.for_version(&self.image_version.as_ref().map(Version::to_string).unwrap_or_default())
            }
        };
        let minimum = roles.minimum_of_any_role(cluster);
        MinimumHardware { cpu_cores: minimum.cpu_cores, ram_mib: minimum.ram_mib }
    }

    /// Returns the validations that the user of the cluster ignores.
    fn ignored(&self) -> Result<IgnoredValidations<HostValidationId>, Error> {
        let Some(cluster) = self.cluster_settings() else { return Ok(IgnoredValidations::none()) };
        IgnoredValidations::parse(&cluster.ignored_host_validations).map_err(|error| {
            Error::broken(format_args!(
                "the ignored validations of cluster {} are damaged: {error}",
                cluster.id
            ))
        })
    }
}

/// Validates a host, and updates its status unless it is being installed or has another status that only an operation
/// ends. New results are written with the change, and with events that report what became worse or better.
///
/// # Errors
///
/// Returns an internal error if the change did not read the host's summary.
pub(crate) fn assess(
    draft: &mut HostDraft,
    context: &HostContext<'_>,
    journal: &mut Journal,
) -> Result<(), Error> {
    let is_connected = is_connected(&draft.record, context.settings, journal.now());
    let summary = Arc::new(draft.summary()?.clone());
    let view = host_view(&draft.record, is_connected, summary);
    let results = context.results(&view);
    context.basis.clone_into(&mut draft.record.findings.assessed_by);
    let (validations, ignored) = (&results.validations, context.ignored()?);
    let event = if is_unbound(view.status) {
        HostEvent::RefreshUnbound(PoolConclusions::new(&view, validations, &ignored))
    } else {
        HostEvent::Refresh(HostConclusions::new(&view, validations, &ignored))
    };
    let excess = view.summary.excess_text();
    update_status(&mut draft.record, &event, excess.as_deref(), journal);
    if draft.results().is_none_or(|before| !before.is_same(&results)) {
        report_changes(&draft.record, &view, draft.results(), &results, journal);
        draft.set_results(results);
    }
    Ok(())
}

/// Updates the status of a host. Its text ends with what reports have in excess of their limits.
fn update_status(host: &mut HostRecord, event: &HostEvent<'_>, excess: Option<&str>, journal: &mut Journal) {
    if let Ok(transition) = decide(host.status(), event, journal.now()) {
        let transition = refused_report::with_reason(&host.findings, transition);
        let transition = match excess {
            Some(excess) => transition.with_info_suffix(&format!("; {excess}")),
            None => transition,
        };
        journal.apply(host, &transition);
    }
}

/// Chooses the installation disk of a host, unless the one so far can still be used, and the disks to format. The change
/// must have a new inventory.
///
/// # Errors
///
/// Returns an internal error if the change did not read the host's summary.
pub(crate) fn choose_disks(draft: &mut HostDraft, context: &HostContext<'_>) -> Result<(), Error> {
    let view = host_view(&draft.record, true, Arc::new(draft.summary()?.clone()));
    let Some(inventory) = &view.summary.inventory else { return Ok(()) };
    let reasons = context.disk_reasons(&view);
    let choices = &mut draft.record.choices;
    let chosen = choices.installation_disk.as_ref().map(|disk| disk.id.as_str());
    let disk = installation_disk(inventory, &reasons, chosen);
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
