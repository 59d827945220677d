//! Records refused reports of agents, with the reason for the refusal.
//!
//! A recorded reason is replaced by another one at most once in [`CHANGE_INTERVAL`]. Each replacement adds an event and
//! a log line. If no reason is recorded, a refusal adds an event and a log line at most once an hour for each step and
//! status.

use assisted::step::StepType;
use chrono::{DateTime, TimeDelta, Utc};

use crate::Inventory;
use crate::error::{Error, ErrorKind};
use crate::event::Severity;
use crate::host::assessment::assess_unbound;
use crate::host::draft::{ASSESSED, HostDraft};
use crate::host::refused_report::UNPARSED;
use crate::host::{HostRecord, RefusedReport};
use crate::id::HostKey;
use crate::journal::Journal;
use crate::request_id::RequestId;
use crate::store::{Change, ReadSet};

/// Maximum length of a stored reason, in characters. A reason may quote the report.
const MAX_REASON: usize = 256;

/// Minimum time between two replacements of a recorded reason. Limits the number of writes and events.
const CHANGE_INTERVAL: TimeDelta = TimeDelta::minutes(10);

/// A refused step reply.
#[derive(Debug)]
pub(crate) struct Refusal<'a> {
    pub(crate) key: HostKey,
    pub(crate) request: Option<RequestId>,
    /// The step of the reply. `None` if the reply was not parsed.
    pub(crate) step: Option<StepType>,
    pub(crate) error: &'a Error,
}

impl Refusal<'_> {
    /// Records why a report was refused. Failures of this service and broken connections are not recorded.
    ///
    /// # Errors
    ///
    /// Returns an error if the host does not exist.
    pub(crate) async fn record(&self, inventory: &Inventory) -> Result<(), Error> {
        if self.status().is_none() {
            return Ok(());
        }
        let recorded = self.try_record(inventory).await;
        recorded.or_else(|failure| match failure.kind() {
            ErrorKind::NotFound => Err(failure),
            _ => {
                let host = self.key.host_id;
                tracing::debug!(%host, %failure, "cannot record that a report was refused");
                Ok(())
            }
        })
    }

    async fn try_record(&self, inventory: &Inventory) -> Result<(), Error> {
        // Agents repeat their reports every minute, so most refusals are already recorded.
        if self.is_recorded(self.key.find_cached(inventory).await?.record(), inventory.now()) {
            return Ok(());
        }
        let context = &inventory.host_context(self.key).await?;
        let plan = |reads: ReadSet| async move {
            let mut draft = HostDraft::read(&reads, self.key.find(&reads).await?, ASSESSED).await?;
            let mut change = Change::new();
            let mut journal = inventory.journal(self.request);
            if self.is_recorded(&draft.record, journal.now()) {
                return Ok((change, false));
            }
            let is_reported = self.update(&mut draft.record, &mut journal);
            assess_unbound(&mut draft, context, &mut journal)?;
            draft.record.updated_at = journal.micros();
            // The refusal is stored even if the infra-env has reached its size limit, because this limit may be the
            // reason. All refusals of a host take less than 32 KiB.
            draft.write(&mut change)?;
            journal.write(&mut change)?;
            Ok((change, is_reported))
        };
        if inventory.records().change(plan).await? {
            let (HostKey { infra_env_id, host_id }, error) = (self.key, self.error);
            tracing::warn!(infra_env = %infra_env_id, host = %host_id, step = self.step_name(), %error, "report of an agent refused");
        }
        Ok(())
    }

    /// Returns `true` if nothing needs to be written, because the same reason is recorded or the recorded reason is
    /// recent.
    fn is_recorded(&self, host: &HostRecord, now: DateTime<Utc>) -> bool {
        let Some(recorded) = host.findings.refused.get(self.step_name()) else { return false };
        let is_same = Some(recorded.status) == self.status() && recorded.reason == self.reason();
        is_same || is_recent(recorded, now)
    }

    /// Records the refusal in the host. Returns `true` if this has added an event. A reason that replaces another one
    /// adds an event. Otherwise at most one event per hour is added for each step and status, even if valid and refused
    /// reports alternate.
    fn update(&self, host: &mut HostRecord, journal: &mut Journal) -> bool {
        const EVENT: &str = "host_report_refused";
        let (step, Some(status)) = (self.step_name(), self.status()) else { return false };
        let reason = self.reason();
        let report = if step == UNPARSED { "a report".to_owned() } else { format!("its {step} report") };
        let message = format!("Refused {report}: {reason}");
        let refused = RefusedReport { status, reason, recorded_at: journal.millis() };
        let is_replacement = host.findings.refused.insert(step.to_owned(), refused).is_some();
        let is_due = journal.starts_hour(host, format!("{EVENT} {step} {status}")) || is_replacement;
        if is_due {
            journal.add_host_event(host, EVENT, Severity::Warning, message);
        }
        is_due
    }

    /// Returns the status of the response, or `None` for a failure of this service.
    fn status(&self) -> Option<u16> {
        match self.error.kind() {
            ErrorKind::Invalid => Some(400),
            ErrorKind::TooLarge => Some(413),
            _ => None,
        }
    }

    /// Returns the reason, limited to [`MAX_REASON`] characters.
    fn reason(&self) -> String {
        self.error.reason().chars().take(MAX_REASON).collect()
    }

    fn step_name(&self) -> &'static str {
        self.step.map_or(UNPARSED, StepType::as_str)
    }
}

/// Returns `true` if it is too early to replace the recorded reason.
fn is_recent(refused: &RefusedReport, now: DateTime<Utc>) -> bool {
    // The clock may have been set back, so the difference may be negative.
    refused.recorded_at.0.is_some_and(|at| (now - at).abs() < CHANGE_INTERVAL)
}

#[cfg(test)]
mod tests {
    use rules::host::state::Transition;
    use uuid::Uuid;

    use super::*;
    use crate::host::refused_report::forget;
    use crate::id::{HostId, InfraEnvId};
    use crate::time::Millis;

    /// Records a refused inventory report unless the reason is already recorded. Returns `true` if this has added an
    /// event.
    fn refuse(host: &mut HostRecord, reason: &str) -> bool {
        let (key, error) =
            (HostKey { infra_env_id: host.infra_env_id, host_id: host.id }, Error::invalid(reason));
        let request = RequestId(Uuid::new_v4());
        let refusal = Refusal { key, request: Some(request), step: Some(StepType::Inventory), error: &error };
        let mut journal = Journal::new(Utc::now(), Some(request));
        !refusal.is_recorded(host, journal.now()) && refusal.update(host, &mut journal)
    }

    fn make_older(host: &mut HostRecord, age: TimeDelta) {
        for refused in host.findings.refused.values_mut() {
            refused.recorded_at = Millis(Some(Utc::now() - age));
        }
    }

    #[test]
    fn another_reason_replaces_an_old_one_with_an_event() {
        let key = HostKey { infra_env_id: InfraEnvId(Uuid::new_v4()), host_id: HostId(Uuid::new_v4()) };
        let mut host = HostRecord::new(key, &Transition::first(false, Utc::now()));
        let reason = |host: &HostRecord| host.findings.refused["inventory"].reason.clone();
        assert!(refuse(&mut host, "A"));
        assert!(!refuse(&mut host, "B"));
        assert_eq!(reason(&host), "A", "other reasons are not recorded without limit");
        for age in [CHANGE_INTERVAL, CHANGE_INTERVAL * -2] {
            make_older(&mut host, age);
            assert!(!refuse(&mut host, "A"), "the same reason is reported once");
            assert!(refuse(&mut host, "B"));
            assert_eq!(reason(&host), "B");
            make_older(&mut host, age);
            assert!(refuse(&mut host, "A"));
        }
        // A valid report in between does not lead to another event.
        forget(&mut host.findings, StepType::Inventory);
        assert!(!refuse(&mut host, "B"));
        assert_eq!(reason(&host), "B");
    }
}
