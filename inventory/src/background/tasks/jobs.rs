//! Runs due jobs.
//!
//! A job is a record written in the same change as its cause, so that neither exists without the other. All replicas
//! run jobs. An attempt starts with a change to the record, which succeeds on only one replica.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use futures_util::future::BoxFuture;
use futures_util::{StreamExt as _, stream};
use tokio::task::JoinSet;
use uuid::Uuid;

use super::super::attempt::{attempt_job, read_jobs};
use super::super::task::{Task, TaskRun};
use crate::Inventory;
use crate::error::Error;
use crate::job::JobRecord;
use crate::store::{Key, Kind, RecordChange};

/// Minimum pause between runs. A job stays due if its attempt cannot be stored, for example because a disk is full.
const MIN_PAUSE: Duration = Duration::from_secs(1);
/// Time between two full runs. Full runs also find jobs that the change feed did not report.
const INTERVAL: Duration = Duration::from_secs(30);
/// Maximum number of concurrent attempts in a process.
const CONCURRENT_JOBS: usize = 4;

impl Inventory {
    /// Makes one attempt at each due job, and waits for these attempts. Returns the time of the next attempt at any
    /// job.
    ///
    /// # Errors
    ///
    /// Returns an error if the database fails.
    pub fn run_due_jobs(&self) -> BoxFuture<'_, Result<Option<DateTime<Utc>>, Error>> {
        Box::pin(async move {
            let now = self.now();
            let due = read_jobs(self).await?.into_iter().filter(|job| job.is_due(now));
            let attempts = stream::iter(due).map(|job| self.run_job(job.id));
            attempts.buffer_unordered(CONCURRENT_JOBS).for_each(async |_| {}).await;
            Ok(read_jobs(self).await?.into_iter().map(|job| job.not_before).min())
        })
    }
}

/// The task that runs due jobs. An attempt may continue after the run that started it, so that long jobs do not delay
/// other jobs.
#[derive(Debug)]
pub(super) struct Jobs {
    inventory: Inventory,
    attempts: tokio::sync::Mutex<JoinSet<()>>,
    in_progress: Arc<InProgress>,
}

/// The ids of jobs with a running attempt in this process.
#[derive(Debug, Default)]
struct InProgress(Mutex<BTreeSet<Uuid>>);

impl InProgress {
    fn ids(&self) -> MutexGuard<'_, BTreeSet<Uuid>> {
        // Each change is a single step, so a panic cannot leave the set inconsistent.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Jobs {
    pub(super) fn new(inventory: Inventory) -> Self {
        Self { inventory, attempts: tokio::sync::Mutex::default(), in_progress: Arc::default() }
    }

    /// Starts an attempt at each job that may run, up to the limit.
    async fn begin_attempts(&self, jobs: impl Iterator<Item = &JobRecord>) {
        let mut attempts = self.attempts.lock().await;
        // Removes ended attempts from the set.
        while attempts.try_join_next().is_some() {}
        for job in jobs {
            if attempts.len() >= CONCURRENT_JOBS {
                break;
            }
            let (inventory, in_progress, id) =
                (self.inventory.clone(), Arc::clone(&self.in_progress), job.id);
            in_progress.ids().insert(id);
            attempts.spawn(async move {
                attempt_job(inventory, id).await;
                in_progress.ids().remove(&id);
            });
        }
    }
}

#[async_trait]
impl Task for Jobs {
    fn name(&self) -> &'static str {
        "jobs"
    }

    fn interval(&self) -> Duration {
        INTERVAL
    }

    fn is_leader_only(&self) -> bool {
        false
    }

    fn follows_changes(&self) -> bool {
        true
    }

    fn keys_to_mark(&self, change: &RecordChange) -> Vec<Key> {
        if change.key.kind == Kind::Job { vec![change.key] } else { Vec::new() }
    }

    async fn run(&self, _: &TaskRun) -> Result<Option<Duration>, Error> {
        let mut jobs = read_jobs(&self.inventory).await?;
        let now = self.inventory.now();
        let running: Vec<_> = jobs.iter().filter(|job| job.is_running(now)).cloned().collect();
        let in_progress = self.in_progress.ids().clone();
        jobs.retain(|job| !in_progress.contains(&job.id));
        let next = jobs.iter().map(|job| next_attempt(job, &running, now)).min();
        self.begin_attempts(jobs.iter().filter(|job| next_attempt(job, &running, now) <= now)).await;
        Ok(next.map(|next| (next - now).to_std().unwrap_or_default().max(MIN_PAUSE)))
    }

    async fn drain(&self) {
        let mut attempts = self.attempts.lock().await;
        while attempts.join_next().await.is_some() {}
    }
}

/// Returns the time of the next attempt at a job: when the job is due and no running attempt excludes it.
fn next_attempt(job: &JobRecord, running: &[JobRecord], now: DateTime<Utc>) -> DateTime<Utc> {
    let exclusions = running.iter().filter(|other| other.excludes(job, now)).map(|other| other.not_before);
    exclusions.max().map_or(job.not_before, |end| end.max(job.not_before))
}
