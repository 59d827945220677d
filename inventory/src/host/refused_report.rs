//! Reports of an agent that were refused.
//!
//! An agent repeats a refused report each minute and shows the reason to no user. So the host keeps the reason until
//! its agent sends a good report: its status text ends with it, and an event and the log report it once.

use axum::http::StatusCode;
use serde::{Deserialize, Serialize};

use super::draft::HostDraft;
use super::journal::Journal;
use super::key::HostKey;
use super::record::{HostFindings, HostRecord};
use super::state::Transition;
use super::status::HostStatus;
use super::steps::StepType;
use crate::Inventory;
use crate::api::{ApiError, RequestId};
use crate::events::Severity;
use crate::store::{Change, ReadSet};

/// The key of refused replies whose step is unknown, because they were not parsed.
const UNPARSED: &str = "";

/// Maximum number of characters of a stored reason. It may quote the report.
const MAX_REASON: usize = 256;

/// Why the last report of a step was refused.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RefusedReport {
    /// Status of the response.
    pub status: u16,
    /// Reason in the response, if the status text of the host shows it.
    pub reason: String,
}

/// A reply that was refused.
#[derive(Debug)]
pub(super) struct Refusal<'a> {
    pub(super) key: HostKey,
    pub(super) request: RequestId,
    /// The step; `None` if the reply was not parsed.
    pub(super) step: Option<StepType>,
    pub(super) error: &'a ApiError,
}

impl Refusal<'_> {
    /// Records why a report was refused. Failures of the service itself are not recorded.
    ///
    /// # Errors
    ///
    /// Returns an error if the host does not exist.
    pub(super) async fn record(&self, inventory: &Inventory) -> Result<(), ApiError> {
        if ![StatusCode::BAD_REQUEST, StatusCode::PAYLOAD_TOO_LARGE].contains(&self.error.status()) {
            return Ok(());
        }
        let recorded = self.try_record(inventory).await;
        recorded.or_else(|failure| match failure.status() {
            StatusCode::NOT_FOUND => Err(failure),
            _ => {
                let host = self.key.host_id;
                tracing::debug!(%host, %failure, "cannot record that a report was refused");
                Ok(())
            }
        })
    }

    async fn try_record(&self, inventory: &Inventory) -> Result<(), ApiError> {
        // An agent repeats its report each minute.
        if self.is_recorded(self.key.find_cached(inventory).await?.record()) {
            return Ok(());
        }
        let plan = |reads: ReadSet| async move {
            let mut draft = HostDraft::new(self.key.find(&reads).await?);
            let mut change = Change::new();
            if self.is_recorded(&draft.record) {
                return Ok((change, false));
            }
            let mut journal = Journal::new(self.request);
            let is_reported = self.update(&mut draft.record, &mut journal);
            super::refresh::refresh(&mut draft.record, inventory.settings(), &mut journal);
            draft.record.updated_at = journal.micros();
            // Stored even if the infra-env has no room for reports, which may be the reason. All refusals of a host take
            // less than 8 KiB.
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

    fn is_recorded(&self, host: &HostRecord) -> bool {
        let known = host.findings.refused.get(self.step_name());
        known.is_some_and(|known| known.status == self.error.status().as_u16())
    }

    /// Updates the host. Returns `true` if this added an event: at most one per hour for each step and status, even if
    /// the agent sends good and bad reports in turn.
    fn update(&self, host: &mut HostRecord, journal: &mut Journal) -> bool {
        const EVENT: &str = "host_report_refused";
        let (step, status) = (self.step_name(), self.error.status().as_u16());
        let reason: String = self.error.reason().chars().take(MAX_REASON).collect();
        let report = if step == UNPARSED { "a report".to_owned() } else { format!("its {step} report") };
        let message = format!("Refused {report}: {reason}");
        let is_shown = step == UNPARSED || self.step == Some(StepType::Inventory);
        let reason = if is_shown { reason } else { String::new() };
        host.findings.refused.insert(step.to_owned(), RefusedReport { status, reason });
        let is_due = journal.starts_hour(host, format!("{EVENT} {step} {status}"));
        if is_due {
            journal.add_host_event(host, EVENT, Severity::Warning, message);
        }
        is_due
    }

    fn step_name(&self) -> &'static str {
        self.step.map_or(UNPARSED, StepType::as_str)
    }
}

/// Forgets refused reports of a step whose report was accepted.
pub(super) fn forget(findings: &mut HostFindings, step: StepType) {
    findings.refused.remove(step.as_str());
    if step == StepType::Inventory {
        findings.refused.remove(UNPARSED);
    }
}

/// Adds the reason why an inventory report was refused to the status text of a host that lacks a good one.
pub(super) fn with_reason(findings: &HostFindings, transition: Transition) -> Transition {
    use HostStatus::{Discovering, DiscoveringUnbound, Insufficient, InsufficientUnbound};
    let is_affected = matches!(
        transition.status(),
        Some(Discovering | DiscoveringUnbound | Insufficient | InsufficientUnbound)
    );
    let shown = [StepType::Inventory.as_str(), UNPARSED].map(|step| findings.refused.get(step));
    match shown.into_iter().flatten().next() {
        Some(refused) if is_affected => {
            transition.with_info_suffix(&format!("; its last report was refused: {}", refused.reason))
        }
        _ => transition,
    }
}
