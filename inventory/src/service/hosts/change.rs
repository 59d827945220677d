//! Reads hosts through the cache, and changes them.

use std::sync::Arc;

use crate::Inventory;
use crate::error::Error;
use crate::host::HostRecord;
use crate::host::draft::HostDraft;
use crate::id::HostKey;
use crate::journal::Journal;
use crate::request_id::RequestId;
use crate::service::infra_envs::Ensured;
use crate::store::{CachedRecord, Change, ReadSet, ReportKinds};

impl HostKey {
    /// Returns the host from the cache, or reads it into the cache. The check-in time is as old as the cached copy.
    ///
    /// Changes by this process are visible immediately. Changes by other processes are visible within half a second.
    pub(crate) async fn find_cached(
        self,
        inventory: &Inventory,
    ) -> Result<Arc<CachedRecord<HostRecord>>, Error> {
        let (records, cache, key) = (inventory.records(), inventory.host_cache(), self.record_key());
        let cached = match cache.current(key, records.store().feed()) {
            Some(cached) => Some(cached),
            None => cache.read(records, key).await?,
        };
        cached.filter(|host| host.record().deleted_at.is_none()).ok_or_else(|| self.not_found())
    }

    /// Changes the host with `edit`, and calls `edit` again if another change conflicts.
    pub(crate) async fn change<T>(
        self,
        inventory: &Inventory,
        request: Option<RequestId>,
        edit: impl Fn(&mut HostRecord, &mut Journal) -> Result<T, Error> + Send + Sync,
    ) -> Result<(HostRecord, T), Error> {
        let edit = |draft: &mut HostDraft, journal: &mut Journal| edit(&mut draft.record, journal);
        self.change_with_reports(inventory, request, ReportKinds::NONE, edit).await
    }

    /// Changes the host and its reports with `edit`. The host draft contains the reports of the given `kinds`.
    pub(crate) async fn change_with_reports<T>(
        self,
        inventory: &Inventory,
        request: Option<RequestId>,
        kinds: ReportKinds,
        edit: impl Fn(&mut HostDraft, &mut Journal) -> Result<T, Error> + Send + Sync,
    ) -> Result<(HostRecord, T), Error> {
        let edit = &edit;
        inventory
            .records()
            .change(|reads: ReadSet| async move {
                let mut journal = inventory.journal(request);
                let (draft, value) = self.read_and_edit(&reads, kinds, &mut journal, edit).await?;
                let (change, host) = write(draft, journal, inventory)?;
                Ok((change, (host, value)))
            })
            .await
    }

    /// Changes the host and its reports with `edit` for a request of the host's agent. Writes nothing if `edit` changes
    /// nothing and adds no event. Returns the generation of the host after the change.
    pub(crate) async fn change_if_edited(
        self,
        inventory: &Inventory,
        request: Option<RequestId>,
        kinds: ReportKinds,
        edit: impl Fn(&mut HostDraft, &mut Journal) -> Result<(), Error> + Send + Sync,
    ) -> Result<i64, Error> {
        let (_, generation) = self.ensure_edited(inventory, request, kinds, edit).await?;
        Ok(generation)
    }

    /// Changes the host and its reports with `edit`, one change after the other, because the host's agent may send
    /// replies at the same time. Writes nothing if `edit` changes nothing and adds no event. Returns the host and its
    /// generation after the change.
    pub(crate) async fn ensure_edited(
        self,
        inventory: &Inventory,
        request: Option<RequestId>,
        kinds: ReportKinds,
        edit: impl Fn(&mut HostDraft, &mut Journal) -> Result<(), Error> + Send + Sync,
    ) -> Result<(Ensured<HostRecord>, i64), Error> {
        let edit = &edit;
        // Replies of an agent can arrive at the same time, so their changes are planned one after the other.
        inventory
            .records()
            .change_in_turn(self.record_key(), |reads: ReadSet| async move {
                let mut journal = inventory.journal(request);
                let (draft, ()) = self.read_and_edit(&reads, kinds, &mut journal, edit).await?;
                let generation = draft.generation();
                if !draft.is_edited() && journal.is_empty() {
                    return Ok((Change::new(), (Ensured::Unchanged(draft.record), generation)));
                }
                let (change, host) = write(draft, journal, inventory)?;
                Ok((change, (Ensured::Updated(host), generation.saturating_add(1))))
            })
            .await
    }

    async fn read_and_edit<T>(
        self,
        reads: &ReadSet,
        kinds: ReportKinds,
        journal: &mut Journal,
        edit: &(impl Fn(&mut HostDraft, &mut Journal) -> Result<T, Error> + Send + Sync),
    ) -> Result<(HostDraft, T), Error> {
        let mut draft = HostDraft::read(reads, self.find(reads).await?, kinds).await?;
        let value = edit(&mut draft, journal)?;
        Ok((draft, value))
    }
}

/// Returns the change that writes an edited host and its events.
fn write(
    mut draft: HostDraft,
    journal: Journal,
    inventory: &Inventory,
) -> Result<(Change, HostRecord), Error> {
    let mut change = Change::new();
    draft.record.updated_at = journal.micros();
    let host = draft.write_within(&mut change, &inventory.settings().host_limits)?;
    journal.write(&mut change)?;
    Ok((change, host))
}
