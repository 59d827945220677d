//! Progress of a host's installation and of its log upload.

use assisted::host::{HostProgressParams, HostStage, LogsState};
use rules::host::state::{HostEvent, StageReport, decide};

use super::record::HostRecord;
use crate::error::Error;
use crate::event::Severity;
use crate::journal::Journal;
use crate::time::Millis;

/// Updates the progress of a host, as its installer reports it.
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

/// Returns the effective stage for a reported stage. A host that joins an existing cluster is done when it reboots,
/// because its later stages are not reported.
fn effective_stage(host: &HostRecord, stage: HostStage) -> HostStage {
    if host.joins() && stage == HostStage::Rebooting { HostStage::Done } else { stage }
}

/// Sets the stage of a host, and the percentage that follows from the stage.
fn enter_stage(
    host: &mut HostRecord,
    stage: HostStage,
    info: &str,
    journal: &mut Journal,
) -> Result<(), Error> {
    let position = position(host, stage).ok_or_else(|| {
        Error::conflict(format!("Stage {stage} is not valid for host {} with role {}", host.id, host.role))
    })?;
    if let Some(before) = host.progress.stage
        && index(host, before).is_some_and(|before| before > position)
    {
        return Err(Error::conflict(format!(
            "Stage {stage} comes before stage {before}, the current stage of host {}",
            host.id
        )));
    }
    set_stage(host, (stage, position), journal.millis());
    info.clone_into(&mut host.progress.info);
    let details = if info.is_empty() { String::new() } else { format!(": {info}") };
    let message = format!("Host: {}, reached installation stage {stage}{details}", host.name());
    journal.add_event(host, "host_install_progress_updated", Severity::Info, message);
    Ok(())
}

/// Sets the stage of a restored host. A stage that the host does not have is ignored.
pub(crate) fn restore_stage(host: &mut HostRecord, stage: HostStage, now: Millis) {
    if let Some(position) = position(host, stage) {
        set_stage(host, (stage, position), now);
    }
}

fn set_stage(host: &mut HostRecord, (stage, position): (HostStage, usize), now: Millis) {
    // A role has about ten stages, so the conversion cannot fail.
    let count = i64::try_from(host.stages().len()).unwrap_or(i64::MAX).max(1);
    let done = i64::try_from(position).unwrap_or(i64::MAX).saturating_add(1);
    host.progress.percentage = done.saturating_mul(100) / count;
    host.progress.stage = Some(stage);
    host.progress.started_at = now;
    host.progress.updated_at = now;
    host.progress.timed_out = false;
}

fn index(host: &HostRecord, stage: HostStage) -> Option<usize> {
    host.stages().iter().position(|one| *one == stage)
}

/// Returns the position of a stage in the progress of a host. The last stage of a joining host is missing from its
/// list.
fn position(host: &HostRecord, stage: HostStage) -> Option<usize> {
    let is_last_of_joining = host.joins() && stage == HostStage::Done;
    if is_last_of_joining { host.stages().len().checked_sub(1) } else { index(host, stage) }
}

/// Updates the state of a host's log upload.
pub(crate) fn update_logs_state(host: &mut HostRecord, state: LogsState, journal: &Journal) {
    if state == LogsState::Requested {
        host.logs.started_at = journal.millis();
    }
    host.logs.state = state;
}
