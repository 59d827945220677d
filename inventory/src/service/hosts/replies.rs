//! Step replies of agents.

use assisted::reply::StepReply;
use assisted::step::StepType;

use super::recent_replies::ReplyDigest;
use super::refusals::Refusal;
use crate::Inventory;
use crate::error::Error;
use crate::host::draft::HostDraft;
use crate::host::refused_report;
use crate::host::reply::StepOutput;
use crate::id::HostKey;
use crate::journal::Journal;
use crate::request_id::RequestId;

impl Inventory {
    /// Returns `true` if a reply repeats an earlier one of the host and changes nothing.
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
    /// Returns an error if the host does not exist, or if its report is refused.
    pub(crate) async fn store_reply(
        &self,
        key: HostKey,
        (reply, digest): (&StepReply, ReplyDigest),
        request: Option<RequestId>,
    ) -> Result<(), Error> {
        let output = StepOutput::parse(reply, &self.settings().host_limits)?;
        let store = |draft: &mut HostDraft, journal: &mut Journal| {
            if let Some(step) = reply.known_type().filter(|_| output.is_accepted_report()) {
                refused_report::forget(&mut draft.record.findings, step);
            }
            output.store(draft, self.settings(), journal)
        };
        let generation = key.change_if_edited(self, request, output.needed_reports(), store).await?;
        if let Some(step) = reply.known_type().filter(|_| output.is_repeatable()) {
            self.recent_replies().remember(key, step, digest, generation);
        }
        Ok(())
    }

    /// Records why a reply was refused. `step` is `None` if the reply was not parsed. Failures of the service itself are
    /// not recorded.
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
