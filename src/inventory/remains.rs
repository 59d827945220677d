//! What is kept of clusters and hosts that were deleted, and for how long.
//!
//! Who deleted something by mistake finds out what it was for a while. After that its record goes with its files, and so do
//! events that name nothing that is still there.

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};

use super::cluster::ClusterRecord;
use super::host::HostRecord;
use super::store::{Change, Key, Kind, Record, Records, StoreError, Stored};
use super::{Inventory, logs};
use crate::api_error::ApiError;

/// How long after the start remains are looked for first: a start has more urgent things to do.
const FIRST_PAUSE: Duration = Duration::from_secs(60);

/// How long until they are looked for again.
const PAUSE: Duration = Duration::from_secs(60 * 60);

/// How many events go with one statement.
const MOST_EVENTS: usize = 1000;

/// How many times events go at once. The next time has the rest.
const MOST_STATEMENTS: usize = 1000;

/// A record that stays for a while after it was deleted.
trait Remains: Record {
    /// When it was deleted.
    fn deleted_at(&self) -> Option<DateTime<Utc>>;
}

impl Remains for ClusterRecord {
    fn deleted_at(&self) -> Option<DateTime<Utc>> {
        self.deleted_at.and_then(|time| time.0)
    }
}

impl Remains for HostRecord {
    fn deleted_at(&self) -> Option<DateTime<Utc>> {
        self.deleted_at.and_then(|time| time.0)
    }
}

impl Inventory {
    /// Clears remains away, again and again.
    pub(crate) async fn keep_clear(self) {
        let mut pause = FIRST_PAUSE;
        loop {
            tokio::time::sleep(pause).await;
            if let Err(refusal) = self.clear_remains().await {
                tracing::error!(%refusal, "what is left of deleted clusters and hosts stays for now");
            }
            pause = PAUSE;
        }
    }

    /// Clears away what is left of clusters and hosts that were deleted long enough ago.
    ///
    /// # Errors
    ///
    /// When the database fails.
    pub async fn clear_remains(&self) -> Result<(), ApiError> {
        let kept = TimeDelta::from_std(self.settings().kept_after_deletion).unwrap_or(TimeDelta::MAX);
        let Some(before) = Utc::now().checked_sub_signed(kept) else { return Ok(()) };
        let records = self.records();
        for key in records.store().deleted(Kind::Host).await? {
            clear::<HostRecord>(records, key, before).await?;
        }
        for key in records.store().deleted(Kind::Cluster).await? {
            // Without its record, nobody would know any more that it has files.
            let found = records.find::<ClusterRecord>(None, key.id).await?;
            if let Some(cluster) = found.filter(|stored| is_due(&stored.record, before))
                && logs::delete_of_cluster(self, cluster.record.id).await
            {
                clear::<ClusterRecord>(records, key, before).await?;
            }
        }
        self.forget_events(before).await?;
        Ok(())
    }

    async fn forget_events(&self, before: DateTime<Utc>) -> Result<(), StoreError> {
        for _ in 0..MOST_STATEMENTS {
            if self.records().store().forget_events(before, MOST_EVENTS).await? < MOST_EVENTS {
                break;
            }
        }
        Ok(())
    }
}

fn is_due(record: &impl Remains, before: DateTime<Utc>) -> bool {
    record.deleted_at().is_some_and(|deleted_at| deleted_at < before)
}

/// Takes a record away that was deleted long enough ago. A host may have registered anew meanwhile.
async fn clear<R: Remains>(records: &Records, key: Key, before: DateTime<Utc>) -> Result<(), ApiError> {
    records
        .change(|| async {
            let mut change = Change::new();
            let found: Option<Stored<R>> = records.find(key.parent, key.id).await?;
            if let Some(stored) = found.filter(|stored| is_due(&stored.record, before)) {
                change.remove(&stored);
            }
            Ok((change, ()))
        })
        .await
}
