//! One attempt at a job: its time limit, its progress, and the event if the job fails for good.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::future::BoxFuture;
use tokio::time::Instant;
use uuid::Uuid;

use crate::Inventory;
use crate::error::Error;
use crate::event::{Event, Severity};
use crate::files::FileError;
use crate::id::{ClusterId, HostKey};
use crate::job::{JobRecord, JobWork};
use crate::journal::Journal;
use crate::service::logs;
use crate::store::{
    Change, ChangeKind, FeedEvent, FeedReader, Filter, Key, Kind, ReadSet, Reader as _, StoreError, Stored,
};

/// Minimum pause between two writes of the progress, and before the first write.
const PROGRESS_INTERVAL: Duration = Duration::from_secs(5);

/// The result of an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JobOutcome {
    /// The work is done.
    Done,
    /// The attempt failed. The job will be retried.
    WillRetry,
    /// The last attempt failed. An event reports the failure.
    GivenUp,
    /// No attempt started, because a job with the same exclusive key is running.
    Waiting,
    /// The worker has nothing to do: the job was cancelled or given up earlier, or another worker runs it.
    Gone,
}

impl Inventory {
    /// Runs one attempt at a job. The attempt continues even if the caller is dropped.
    pub fn run_job(&self, id: Uuid) -> BoxFuture<'_, JobOutcome> {
        Box::pin(async move {
            match tokio::spawn(attempt_job(self.clone(), id)).await {
                Ok(outcome) => outcome,
                Err(error) => {
                    tracing::error!(job = %id, %error, "a job ended early, will retry");
                    JobOutcome::WillRetry
                }
            }
        })
    }
}

pub(super) async fn attempt_job(inventory: Inventory, id: Uuid) -> JobOutcome {
    let result = async {
        match Attempt::begin(&inventory, id).await? {
            Ok(attempt) => {
                let progress = attempt.progress();
                attempt.complete(do_work(&inventory, &attempt.job.work, &progress)).await
            }
            Err(outcome) => Ok(outcome),
        }
    };
    result.await.unwrap_or_else(|error: Error| {
        tracing::warn!(job = %id, %error, "the state of a job could not be stored, will retry");
        JobOutcome::WillRetry
    })
}

/// Returns all readable jobs. Skips damaged jobs, so that they do not block the other jobs.
pub(super) async fn read_jobs(inventory: &Inventory) -> Result<Vec<JobRecord>, Error> {
    let mut jobs = Vec::new();
    let mut stored = inventory.records().stream::<JobRecord>(Filter::all(Kind::Job));
    while let Some(read) = stored.next().await {
        match read {
            Ok(job) => jobs.push(job.record),
            Err(error @ StoreError::Damaged { .. }) => {
                tracing::error!(%error, "a job cannot be read and does not run");
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok(jobs)
}

/// A started attempt.
struct Attempt {
    inventory: Inventory,
    job: JobRecord,
    generation: i64,
    deadline: Instant,
    /// Changes since a moment before the start of the attempt.
    changes: tokio::sync::Mutex<FeedReader>,
}

impl Attempt {
    /// Starts an attempt. Returns the outcome instead if no attempt can start.
    async fn begin(inventory: &Inventory, id: Uuid) -> Result<Result<Self, JobOutcome>, Error> {
        let changes = inventory.records().store().feed().subscribe();
        let start = inventory.records().change(|reads| plan_beginning(inventory, reads, id)).await?;
        Ok(start.map(|(stored, deadline)| Self {
            inventory: inventory.clone(),
            job: stored.record,
            generation: stored.generation,
            deadline,
            changes: changes.into(),
        }))
    }

    fn progress(&self) -> JobProgress {
        JobProgress {
            inventory: self.inventory.clone(),
            job: self.job.id,
            attempt: self.job.attempts,
            is_enabled: self.job.work.policy().reports_progress,
            written_at: Mutex::new(Instant::now()),
        }
    }

    /// Does the work within the time limit, and stores the outcome.
    async fn complete(&self, work: impl Future<Output = Result<(), String>>) -> Result<JobOutcome, Error> {
        let result = tokio::select! {
            result = tokio::time::timeout_at(self.deadline, work) => {
                let limit = self.job.work.policy().time_limit.as_secs();
                result.unwrap_or_else(|_| Err(format!("it took more than {limit} seconds")))
            }
            () = self.wait_for_cancellation() => return Ok(JobOutcome::Gone),
        };
        let outcome = self.inventory.records().change(|reads| self.plan_end(reads, &result)).await?;
        if let Err(error) = &result {
            let JobRecord { id, work, attempts, .. } = &self.job;
            tracing::warn!(job = %id, %work, attempt = attempts, %error, ?outcome, "a job failed");
        }
        Ok(outcome)
    }

    async fn plan_end(
        &self,
        reads: ReadSet,
        result: &Result<(), String>,
    ) -> Result<(Change, JobOutcome), Error> {
        let (mut change, now) = (Change::new(), self.inventory.now());
        let current = reads.find::<JobRecord>(None, self.job.id).await?;
        let Some(mut stored) = current.filter(|stored| stored.record.attempts == self.job.attempts) else {
            return Ok((change, JobOutcome::Gone));
        };
        let Err(error) = result else {
            change.remove(&stored);
            return Ok((change, JobOutcome::Done));
        };
        if stored.record.fail(error.clone(), now) {
            change.replace(&stored.record, stored.generation)?;
            return Ok((change, JobOutcome::WillRetry));
        }
        change.add_event(failure(&stored.record, error, &self.inventory.journal(None)));
        change.remove(&stored);
        Ok((change, JobOutcome::GivenUp))
    }

    /// Waits until the job is removed, or until another attempt starts.
    async fn wait_for_cancellation(&self) {
        let mut changes = self.changes.lock().await;
        let key = Key { kind: Kind::Job, parent: None, id: self.job.id };
        while let Some(event) = changes.next().await {
            let may_be_cancelled = match event {
                FeedEvent::Changed(change) => {
                    change.key == key
                        && (change.kind == ChangeKind::Removed || change.generation > self.generation)
                }
                FeedEvent::Resync => true,
            };
            // The feed may report a change that was not committed, or a progress write of this attempt.
            if may_be_cancelled && self.is_cancelled().await {
                return;
            }
        }
        std::future::pending().await
    }

    /// Returns `true` if the job was removed or another attempt has started. Returns `false` if the database fails,
    /// because the end of the attempt reads the job again.
    async fn is_cancelled(&self) -> bool {
        let current = self.inventory.records().find::<JobRecord>(None, self.job.id).await;
        current.is_ok_and(|current| current.is_none_or(|stored| stored.record.attempts != self.job.attempts))
    }
}

/// Plans the start of an attempt. Returns the changed record and the end of the attempt's time limit.
async fn plan_beginning(
    inventory: &Inventory,
    reads: ReadSet,
    id: Uuid,
) -> Result<(Change, Result<(Stored<JobRecord>, Instant), JobOutcome>), Error> {
    let mut change = Change::new();
    let (now, began) = (inventory.now(), Instant::now());
    // The job is due, unless another worker has started the attempt.
    let due_job = reads.find::<JobRecord>(None, id).await?.filter(|stored| stored.record.is_due(now));
    let Some(mut stored) = due_job else { return Ok((change, Err(JobOutcome::Gone))) };
    if stored.record.is_over(now) {
        // The last attempt ended together with its process.
        let error = stored.record.last_error.as_deref().unwrap_or("the process ended during the attempt");
        change.add_event(failure(&stored.record, error, &inventory.journal(None)));
        change.remove(&stored);
        return Ok((change, Err(JobOutcome::Gone)));
    }
    let rivals = read_rivals(inventory, &reads, &stored.record).await?;
    if rivals.iter().any(|rival| rival.record.excludes(&stored.record, now)) {
        return Ok((change, Err(JobOutcome::Waiting)));
    }
    // This change also writes the rival jobs. It therefore conflicts with the start of a rival's attempt, even if the
    // worker of that attempt has not read this job.
    for rival in &rivals {
        change.replace(&rival.record, rival.generation)?;
    }
    stored.record.begin(now);
    change.replace(&stored.record, stored.generation)?;
    stored.generation = stored.generation.saturating_add(1);
    let deadline = began + stored.record.work.policy().time_limit;
    Ok((change, Ok((stored, deadline))))
}

/// Returns the other jobs with the same exclusive key.
async fn read_rivals(
    inventory: &Inventory,
    reads: &ReadSet,
    job: &JobRecord,
) -> Result<Vec<Stored<JobRecord>>, Error> {
    let mut rivals = Vec::new();
    if job.work.exclusive_key().is_none() {
        return Ok(rivals);
    }
    for other in read_jobs(inventory).await? {
        if other.is_rival(job) {
            rivals.extend(reads.find::<JobRecord>(None, other.id).await?);
        }
    }
    Ok(rivals)
}

/// A writer of an attempt's progress to the record of the job.
#[derive(Debug)]
struct JobProgress {
    inventory: Inventory,
    job: Uuid,
    attempt: u32,
    is_enabled: bool,
    written_at: Mutex<Instant>,
}

impl JobProgress {
    /// Writes the progress to the job's record every few seconds, if jobs of this kind report progress.
    async fn report(&self, progress: impl FnOnce() -> String) {
        if !self.is_enabled || !self.is_time_to_write() {
            return;
        }
        let progress = progress();
        let plan = |reads: ReadSet| {
            let progress = progress.clone();
            async move {
                let mut change = Change::new();
                let current = reads.find::<JobRecord>(None, self.job).await?;
                if let Some(mut stored) = current.filter(|stored| stored.record.attempts == self.attempt) {
                    stored.record.progress = Some(progress);
                    change.replace(&stored.record, stored.generation)?;
                }
                Ok((change, ()))
            }
        };
        if let Err(error) = self.inventory.records().change(plan).await {
            tracing::debug!(job = %self.job, %error, "could not store the progress of a job");
        }
    }

    fn is_time_to_write(&self) -> bool {
        let mut written_at = self.written_at.lock().unwrap_or_else(PoisonError::into_inner);
        let is_time = written_at.elapsed() >= PROGRESS_INTERVAL;
        if is_time {
            *written_at = Instant::now();
        }
        is_time
    }
}

async fn do_work(inventory: &Inventory, work: &JobWork, progress: &JobProgress) -> Result<(), String> {
    match *work {
        JobWork::DeleteClusterFiles { cluster } => {
            delete_cluster_files(inventory, cluster, progress).await.map_err(|error| error.to_string())
        }
        JobWork::DeleteHostLogs { cluster, infra_env, host } => {
            let key = HostKey { infra_env_id: infra_env, host_id: host };
            logs::delete_logs_of_host(inventory, cluster, key).await
        }
    }
}

async fn delete_cluster_files(
    inventory: &Inventory,
    cluster: ClusterId,
    progress: &JobProgress,
) -> Result<(), FileError> {
    let files = inventory.files();
    let listed = files.list(&logs::folder_of_cluster(cluster)?).await?;
    for (number, file) in listed.iter().enumerate() {
        progress.report(|| format!("{number} of {} files deleted", listed.len())).await;
        files.delete(&file.path).await?;
    }
    Ok(())
}

/// Returns the event for the final failure of a job.
fn failure(job: &JobRecord, error: &str, journal: &Journal) -> Event {
    let message = format!("Failed after {} attempts: {}: {error}", job.attempts, job.work);
    let event = journal.event("job_failed", Severity::Error, message);
    match job.work {
        JobWork::DeleteClusterFiles { cluster } => event.of_cluster(Some(cluster)),
        JobWork::DeleteHostLogs { cluster, infra_env, host } => {
            event.of_cluster(Some(cluster)).of_infra_env(infra_env).of_host(host)
        }
    }
}

#[cfg(test)]
mod tests;
