//! Jobs: work outside of requests, with a time limit, retries and a visible failure.
//!
//! A job is a record that is written in the same change as its cause, so that neither exists without the other. The
//! workers of all replicas make the attempts: each one begins with a change of the record, which only one of them can
//! make.

use std::time::Duration;

use chrono::{DateTime, Utc};
use futures_util::{StreamExt as _, stream};
use uuid::Uuid;

use crate::Inventory;
use crate::error::Error;
use crate::event::{Event, Severity};
use crate::job::{JobRecord, JobWork, TIME_LIMIT};
use crate::service::logs;
use crate::store::{
    Change, ChangeKind, FeedEvent, FeedReader, Filter, Key, Kind, ReadSet, Reader as _, StoreError, Stored,
};

/// The shortest pause of a worker: a job stays due if its attempt cannot be stored, for example on a full disk.
const MIN_PAUSE: Duration = Duration::from_secs(1);
/// The longest pause of a worker. It would also find jobs that no event of the feed reported.
const MAX_PAUSE: Duration = Duration::from_secs(30);
/// The most jobs that a worker runs at once.
const CONCURRENT_JOBS: usize = 4;

/// The end of an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JobOutcome {
    /// The work is done.
    Done,
    /// The attempt failed; there will be another one.
    WillRetry,
    /// The last attempt failed. An event reports it.
    GivenUp,
    /// There is nothing to do: the job was cancelled or given up before, or another worker runs it.
    Gone,
}

impl Inventory {
    /// Runs due jobs whenever there are any. Never returns.
    pub async fn run_jobs(self) {
        let mut changes = self.records().store().feed().subscribe();
        loop {
            let pause = match self.run_due_jobs().await {
                Ok(next) => next.map_or(MAX_PAUSE, |next| (next - self.now()).to_std().unwrap_or_default()),
                Err(error) => {
                    tracing::warn!(%error, "jobs could not be read, will retry");
                    MAX_PAUSE
                }
            };
            tokio::time::sleep(MIN_PAUSE).await;
            tokio::select! {
                () = tokio::time::sleep(pause.min(MAX_PAUSE)) => {}
                () = wait_for(&mut changes, may_be_of_jobs) => {}
            }
        }
    }

    /// Makes one attempt at each due job. Returns the time of the next attempt at any job.
    ///
    /// # Errors
    ///
    /// Returns an error if the database fails.
    pub async fn run_due_jobs(&self) -> Result<Option<DateTime<Utc>>, Error> {
        let now = self.now();
        let (jobs, damaged) = self.read_jobs().await?;
        for error in damaged {
            tracing::error!(%error, "a job cannot be read and does not run");
        }
        let due = jobs.into_iter().filter(|job| job.is_due(now));
        let attempts = stream::iter(due).map(|job| {
            let inventory = self.clone();
            async move { inventory.run_job(job.id).await }
        });
        attempts.buffer_unordered(CONCURRENT_JOBS).for_each(async |_| {}).await;
        let (jobs, _) = self.read_jobs().await?;
        Ok(jobs.into_iter().map(|job| job.not_before).min())
    }

    /// Returns all jobs, and the errors of those with a damaged document, which must not stop the others.
    async fn read_jobs(&self) -> Result<(Vec<JobRecord>, Vec<StoreError>), Error> {
        let (mut jobs, mut damaged) = (Vec::new(), Vec::new());
        let mut stored = self.records().stream::<JobRecord>(Filter::all(Kind::Job));
        while let Some(read) = stored.next().await {
            match read {
                Ok(job) => jobs.push(job.record),
                Err(error @ StoreError::Damaged { .. }) => damaged.push(error),
                Err(error) => return Err(error.into()),
            }
        }
        Ok((jobs, damaged))
    }

    /// Makes one attempt at a job. It continues even if the caller is dropped.
    pub async fn run_job(&self, id: Uuid) -> JobOutcome {
        let inventory = self.clone();
        let attempt = tokio::spawn(async move { inventory.attempt_job(id).await });
        match attempt.await {
            Ok(Ok(outcome)) => outcome,
            Ok(Err(error)) => {
                tracing::warn!(job = %id, %error, "the state of a job could not be stored, will retry");
                JobOutcome::WillRetry
            }
            Err(error) => {
                tracing::error!(job = %id, %error, "a job ended early, will retry");
                JobOutcome::WillRetry
            }
        }
    }

    /// Cancels a job: a running attempt stops, and no further one begins. Returns `false` if it has ended.
    ///
    /// # Errors
    ///
    /// Returns an error if the database fails.
    pub async fn cancel_job(&self, id: Uuid) -> Result<bool, Error> {
        let plan = |reads: ReadSet| async move {
            let mut change = Change::new();
            let found: Option<Stored<JobRecord>> = reads.find(None, id).await?;
            if let Some(stored) = &found {
                change.remove(stored);
            }
            Ok((change, found.is_some()))
        };
        self.records().change(plan).await
    }

    async fn attempt_job(&self, id: Uuid) -> Result<JobOutcome, Error> {
        let mut changes = self.records().store().feed().subscribe();
        let begin = |reads: ReadSet| async move {
            let mut change = Change::new();
            let Some(mut stored) = reads.find::<JobRecord>(None, id).await? else {
                return Ok((change, None));
            };
            let now = self.now();
            // It is due, unless another worker has begun the attempt.
            if !stored.record.is_due(now) {
                return Ok((change, None));
            }
            if stored.record.is_over(now) {
                // The last attempt ended with its process.
                let error =
                    stored.record.last_error.as_deref().unwrap_or("the process ended during the attempt");
                change.add_event(failure(&stored.record, error, now));
                change.remove(&stored);
                return Ok((change, None));
            }
            stored.record.begin(now);
            change.replace(&stored.record, stored.generation)?;
            Ok((change, Some((stored.record, stored.generation.saturating_add(1)))))
        };
        let Some((job, generation)) = self.records().change(begin).await? else {
            return Ok(JobOutcome::Gone);
        };
        let key = Key { kind: Kind::Job, parent: None, id };
        let is_cancellation = |event: FeedEvent| match event {
            FeedEvent::Changed(change) if change.key == key => {
                change.kind == ChangeKind::Removed || change.generation > generation
            }
            FeedEvent::Changed(_) | FeedEvent::Resync => false,
        };
        let result = tokio::select! {
            result = tokio::time::timeout(TIME_LIMIT, self.do_work(&job.work)) => {
                result.unwrap_or_else(|_| Err(format!("it took more than {} seconds", TIME_LIMIT.as_secs())))
            }
            () = wait_for(&mut changes, is_cancellation) => return Ok(JobOutcome::Gone),
        };
        let end = |reads: ReadSet| {
            let result = &result;
            async move {
                let (mut change, now) = (Change::new(), self.now());
                let found = reads.find::<JobRecord>(None, id).await?;
                let Some(mut stored) = found.filter(|stored| stored.generation == generation) else {
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
                change.add_event(failure(&stored.record, error, now));
                change.remove(&stored);
                Ok((change, JobOutcome::GivenUp))
            }
        };
        let outcome = self.records().change(end).await?;
        if let Err(error) = &result {
            tracing::warn!(job = %id, work = %job.work, attempt = job.attempts, %error, ?outcome, "a job failed");
        }
        Ok(outcome)
    }

    async fn do_work(&self, work: &JobWork) -> Result<(), String> {
        let done = match *work {
            JobWork::DeleteClusterFiles { cluster } => logs::delete_files_of_cluster(self, cluster).await,
            JobWork::DeleteHostLogs { cluster, infra_env, host } => {
                logs::delete_logs_of_host(self, cluster, (infra_env, host)).await
            }
        };
        done.map_err(|error| error.to_string())
    }
}

fn may_be_of_jobs(event: FeedEvent) -> bool {
    match event {
        FeedEvent::Changed(change) => change.key.kind == Kind::Job,
        FeedEvent::Resync => true,
    }
}

/// Waits for an event of the feed. Never returns if the store is closed: the process ends then.
async fn wait_for(changes: &mut FeedReader, is_expected: impl Fn(FeedEvent) -> bool) {
    while let Some(event) = changes.next().await {
        if is_expected(event) {
            return;
        }
    }
    std::future::pending().await
}

/// Returns the event of a job that is given up.
fn failure(job: &JobRecord, error: &str, now: DateTime<Utc>) -> Event {
    let message = format!("Failed after {} attempts: {}: {error}", job.attempts, job.work);
    let event = Event::new("job_failed", Severity::Error, message, now);
    match job.work {
        JobWork::DeleteClusterFiles { cluster } => event.of_cluster(Some(cluster)),
        JobWork::DeleteHostLogs { cluster, infra_env, host } => {
            event.of_cluster(Some(cluster)).of_infra_env(infra_env).of_host(host)
        }
    }
}
