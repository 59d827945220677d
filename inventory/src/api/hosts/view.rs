//! Conversion of host records into their API representation.

use assisted::host::{Host, HostProgress};
use assisted::{Extensible, Secret};
use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use futures_util::stream::BoxStream;

use crate::error::Error;
use crate::host::stored_results::{AssessmentResults, stored_results};
use crate::host::{HostRecord, inventory_report};
use crate::id::ClusterId;
use crate::json::to_json_text;
use crate::service::hosts::counts::DeletedHosts;
use crate::service::hosts::list::{HostQuery, HostStream, SHOWN_REPORTS};
use crate::store::{ReportKind, Reports};
use crate::{Inventory, Settings};

/// The level of detail of a host in a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HostDetail {
    /// Stored values, the reported host name if no user has set one, and the stages of the installation.
    InFull,
    /// Stored values only.
    AsStored,
}

impl Inventory {
    /// Returns a host as the API represents it, with its reports. If the host has changed since `record` was read,
    /// returns the current state of the host.
    ///
    /// # Errors
    ///
    /// Returns an error if the database fails, if a report named by the host is missing, or if a part of the record
    /// cannot be written as JSON.
    pub fn to_api_host(&self, record: &HostRecord) -> BoxFuture<'_, Result<Host, Error>> {
        Box::pin(view_with_reports(self, record.clone(), HostDetail::InFull))
    }

    /// Returns the hosts that a query selects, as the API represents them, with their reports. Hosts and reports are
    /// read page by page, unlike with a call of [`to_api_host`](Self::to_api_host) for each host.
    pub fn to_api_hosts(&self, query: HostQuery) -> BoxStream<'static, Result<Host, Error>> {
        views(self.hosts_with_reports(query, SHOWN_REPORTS), HostDetail::InFull)
    }
}

/// Converts a host into its API representation.
///
/// # Errors
///
/// Returns an error if a part of the record cannot be written as JSON.
fn view(host: HostRecord, mut reports: Reports, detail: HostDetail) -> Result<Host, Error> {
    // A report that the record does not name becomes an empty text. `with_shown_reports` and `hosts_with_reports` have
    // checked that all named reports exist.
    let results = stored_results(&host, &reports)?;
    let validations_info = validations_text(results.as_ref())?;
    let mut report = |kind| reports.0.remove(&kind).unwrap_or_default();
    let inventory =
        inventory_report::with_eligibility(host.id, report(ReportKind::Inventory), results.as_ref())?;
    let name = if detail == HostDetail::InFull { host.name() } else { host.choices.hostname.clone() };
    let stages =
        (detail == HostDetail::InFull).then(|| host.stages().iter().map(|stage| (*stage).into()).collect());
    let (status, status_info) = (host.status(), host.status_info().to_owned());
    let status_updated_at = host.status_updated_at();
    let HostRecord { choices, findings, progress, logs, .. } = host;
    // For a host without an installation disk, these texts are empty.
    let disk = choices.installation_disk.unwrap_or_default();
    Ok(Host {
        kind: host.kind.into(),
        id: host.id,
        href: format!("{}/v2/infra-envs/{}/hosts/{}", Settings::API, host.infra_env_id, host.id),
        infra_env_id: host.infra_env_id,
        cluster_id: host.cluster_id,
        status: status.into(),
        status_info,
        status_updated_at,
        role: Some(host.role.into()),
        suggested_role: Some(host.suggested_role.into()),
        bootstrap: host.bootstrap,
        requested_hostname: name,
        progress_stages: stages,
        stage_started_at: progress.started_at,
        stage_updated_at: progress.updated_at,
        connection_timed_out: progress.connection_timed_out,
        installer_version: progress.installer_version,
        progress: HostProgress {
            installation_percentage: progress.percentage,
            current_stage: progress.stage.map(Extensible::Known),
            progress_info: progress.info,
            stage_started_at: progress.started_at,
            stage_updated_at: progress.updated_at,
            stage_timed_out: progress.timed_out,
        },
        inventory,
        connectivity: report(ReportKind::Connectivity),
        api_vip_connectivity: report(ReportKind::ApiVipConnectivity),
        tang_connectivity: report(ReportKind::TangConnectivity),
        disks_info: report(ReportKind::DisksInfo),
        ntp_sources: report(ReportKind::NtpSources),
        images_status: report(ReportKind::ImagesStatus),
        domain_name_resolutions: report(ReportKind::DomainNameResolutions),
        media_status: findings.media.map(Extensible::Known),
        validations_info,
        node_labels: labels(&choices.node_labels)?,
        fencing_credentials: Secret::new(choices.fencing_credentials),
        installation_disk_id: disk.id,
        installation_disk_path: disk.path,
        disks_to_be_formatted: choices.disks_to_be_formatted.join(","),
        skip_formatting_disks: choices.skip_formatting_disks.join(","),
        installer_args: choices.installer_args,
        ignition_config_overrides: choices.ignition_config_overrides,
        ignition_endpoint_token_set: !choices.ignition_endpoint_token.is_empty(),
        machine_config_pool_name: choices.machine_config_pool_name,
        discovery_agent_version: host.agent_version,
        logs_info: logs.state.into(),
        logs_collected_at: logs.collected_at,
        logs_started_at: logs.started_at,
        checked_in_at: host.checked_in_at,
        timestamp: host.clock,
        registered_at: host.registered_at,
        created_at: host.created_at,
        updated_at: host.updated_at,
        deleted_at: host.deleted_at,
        user_name: host.user_name,
    })
}

/// Returns the validation results of a host as JSON. A host stored by an earlier release has no results before its
/// first assessment.
fn validations_text(results: Option<&AssessmentResults>) -> Result<String, Error> {
    let Some(results) = results else { return Ok("{}".to_owned()) };
    to_json_text("validations_info", &results.validations.shown())
}

/// Reads the reports of a host, and returns the host as clients see it.
///
/// # Errors
///
/// Returns an error if the database fails, if a report named by the host is missing, or if a part of the record cannot
/// be written as JSON.
pub(crate) async fn view_with_reports(
    inventory: &Inventory,
    host: HostRecord,
    detail: HostDetail,
) -> Result<Host, Error> {
    let (host, reports) = inventory.with_shown_reports(host).await?;
    view(host, reports, detail)
}

/// Returns the IP addresses in the inventory report of a host, each with its prefix length.
///
/// # Errors
///
/// Returns an error if the report is damaged.
pub(crate) fn addresses(host: &Host) -> Result<Vec<String>, Error> {
    let report = inventory_report::from_stored(host.id, &host.inventory)?;
    Ok(report.addresses().map(str::to_owned).collect())
}

fn labels(labels: &std::collections::BTreeMap<String, String>) -> Result<String, Error> {
    if labels.is_empty() { Ok(String::new()) } else { to_json_text("node_labels", labels) }
}

/// Converts hosts into their API representation.
pub(crate) fn views(hosts: HostStream, detail: HostDetail) -> BoxStream<'static, Result<Host, Error>> {
    let view = move |(host, reports): (HostRecord, Reports)| self::view(host, reports, detail);
    hosts.map(move |host| host.and_then(&view)).boxed()
}

/// Returns the hosts of a cluster in their API representation.
pub(crate) fn views_of_cluster(
    inventory: &Inventory,
    cluster: ClusterId,
    detail: HostDetail,
    deleted: DeletedHosts,
) -> BoxStream<'static, Result<Host, Error>> {
    let selected = HostQuery { deleted: deleted == DeletedHosts::Included, ..HostQuery::of_cluster(cluster) };
    let hosts = inventory.hosts_with_reports(selected, SHOWN_REPORTS);
    views(hosts, detail)
}
