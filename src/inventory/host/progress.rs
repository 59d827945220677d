//! How far the installation and the logs of a host are.

use super::cluster::require_part_of;
use super::journal::Journal;
use super::key::HostKey;
use super::model::HostProgressParams;
use super::record::HostRecord;
use super::stage::{HostStage, LogsState, stages_of};
use super::status::HostStatus;
use crate::api_error::ApiError;
use crate::inventory::Inventory;
use crate::inventory::event::Severity;
use crate::inventory::id::{ClusterId, HostId, InfraEnvId};
use crate::inventory::request::RequestId;

/// Keeps what the installer says.
pub(super) fn keep_progress(
    host: &mut HostRecord,
    said: &HostProgressParams,
    journal: &mut Journal,
) -> Result<(), ApiError> {
    if host.cluster_id.is_none() {
        return Err(ApiError::bad(format!("Host {} belongs to no cluster", host.id)));
    }
    let info = said.progress_info.as_deref().unwrap_or_default();
    let Some(stage) = said.current_stage.map(|stage| last_if_it_joins(host, stage)) else {
        return Err(ApiError::bad("current_stage is missing"));
    };
    if host.progress.stage == Some(stage) {
        if host.progress.info != info {
            info.clone_into(&mut host.progress.info);
            host.progress.updated_at = journal.millis();
        }
        return Ok(());
    }
    if !matches!(
        host.status,
        HostStatus::Installing | HostStatus::InstallingInProgress | HostStatus::InstallingPendingUserAction
    ) {
        return Err(ApiError::conflict(format!(
            "Host {} cannot make progress in state {}",
            host.id, host.status
        )));
    }
    if stage == HostStage::Failed {
        let reason = if info.is_empty() { String::new() } else { format!(" - {info}") };
        journal.move_host(host, HostStatus::Error, &format!("{stage}{reason}"));
        return Ok(());
    }
    enter_stage(host, stage, info, journal)
}

/// What comes after the last boot of a host that joins, nobody tells: for us it is done then.
fn last_if_it_joins(host: &HostRecord, stage: HostStage) -> HostStage {
    if host.joins() && stage == HostStage::Rebooting { HostStage::Done } else { stage }
}

fn enter_stage(
    host: &mut HostRecord,
    stage: HostStage,
    info: &str,
    journal: &mut Journal,
) -> Result<(), ApiError> {
    let stages = stages_of(host);
    let index = |stage: HostStage| stages.iter().position(|one| *one == stage);
    let last_of_joining = host.joins() && stage == HostStage::Done;
    let place = if last_of_joining { stages.len().checked_sub(1) } else { index(stage) };
    let place = place.ok_or_else(|| {
        ApiError::conflict(format!("Stage {stage} is none of host {} with role {}", host.id, host.role))
    })?;
    if let Some(before) = host.progress.stage
        && index(before).is_some_and(|before| before > place)
    {
        return Err(ApiError::conflict(format!(
            "Stage {stage} comes before stage {before}, which host {} is in",
            host.id
        )));
    }
    let parts = i64::try_from(stages.len()).unwrap_or(i64::MAX).max(1);
    let done = i64::try_from(place).unwrap_or(i64::MAX).saturating_add(1);
    host.progress.percentage = done.saturating_mul(100) / parts;
    host.progress.stage = Some(stage);
    info.clone_into(&mut host.progress.info);
    host.progress.started_at = journal.millis();
    host.progress.updated_at = journal.millis();
    host.progress.timed_out = false;
    let more = if info.is_empty() { String::new() } else { format!(": {info}") };
    let message = format!("Host: {}, reached installation stage {stage}{more}", host.name());
    journal.tell_in_full(host, "host_install_progress_updated", Severity::Info, message);
    let (status, info) = match stage {
        HostStage::Done if host.joins() => (
            HostStatus::AddedToExistingCluster,
            "Host has rebooted and no further updates will be posted. Please check console for progress and to possibly approve pending CSRs",
        ),
        HostStage::Done => (HostStatus::Installed, stage.as_str()),
        _ => (HostStatus::InstallingInProgress, stage.as_str()),
    };
    journal.move_host(host, status, info);
    Ok(())
}

/// Logs of a host of a cluster have come.
pub(crate) async fn note_logs(
    inventory: &Inventory,
    cluster: ClusterId,
    (infra_env_id, host_id): (InfraEnvId, HostId),
    request: RequestId,
) -> Result<(), ApiError> {
    let note = |host: &mut HostRecord, journal: &mut Journal| {
        require_part_of(cluster, host)?;
        host.logs.collected_at = journal.millis();
        let message = format!("Uploaded logs for host {} cluster {cluster}", host.name());
        journal.tell_in_full(host, "host_logs_uploaded", Severity::Info, message);
        Ok(())
    };
    HostKey { infra_env_id, host_id }.change(inventory, request, note).await?;
    Ok(())
}

/// Keeps how far logs are.
pub(super) fn keep_logs_state(host: &mut HostRecord, state: LogsState, journal: &Journal) {
    if state == LogsState::Requested {
        host.logs.started_at = journal.millis();
    }
    host.logs.state = state;
}
