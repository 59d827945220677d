//! Marks hosts as disconnected if they have not checked in for too long.

use rules::host::state::{HostEvent, becomes_disconnected, decide};

use crate::Inventory;
use crate::error::Error;
use crate::host::HostRecord;
use crate::host::assessment::assess_unbound;
use crate::host::connection::{connected_since, is_connected, set_silent};
use crate::host::draft::{ASSESSED, HostDraft};
use crate::store::{Change, Key, ReadSet, Reader as _};

/// Marks the silent hosts among `hosts` as disconnected, in one change. Returns their number.
pub(crate) async fn disconnect_silent(inventory: &Inventory, hosts: &[Key]) -> Result<usize, Error> {
    let settings = inventory.settings();
    let mut contexts = Vec::new();
    for key in hosts {
        contexts.push(inventory.context_of(*key).await?);
    }
    let contexts = &contexts;
    let plan = |reads: ReadSet| async move {
        let (mut change, mut journal) = (Change::new(), inventory.journal(None));
        let mut disconnected = 0;
        for (key, context) in hosts.iter().zip(contexts) {
            let Some(context) = context else { continue };
            let stored = reads.find::<HostRecord>(key.parent, key.id).await?;
            let Some(stored) = stored.filter(|host| host.record.deleted_at.is_none()) else { continue };
            let host = &stored.record;
            if !becomes_disconnected(host.status()) || is_connected(host, settings, journal.now()) {
                continue;
            }
            let mut draft = HostDraft::read(&reads, stored, ASSESSED).await?;
            set_silent(&mut draft.record, true);
            // Only the status changes here. An assessment of the host's cluster follows.
            if draft.record.cluster_id.is_some()
                && let Ok(transition) =
                    decide(draft.record.status(), &HostEvent::LoseConnection, journal.now())
            {
                journal.apply(&mut draft.record, &transition);
            }
            assess_unbound(&mut draft, context, &mut journal)?;
            draft.record.updated_at = journal.micros();
            // Another replica may store a check-in concurrently. A check-in does not change the generation, so the
            // commit must compare the check-in times too.
            change.require_silent(&draft.record, connected_since(settings, journal.now()));
            draft.write(&mut change)?;
            disconnected += 1;
        }
        journal.write(&mut change)?;
        Ok((change, disconnected))
    };
    inventory.records().change(plan).await
}
