//! Projects a host to the status, the labels and the annotations of its Agent.

use std::collections::BTreeMap;

use assisted::host::HostRole;
use chrono::{DateTime, Utc};
use inventory::Secret;
use inventory::service::{HostDetails, HostUrls};
use inventory::{Error, ErrorKind};

use super::agent_conditions::{SpecSync, conditions};
use super::agent_inventory::inventory;
use crate::conditions as condition_list;
use crate::crds::{
    AgentDebugInfo, AgentInstallCondition, AgentInventory, AgentProgress, AgentStatus, NtpSource,
    ValidationResult, names,
};
use crate::label_value::label_value;

/// The parts of an Agent that show its host.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct AgentView {
    pub(crate) status: AgentStatus,
    pub(crate) labels: BTreeMap<String, String>,
    pub(crate) annotations: BTreeMap<String, String>,
}

/// The result of applying the spec of an Agent to its host.
#[derive(Clone, Debug)]
pub(crate) struct AppliedSpec {
    pub(crate) is_approved: bool,
    pub(crate) sync: SpecSync,
}

/// Returns the parts of an Agent that show its host. `before` contains the current conditions.
///
/// # Errors
///
/// Returns an internal error if a stored report is damaged.
pub(crate) fn view(
    host: &HostDetails,
    urls: &HostUrls,
    spec: &AppliedSpec,
    before: Vec<AgentInstallCondition>,
    now: DateTime<Utc>,
) -> Result<AgentView, Error> {
    let report = host.inventory()?;
    let inventory = report.as_ref().map(inventory);
    let labels = inventory.as_ref().map(labels).unwrap_or_default();
    let annotations = annotations(host, inventory.is_some())?;
    let mut status = AgentStatus {
        bootstrap: host.record.bootstrap,
        role: role(host).to_string(),
        inventory: inventory.unwrap_or_default(),
        progress: progress(host),
        ntp_sources: ntp_sources(host)?,
        conditions: before,
        debug_info: debug_info(host, urls),
        validations_info: validations(host),
        installation_disk_id: disk_id(host),
        kind: host.record.kind.to_string(),
        ..AgentStatus::default()
    };
    for (type_, value) in conditions(host, spec.is_approved, &spec.sync) {
        condition_list::set(&mut status.conditions, type_, value, now);
    }
    Ok(AgentView { status, labels, annotations })
}

/// Returns the role chosen by the user, or else the suggested role.
fn role(host: &HostDetails) -> HostRole {
    match host.record.role {
        HostRole::AutoAssign => host.record.suggested_role,
        role => role,
    }
}

fn disk_id(host: &HostDetails) -> String {
    host.record.choices.installation_disk.as_ref().map(|disk| disk.id.clone()).unwrap_or_default()
}

fn debug_info(host: &HostDetails, urls: &HostUrls) -> AgentDebugInfo {
    let text = |url: &Option<Secret>| url.as_ref().map(|url| url.reveal().to_owned()).unwrap_or_default();
    AgentDebugInfo {
        events_url: text(&urls.events),
        logs_url: text(&urls.logs),
        state: host.record.status().to_string(),
        state_info: host.record.status_info().to_owned(),
    }
}

/// Returns the progress of the installation. Empty if the host has no stage.
fn progress(host: &HostDetails) -> AgentProgress {
    let progress = &host.record.progress;
    let Some(stage) = progress.stage else { return AgentProgress::default() };
    AgentProgress {
        current_stage: stage.to_string(),
        progress_stages: host.stages().iter().map(ToString::to_string).collect(),
        progress_info: progress.info.clone(),
        installation_percentage: progress.percentage,
        stage_start_time: progress.started_at.0.map(Into::into),
        stage_update_time: progress.updated_at.0.map(Into::into),
    }
}

fn ntp_sources(host: &HostDetails) -> Result<Vec<NtpSource>, Error> {
    let sources = host.ntp_sources()?;
    let sources = sources.iter().map(|source| NtpSource {
        source_name: source.source_name.as_str().to_owned(),
        source_state: source.source_state.as_str().to_owned(),
    });
    Ok(sources.collect())
}

fn validations(host: &HostDetails) -> BTreeMap<String, Vec<ValidationResult>> {
    let result = |validation: &assisted::host::Validation| ValidationResult {
        id: validation.id.clone(),
        status: validation.status.to_string(),
        message: validation.message.clone(),
    };
    let categories = host.validations.iter();
    categories.map(|(name, list)| ((*name).to_owned(), list.iter().map(result).collect())).collect()
}

/// Returns the labels derived from the inventory. A text that cannot become a legal label value sets no label.
fn labels(inventory: &AgentInventory) -> BTreeMap<String, String> {
    let has_ssd = inventory.disks.iter().any(|disk| disk.drive_type == "SSD");
    let flags = &inventory.cpu.flags;
    let has_virtualization = flags.iter().any(|flag| flag == "vmx" || flag == "svm");
    let vendor = &inventory.system_vendor;
    let values = [
        (names::STORAGE_HAS_NON_ROTATIONAL_DISK_LABEL, has_ssd.to_string()),
        (names::CPU_ARCHITECTURE_LABEL, inventory.cpu.architecture.clone()),
        (names::CPU_VIRTUALIZATION_ENABLED_LABEL, has_virtualization.to_string()),
        (names::HOST_MANUFACTURER_LABEL, vendor.manufacturer.clone()),
        (names::HOST_PRODUCT_NAME_LABEL, vendor.product_name.clone()),
        (names::HOST_IS_VIRTUAL_LABEL, vendor.r#virtual.to_string()),
        (names::CLUSTER_DEPLOYMENT_NAMESPACE_LABEL, String::new()),
    ];
    let labels = values.into_iter().filter_map(|(key, text)| Some((key.to_owned(), label_value(&text)?)));
    labels.collect()
}

/// Returns the annotations from which the host can be restored after a loss of the database.
fn annotations(host: &HostDetails, has_inventory: bool) -> Result<BTreeMap<String, String>, Error> {
    let mut annotations = BTreeMap::from([
        (names::AGENT_STATE_ANNOTATION.to_owned(), host.record.status().to_string()),
        (names::AGENT_ROLE_ANNOTATION.to_owned(), host.record.role.to_string()),
        (names::AGENT_VALIDATIONS_INFO_ANNOTATION.to_owned(), validations_text(host)?),
        (names::AGENT_CURRENT_STAGE_ANNOTATION.to_owned(), stage(host)),
        // Empty without a report, as in the upstream service.
        (names::AGENT_INVENTORY_ANNOTATION.to_owned(), host.inventory_json().to_owned()),
    ]);
    if has_inventory {
        let version = names::INVENTORY_LABELS_VERSION.to_owned();
        annotations.insert(names::INVENTORY_LABELS_VERSION_ANNOTATION.to_owned(), version);
    }
    Ok(annotations)
}

fn stage(host: &HostDetails) -> String {
    host.record.progress.stage.map(|stage| stage.to_string()).unwrap_or_default()
}

fn validations_text(host: &HostDetails) -> Result<String, Error> {
    if host.validations.is_empty() { Ok(String::new()) } else { host.validations_json() }
}

/// Converts the error of an operation on a host into the result shown in the conditions.
pub(crate) fn sync_error(error: &Error) -> SpecSync {
    match error.kind() {
        ErrorKind::Unavailable | ErrorKind::Internal | ErrorKind::InsufficientStorage => {
            SpecSync::BackendError(error.to_string())
        }
        _ => SpecSync::InputError(error.to_string()),
    }
}
