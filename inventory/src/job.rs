//! Stored jobs: work outside of requests, with retries.

use std::fmt;
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::id::{ClusterId, HostId, InfraEnvId};
use crate::store::{Kind, Record};

/// The pause after the first failed attempt. It doubles with each further attempt.
const FIRST_PAUSE: Duration = Duration::from_secs(2);
const MAX_PAUSE: Duration = Duration::from_secs(15 * 60);
/// The time after which a failing job is given up, even if attempts remain.
const LIFETIME: TimeDelta = TimeDelta::days(1);

/// The rules for all jobs of one kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JobPolicy {
    /// Time limit of one attempt.
    pub time_limit: Duration,
    /// Maximum number of attempts.
    pub max_attempts: u32,
    /// Whether an attempt writes its progress to the record.
    pub reports_progress: bool,
}

const DELETE_CLUSTER_FILES: JobPolicy =
    JobPolicy { time_limit: Duration::from_secs(60), max_attempts: 10, reports_progress: true };

/// The policy of [`JobWork::DeleteHostLogs`], which deletes one file.
const DELETE_HOST_LOGS: JobPolicy =
    JobPolicy { time_limit: Duration::from_secs(60), max_attempts: 10, reports_progress: false };

/// A resource that only one attempt may use at a time. Attempts at two jobs with the same key never run at the same
/// time, on any replica.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ExclusiveKey {
    /// The files of a cluster.
    ClusterFiles(ClusterId),
}

/// The kind of work of a job, with its parameters.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum JobWork {
    /// Deletes all files of a deleted cluster.
    DeleteClusterFiles {
        /// Id of the deleted cluster.
        cluster: ClusterId,
    },
    /// Deletes the logs of a deleted host, or of a host that left its cluster.
    DeleteHostLogs {
        /// Id of the cluster that the host belonged to.
        cluster: ClusterId,
        /// The infra-env of the host.
        infra_env: InfraEnvId,
        /// Id of the host.
        host: HostId,
    },
}

impl JobWork {
    /// Returns the policy of this kind of work.
    #[must_use]
    pub fn policy(&self) -> JobPolicy {
        match self {
            Self::DeleteClusterFiles { .. } => DELETE_CLUSTER_FILES,
            Self::DeleteHostLogs { .. } => DELETE_HOST_LOGS,
        }
    }

    /// Returns the resource that only one attempt may use at a time, if any.
    pub(crate) fn exclusive_key(&self) -> Option<ExclusiveKey> {
        match *self {
            Self::DeleteClusterFiles { cluster } => Some(ExclusiveKey::ClusterFiles(cluster)),
            // Deleting one file twice does no harm, so concurrent attempts are allowed.
            Self::DeleteHostLogs { .. } => None,
        }
    }
}

impl fmt::Display for JobWork {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::DeleteClusterFiles { cluster } => write!(f, "deleting the files of cluster {cluster}"),
            Self::DeleteHostLogs { cluster, host, .. } => {
                write!(f, "deleting the logs of host {host} of cluster {cluster}")
            }
        }
    }
}

/// A job: work outside of a request. It survives the end of the process.
///
/// An attempt starts by moving `not_before` to the end of its time limit, so that the next attempt is not due while it
/// runs. If the process is killed, another attempt starts at that time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobRecord {
    /// Id of the job.
    pub id: Uuid,
    /// The task of the job, with its parameters.
    pub work: JobWork,
    /// Number of started attempts.
    pub attempts: u32,
    /// Time of the next attempt.
    pub not_before: DateTime<Utc>,
    /// Time after which the job is given up.
    pub deadline: DateTime<Utc>,
    /// Error of the last failed attempt.
    pub last_error: Option<String>,
    /// Latest end of the running attempt. Older releases do not write it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub running_until: Option<DateTime<Utc>>,
    /// Progress of the running attempt. Older releases do not write it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progress: Option<String>,
}

impl JobRecord {
    /// Creates a job whose first attempt is due now.
    #[must_use]
    pub fn new(work: JobWork, now: DateTime<Utc>) -> Self {
        Self {
            id: Uuid::new_v4(),
            work,
            attempts: 0,
            not_before: now,
            deadline: now + LIFETIME,
            last_error: None,
            running_until: None,
            progress: None,
        }
    }

    /// Returns `true` if an attempt is due.
    pub(crate) fn is_due(&self, now: DateTime<Utc>) -> bool {
        self.not_before <= now
    }

    /// Returns `true` if all attempts have started, or if the deadline has passed.
    pub(crate) fn is_over(&self, now: DateTime<Utc>) -> bool {
        self.attempts >= self.work.policy().max_attempts || self.deadline <= now
    }

    /// Returns `true` while an attempt is running.
    pub(crate) fn is_running(&self, now: DateTime<Utc>) -> bool {
        self.running_until.is_some_and(|end| now < end)
    }

    /// Returns `true` while an attempt at this job prevents attempts at `other`.
    pub(crate) fn excludes(&self, other: &Self, now: DateTime<Utc>) -> bool {
        self.is_rival(other) && self.is_running(now)
    }

    /// Returns `true` if this is another job with the same exclusive key.
    pub(crate) fn is_rival(&self, other: &Self) -> bool {
        let key = self.work.exclusive_key();
        self.id != other.id && key.is_some() && key == other.work.exclusive_key()
    }

    /// Records the start of an attempt.
    pub(crate) fn begin(&mut self, now: DateTime<Utc>) {
        let end = now + self.work.policy().time_limit;
        self.attempts = self.attempts.saturating_add(1);
        self.not_before = end;
        self.running_until = Some(end);
        self.progress = None;
    }

    /// Records the failure of an attempt. Returns `false` if it was the last attempt.
    pub(crate) fn fail(&mut self, error: String, now: DateTime<Utc>) -> bool {
        let doublings = self.attempts.saturating_sub(1).min(16);
        let pause = FIRST_PAUSE.saturating_mul(1 << doublings).min(MAX_PAUSE);
        self.not_before = now + pause;
        self.last_error = Some(error);
        self.running_until = None;
        self.progress = None;
        self.attempts < self.work.policy().max_attempts && self.not_before < self.deadline
    }
}

impl Record for JobRecord {
    const KIND: Kind = Kind::Job;

    fn id(&self) -> Uuid {
        self.id
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(now: DateTime<Utc>) -> JobRecord {
        JobRecord::new(JobWork::DeleteClusterFiles { cluster: ClusterId::fresh() }, now)
    }

    #[test]
    fn pauses_grow_until_the_job_is_given_up() {
        let mut now = DateTime::UNIX_EPOCH;
        let mut job = job(now);
        let mut pauses = Vec::new();
        let JobPolicy { time_limit, max_attempts, .. } = job.work.policy();
        for attempt in 1..=max_attempts {
            job.begin(now);
            assert!(!job.is_due(now) && job.is_due(now + time_limit));
            let continues = job.fail("x".to_owned(), now);
            assert_eq!(continues, attempt < max_attempts);
            pauses.push((job.not_before - now).num_seconds());
            now = job.not_before;
        }
        assert_eq!(pauses, [2, 4, 8, 16, 32, 64, 128, 256, 512, 900]);
    }

    #[test]
    fn job_is_given_up_after_its_deadline() {
        let mut job = job(DateTime::UNIX_EPOCH);
        let late = job.deadline;
        job.begin(late);
        assert!(!job.fail("x".to_owned(), late));
    }

    #[test]
    fn running_job_excludes_only_jobs_with_its_key() {
        let now = DateTime::UNIX_EPOCH;
        let mut running = job(now);
        let same = JobRecord::new(running.work.clone(), now);
        assert!(!running.excludes(&same, now));
        running.begin(now);
        assert!(running.excludes(&same, now));
        assert!(!running.excludes(&job(now), now) && !running.excludes(&running, now));
        let end = now + running.work.policy().time_limit;
        assert!(!running.excludes(&same, end));
        running.fail("x".to_owned(), now);
        assert!(!running.excludes(&same, now));
    }

    #[test]
    fn stored_form_is_stable() {
        let id = "0f2a5d3c-1111-4222-8333-444455556666";
        let mut job = job(DateTime::UNIX_EPOCH);
        (job.id, job.work) =
            (id.parse().unwrap(), JobWork::DeleteClusterFiles { cluster: id.parse().unwrap() });
        let stored = format!(
            r#"{{"id":"{id}","work":{{"kind":"delete-cluster-files","cluster":"{id}"}},"attempts":0,"#
        ) + r#""not_before":"1970-01-01T00:00:00Z","deadline":"1970-01-02T00:00:00Z","last_error":null}"#;
        assert_eq!(serde_json::to_string(&job).unwrap(), stored);
        assert_eq!(serde_json::from_str::<JobRecord>(&stored).unwrap(), job);
    }
}
