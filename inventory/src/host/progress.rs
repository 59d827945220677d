//! Progress of a host's installation and of its log upload.

use assisted::host::{HostProgressParams, HostStage, LogsState};
use rules::host::state::{HostEvent, StageReport, decide};

use super::record::HostRecord;
use crate::error::Error;
use crate::event::Severity;
use crate::journal::Journal;

/// Updates the progress that the installer of a host reports.
pub(crate) fn update_progress(
    host: &mut HostRecord,
    params: &HostProgressParams,
    journal: &mut Journal,
) -> Result<(), Error> {
    if host.cluster_id.is_none() {
        return Err(Error::invalid(format!("Host {} belongs to no cluster", host.id)));
    }
    let info = params.progress_info.as_deref().unwrap_or_default();
    let Some(stage) = params.current_stage.map(|stage| effective_stage(host, stage)) else {
        return Err(Error::invalid("current_stage is missing"));
    };
    if host.progress.stage == Some(stage) {
        if host.progress.info != info {
            info.clone_into(&mut host.progress.info);
            host.progress.updated_at = journal.millis();
        }
        return Ok(());
    }
    let event = HostEvent::EnterStage(StageReport { stage, message: info, joins: host.joins() });
    let transition = decide(host.status(), &event, journal.now()).map_err(|_| {
        Error::conflict(format!("Host {} cannot report progress in state {}", host.id, host.status()))
    })?;
    if stage != HostStage::Failed {
        enter_stage(host, stage, info, journal)?;
    }
    journal.apply(host, &transition);
    Ok(())
}

/// Returns the stage that a reported stage means. A host that joins an existing cluster is done when it reboots:
/// nothing reports its later stages.
fn effective_stage(host: &HostRecord, stage: HostStage) -> HostStage {
    if host.joins() && stage == HostStage::Rebooting { HostStage::Done } else { stage }
}

/// Sets the stage of a host, with the percentage that follows from it.
fn enter_stage(
    host: &mut HostRecord,
    stage: HostStage,
    info: &str,
    journal: &mut Journal,
) -> Result<(), Error> {
    let stages = host.stages();
    let index = |stage: HostStage| stages.iter().position(|one| *one == stage);
    let last_of_joining = host.joins() && stage == HostStage::Done;
    let position = if last_of_joining { stages.len().checked_sub(1) } else { index(stage) };
    let position = position.ok_or_else(|| {
        Error::conflict(format!("Stage {stage} is not valid for host {} with role {}", host.id, host.role))
    })?;
    if let Some(before) = host.progress.stage
        && index(before).is_some_and(|before| before > position)
    {
        return Err(Error::conflict(format!(
            "Stage {stage} comes before stage {before}, the current stage of host {}",
            host.id
        )));
    }
    // A role has about ten stages.
    let count = i64::try_from(stages.len()).unwrap_or(i64::MAX).max(1);
    let done = i64::try_from(position).unwrap_or(i64::MAX).saturating_add(1);
    host.progress.percentage = done.saturating_mul(100) / count;
    host.progress.stage = Some(stage);
    info.clone_into(&mut host.progress.info);
    host.progress.started_at = journal.millis();
    host.progress.updated_at = journal.millis();
    host.progress.timed_out = false;
    let details = if info.is_empty() { String::new() } else { format!(": {info}") };
    let message = format!("Host: {}, reached installation stage {stage}{details}", host.name());
    journal.add_event(host, "host_install_progress_updated", Severity::Info, message);
    Ok(())
}

/// Updates the state of a host's log upload.
pub(crate) fn update_logs_state(host: &mut HostRecord, state: LogsState, journal: &Journal) {
    if state == LogsState::Requested {
        host.logs.started_at = journal.millis();
    }
    host.logs.state = state;
}
