//! How hosts are shown.

use chrono::Utc;
use futures_util::stream::BoxStream;
use futures_util::{StreamExt, TryStreamExt};

use super::model::{Host, HostProgress};
use super::record::HostRecord;
use super::refresh::up_to_date;
use super::stage::stages_of;
use super::validation;
use crate::api_error::ApiError;
use crate::inventory::id::ClusterId;
use crate::inventory::store::{Filter, Kind};
use crate::inventory::{Inventory, Settings};

/// How much of what is not kept, and only follows from it, an answer shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shown {
    /// A host that users gave no name has the one that it brings, and the stages of its installation are listed.
    InFull,
    /// Neither.
    AsKept,
}

impl Host {
    /// A host as it is shown.
    #[must_use]
    pub fn of(host: HostRecord, shown: Shown, settings: &Settings) -> Self {
        let validations_info = validation::shown(&host, settings, Utc::now());
        let name = if shown == Shown::InFull { host.name() } else { host.choices.hostname.clone() };
        let stages = (shown == Shown::InFull).then(|| stages_of(&host).to_vec());
        let HostRecord { choices, findings, progress, logs, .. } = host;
        let disk = choices.installation_disk.unwrap_or_default();
        Self {
            kind: host.kind,
            id: host.id,
            href: format!("{}/v2/infra-envs/{}/hosts/{}", Settings::API, host.infra_env_id, host.id),
            infra_env_id: host.infra_env_id,
            cluster_id: host.cluster_id,
            status: host.status,
            status_info: host.status_info,
            status_updated_at: host.status_updated_at,
            role: host.role,
            suggested_role: host.suggested_role,
            bootstrap: host.bootstrap,
            requested_hostname: name,
            progress_stages: stages,
            stage_started_at: progress.started_at,
            stage_updated_at: progress.updated_at,
            connection_timed_out: progress.connection_timed_out,
            installer_version: progress.installer_version,
            progress: HostProgress {
                installation_percentage: progress.percentage,
                current_stage: progress.stage,
                progress_info: progress.info,
                stage_started_at: progress.started_at,
                stage_updated_at: progress.updated_at,
                stage_timed_out: progress.timed_out,
            },
            inventory: findings.inventory,
            connectivity: findings.connectivity,
            api_vip_connectivity: findings.api_vip_connectivity,
            tang_connectivity: findings.tang_connectivity,
            disks_info: findings.disks_info,
            ntp_sources: findings.ntp_sources,
            images_status: findings.images_status,
            domain_name_resolutions: findings.domain_name_resolutions,
            media_status: findings.media,
            validations_info,
            node_labels: labels(&choices.node_labels),
            fencing_credentials: choices.fencing_credentials,
            installation_disk_id: disk.id,
            installation_disk_path: disk.path,
            disks_to_be_formatted: choices.disks_to_be_formatted.join(","),
            skip_formatting_disks: choices.skip_formatting_disks.join(","),
            installer_args: choices.installer_args,
            ignition_config_overrides: choices.ignition_config_overrides,
            ignition_endpoint_token_set: !choices.ignition_endpoint_token.is_empty(),
            machine_config_pool_name: choices.machine_config_pool_name,
            discovery_agent_version: host.agent_version,
            logs_info: logs.state,
            logs_collected_at: logs.collected_at,
            logs_started_at: logs.started_at,
            checked_in_at: host.checked_in_at,
            timestamp: host.clock,
            registered_at: host.registered_at,
            created_at: host.created_at,
            updated_at: host.updated_at,
            deleted_at: host.deleted_at,
            user_name: host.user_name,
        }
    }
}

fn labels(labels: &std::collections::BTreeMap<String, String>) -> String {
    if labels.is_empty() { String::new() } else { serde_json::to_string(labels).unwrap_or_default() }
}

/// The hosts that a filter names, as clients see them.
pub(crate) fn views(
    inventory: &Inventory,
    filter: Filter,
    shown: Shown,
) -> BoxStream<'static, Result<Host, ApiError>> {
    let inventory = inventory.clone();
    let hosts = inventory.records().stream::<HostRecord>(filter).map_err(ApiError::from);
    let views = hosts.try_filter_map(move |host| {
        let inventory = inventory.clone();
        async move {
            let host = up_to_date(&inventory, host.record).await?;
            Ok(host.map(|host| Host::of(host, shown, inventory.settings())))
        }
    });
    views.boxed()
}

/// The hosts of a cluster.
pub(crate) fn views_of_cluster(
    inventory: &Inventory,
    cluster: ClusterId,
    shown: Shown,
) -> BoxStream<'static, Result<Host, ApiError>> {
    views(inventory, Filter::all(Kind::Host).of_cluster(cluster.0), shown)
}
