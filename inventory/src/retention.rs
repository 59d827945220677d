//! Purges deleted clusters and hosts after a retention time.
//!
//! Until then, users can look up what they deleted by mistake. After that, the service removes the records, their
//! files, and old events that name no existing record.

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};

use super::Inventory;
use super::cluster::ClusterRecord;
use super::host::HostRecord;
use super::store::{Change, Key, Kind, ReadSet, Reader as _, Record, Records, StoreError, Stored};
use crate::error::{Error, ErrorKind};
use crate::event::EventPosition;
use crate::service::logs;

/// Delay of the first purge, because a start has more urgent work.
const FIRST_PAUSE: Duration = Duration::from_secs(60);

/// Pause between two purges.
const PAUSE: Duration = Duration::from_secs(60 * 60);

/// The most events that one statement deletes.
const MAX_EVENTS: usize = 1000;

/// The most statements of one purge. The next purge deletes the remaining events.
const MAX_STATEMENTS: usize = 1000;

/// A record that is kept for the retention time after it was deleted.
trait Remains: Record {
    /// Returns the time of the deletion.
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
    /// Purges deleted clusters and hosts at intervals. Never returns.
    pub async fn run_retention(self) {
        let mut pause = FIRST_PAUSE;
        loop {
            tokio::time::sleep(pause).await;
            if let Err(refusal) = self.clear_remains().await {
                tracing::error!(%refusal, "purging deleted clusters and hosts failed, will retry");
            }
            if let Err(error) = self.files().remove_abandoned_uploads(self.now()).await {
                let error = &error as &dyn std::error::Error;
                tracing::warn!(error, "could not remove incomplete uploads, will retry");
            }
            pause = PAUSE;
        }
    }

    /// Purges clusters and hosts whose retention time is over, and old events.
    ///
    /// # Errors
    ///
    /// Returns the last error if the database fails or a record is damaged. The other records are purged if possible.
    pub async fn clear_remains(&self) -> Result<(), Error> {
        // A time longer than the calendar keeps records forever.
        let kept = TimeDelta::from_std(self.settings().kept_after_deletion).unwrap_or(TimeDelta::MAX);
        let Some(before) = Utc::now().checked_sub_signed(kept) else { return Ok(()) };
        let hosts = self.clear_hosts(before).await;
        let clusters = self.clear_clusters(before).await;
        let events = self.forget_events(before).await.map_err(Error::from);
        events.and(clusters).and(hosts)
    }

    async fn clear_hosts(&self, before: DateTime<Utc>) -> Result<(), Error> {
        let records = self.records();
        let mut cleared = Ok(());
        for key in records.store().deleted(Kind::Host).await? {
            keep_error(&mut cleared, key, clear::<HostRecord>(records, key, before).await)?;
        }
        cleared
    }

    async fn clear_clusters(&self, before: DateTime<Utc>) -> Result<(), Error> {
        let mut cleared = Ok(());
        for key in self.records().store().deleted(Kind::Cluster).await? {
            keep_error(&mut cleared, key, self.clear_cluster(key, before).await)?;
        }
        cleared
    }

    async fn clear_cluster(&self, key: Key, before: DateTime<Utc>) -> Result<(), Error> {
        // Delete the files first: only the record says that they may exist.
        let found = self.records().find::<ClusterRecord>(None, key.id).await?;
        if let Some(cluster) = found.filter(|stored| is_due(&stored.record, before)) {
            logs::delete_files_of_cluster(self, cluster.record.id).await?;
            clear::<ClusterRecord>(self.records(), key, before).await?;
        }
        Ok(())
    }

    async fn forget_events(&self, before: DateTime<Utc>) -> Result<(), StoreError> {
        let mut after = EventPosition::START;
        for _ in 0..MAX_STATEMENTS {
            match self.records().store().forget_events(after, before, MAX_EVENTS).await? {
                Some(last) => after = last,
                None => break,
            }
        }
        Ok(())
    }
}

/// Logs the error of a record and keeps it, so that the purge continues with the other records. Returns an error that
/// the other records would have too: the database does not answer.
fn keep_error(cleared: &mut Result<(), Error>, key: Key, result: Result<(), Error>) -> Result<(), Error> {
    match result {
        Err(error) if error.kind() == ErrorKind::Unavailable => Err(error),
        Err(error) => {
            tracing::error!(record = %key, %error, "purging a deleted record failed");
            *cleared = Err(error);
            Ok(())
        }
        Ok(()) => Ok(()),
    }
}

fn is_due(record: &impl Remains, before: DateTime<Utc>) -> bool {
    record.deleted_at().is_some_and(|deleted_at| deleted_at < before)
}

/// Removes a record if its retention time is over. Reads it again, because a host may have registered again.
async fn clear<R: Remains>(records: &Records, key: Key, before: DateTime<Utc>) -> Result<(), Error> {
    records
        .change(|reads: ReadSet| async move {
            let mut change = Change::new();
            let found: Option<Stored<R>> = reads.find(key.parent, key.id).await?;
            if let Some(stored) = found.filter(|stored| is_due(&stored.record, before)) {
                change.remove(&stored);
            }
            Ok((change, ()))
        })
        .await
}
