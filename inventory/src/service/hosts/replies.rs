//! Stores the step replies of agents.

use assisted::reply::StepReply;
use assisted::step::StepType;
use rules::summary::HostSummary;

use super::measured_reports::COLLECTION_TIME;
use super::recent_replies::ReplyDigest;
use super::refusals::Refusal;
use crate::Inventory;
use crate::error::Error;
use crate::host::connection::has_media;
use crate::host::draft::HostDraft;
use crate::host::refused_report;
use crate::host::reply::StepOutput;
use crate::host::stored_summary::summarize;
use crate::id::HostKey;
use crate::journal::Journal;
use crate::request_id::RequestId;
use crate::store::ReportKind;

impl Inventory {
    /// Returns `true` if a reply repeats an earlier reply of the host and changes nothing.
    ///
    /// # Errors
    ///
    /// Returns an error if the host does not exist, or if the database fails.
    pub(crate) async fn is_repeated_reply(&self, key: HostKey, digest: ReplyDigest) -> Result<bool, Error> {
        let Some(generation) = self.recent_replies().generation_after(key, digest) else { return Ok(false) };
        Ok(key.find_cached(self).await?.generation() == generation)
    }

    /// Stores the result of a step, and updates the status of the host.
    ///
    /// # Errors
    ///
    /// Returns an error if the host does not exist, or if the report is refused.
    pub(crate) async fn store_reply(
        &self,
        key: HostKey,
        (reply, digest): (&StepReply, ReplyDigest),
        request: Option<RequestId>,
    ) -> Result<(), Error> {
        let output = StepOutput::parse(reply, &self.settings().host_limits)?;
        if self.is_only_measured(key, &output).await? {
            return Ok(());
        }
        if matches!(output, StepOutput::Report(ReportKind::Connectivity, ..)) {
            self.measured_reports().forget(&key.record_key());
        }
        let context = self.host_context(key).await?;
        let store = |draft: &mut HostDraft, journal: &mut Journal| {
            if let Some(step) = reply.known_type().filter(|_| output.is_accepted_report()) {
                refused_report::forget(&mut draft.record.findings, step);
            }
            output.store(draft, &context, journal)
        };
        let generation = key.change_if_edited(self, request, output.needed_reports(), store).await?;
        if let Some(step) = reply.known_type().filter(|_| output.is_repeatable()) {
            self.recent_replies().remember(key, step, digest, generation);
        }
        Ok(())
    }

    /// Returns `true` if a reply is a connectivity report that differs from the stored one only in measured numbers.
    /// Such a report does not change the host, and replaces the stored one later.
    async fn is_only_measured(&self, key: HostKey, output: &StepOutput<'_>) -> Result<bool, Error> {
        let StepOutput::Report(ReportKind::Connectivity, payload, report) = output else { return Ok(false) };
        let cached = key.find_cached(self).await?;
        let host = cached.record();
        let view = self.cluster_view(host.cluster_id).await?;
        let Some(viewed) = view.as_ref().and_then(|view| view.host(&key.record_key())) else {
            return Ok(false);
        };
        let is_accepted =
            has_media(host) && !refused_report::is_refused(&host.findings, StepType::ConnectivityCheck);
        if !is_accepted || viewed.generation != cached.generation() {
            return Ok(false);
        }
        let before = &viewed.view.summary;
        let mut after = HostSummary::clone(before);
        summarize(&mut after, payload)
            .map_err(|error| Error::invalid(format!("connectivity-check: {error}")))?;
        let is_same = after.is_same_except_measurements(before, &self.settings().measurement_limits);
        if is_same && self.measured_reports().add(key.record_key(), report.clone()) {
            tokio::spawn(store_measured_reports(self.clone()));
        }
        Ok(is_same)
    }

    /// Records why a reply was refused. `step` is `None` if the reply was not parsed. Failures of this service are not
    /// recorded.
    ///
    /// # Errors
    ///
    /// Returns an error if the host does not exist.
    pub(crate) async fn record_refused_reply(
        &self,
        key: HostKey,
        step: Option<StepType>,
        error: &Error,
        request: Option<RequestId>,
    ) -> Result<(), Error> {
        Refusal { key, request, step, error }.record(self).await
    }
}

/// Stores the waiting connectivity reports until none are left.
async fn store_measured_reports(inventory: Inventory) {
    loop {
        tokio::time::sleep(COLLECTION_TIME).await;
        let reports = inventory.measured_reports().take();
        if reports.is_empty() {
            return;
        }
        if let Err(error) = inventory.records().put_reports(reports).await {
            let error = &error as &dyn std::error::Error;
            tracing::debug!(error, "measured numbers of hosts could not be stored");
        }
    }
}
