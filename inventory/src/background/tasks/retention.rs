//! Purges deleted clusters and hosts after a retention time.
//!
//! Until then, users can look up resources deleted by mistake. After that, the service removes the records, their
//! files, and old events that name no existing record.

use std::time::Duration;

use async_trait::async_trait;
use chrono::{DateTime, TimeDelta, Utc};
use futures_util::future::BoxFuture;

use super::super::task::{Task, TaskRun};
use crate::Inventory;
use crate::cluster::ClusterRecord;
use crate::error::{Error, ErrorKind};
use crate::event::EventPosition;
use crate::host::HostRecord;
use crate::service::logs;
use crate::store::{Change, Key, Kind, ReadSet, Reader as _, Record, Records, Stored};

/// Delay of the first purge, because other work is more urgent after the start.
pub(super) const FIRST_PAUSE: Duration = Duration::from_secs(60);

/// Pause between two purges.
pub(super) const INTERVAL: Duration = Duration::from_secs(60 * 60);

/// Maximum number of events that one statement deletes.
const MAX_EVENTS: usize = 1000;

/// Maximum number of statements of one purge. The next purge deletes the remaining events.
const MAX_STATEMENTS: usize = 1000;

/// A record that stays in the database for the retention time after its deletion.
trait Remains: Record {
    /// Returns the time of the deletion. `None`: the record is not deleted.
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
    /// Purges deleted clusters and hosts whose retention time has ended, and old events.
    ///
    /// # Errors
    ///
    /// Returns the last error if the database fails or a record is damaged. The other records are purged if possible.
    pub fn clear_remains(&self) -> BoxFuture<'_, Result<(), Error>> {
        Box::pin(async move { purge(self, &TaskRun::without_driver()).await })
    }
}

/// The task that purges deleted clusters and hosts, and old events.
#[derive(Debug)]
pub(super) struct Retention(pub(super) Inventory);

#[async_trait]
impl Task for Retention {
    fn name(&self) -> &'static str {
        "retention"
    }

    fn interval(&self) -> Duration {
        INTERVAL
    }

    fn first_pause(&self) -> Duration {
        FIRST_PAUSE
    }

    fn is_leader_only(&self) -> bool {
        true
    }

    async fn run(&self, run: &TaskRun) -> Result<Option<Duration>, Error> {
        purge(&self.0, run).await.map(|()| None)
    }
}

/// Purges deleted clusters and hosts whose retention time has ended, and old events. Ends early if the run must stop.
async fn purge(inventory: &Inventory, run: &TaskRun) -> Result<(), Error> {
    // A retention time beyond the calendar keeps records forever.
    let retention = TimeDelta::from_std(inventory.settings().kept_after_deletion).unwrap_or(TimeDelta::MAX);
    let Some(before) = inventory.now().checked_sub_signed(retention) else { return Ok(()) };
    let hosts = purge_hosts(inventory, run, before).await;
    let clusters = purge_clusters(inventory, run, before).await;
    let events = purge_events(inventory, run, before).await;
    events.and(clusters).and(hosts)
}

async fn purge_hosts(inventory: &Inventory, run: &TaskRun, before: DateTime<Utc>) -> Result<(), Error> {
    let (records, mut result) = (inventory.records(), Ok(()));
    for key in records.store().deleted(Kind::Host).await? {
        if !run.may_continue().await? {
            break;
        }
        keep_error(&mut result, key, clear::<HostRecord>(records, key, before).await)?;
    }
    result
}

async fn purge_clusters(inventory: &Inventory, run: &TaskRun, before: DateTime<Utc>) -> Result<(), Error> {
    let mut result = Ok(());
    for key in inventory.records().store().deleted(Kind::Cluster).await? {
        if !run.may_continue().await? {
            break;
        }
        keep_error(&mut result, key, purge_cluster(inventory, key, before).await)?;
    }
    result
}

async fn purge_cluster(inventory: &Inventory, key: Key, before: DateTime<Utc>) -> Result<(), Error> {
    // Delete the files before the record, because only the record shows that the files may exist.
    let record = inventory.records().find::<ClusterRecord>(None, key.id).await?;
    if let Some(cluster) = record.filter(|stored| is_due(&stored.record, before)) {
        logs::delete_files_of_cluster(inventory, cluster.record.id).await?;
        clear::<ClusterRecord>(inventory.records(), key, before).await?;
    }
    Ok(())
}

async fn purge_events(inventory: &Inventory, run: &TaskRun, before: DateTime<Utc>) -> Result<(), Error> {
    let mut after = EventPosition::START;
    for _ in 0..MAX_STATEMENTS {
        if !run.may_continue().await? {
            break;
        }
        match inventory.records().store().forget_events(after, before, MAX_EVENTS).await? {
            Some(last) => after = last,
            None => break,
        }
    }
    Ok(())
}

/// Logs and stores the error of a record, so that the purge continues with the other records. If the database is
/// unavailable, returns the error instead, because the other records would fail too.
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

/// Removes a record if its retention time has ended. Reads the record again, because a host may have registered again.
async fn clear<R: Remains>(records: &Records, key: Key, before: DateTime<Utc>) -> Result<(), Error> {
    records
        .change(|reads: ReadSet| async move {
            let mut change = Change::new();
            let record: Option<Stored<R>> = reads.find(key.parent, key.id).await?;
            if let Some(stored) = record.filter(|stored| is_due(&stored.record, before)) {
                change.remove(&stored);
            }
            Ok((change, ()))
        })
        .await
}
