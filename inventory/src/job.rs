//! Stored jobs.

use std::fmt;
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::id::{ClusterId, HostId, InfraEnvId};
use crate::store::{Kind, Record};

/// The time limit of one attempt.
pub(crate) const TIME_LIMIT: Duration = Duration::from_secs(60);
/// The most attempts.
const MAX_ATTEMPTS: u32 = 10;
/// The pause after the first failed attempt. Each further pause is twice as long.
const FIRST_PAUSE: Duration = Duration::from_secs(2);
const MAX_PAUSE: Duration = Duration::from_secs(15 * 60);
/// The time after which a job that still fails is given up, whatever the number of attempts.
const LIFETIME: TimeDelta = TimeDelta::days(1);

/// The work of a job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum JobWork {
    /// Deletes all files of a deleted cluster.
    DeleteClusterFiles {
        /// The cluster.
        cluster: ClusterId,
    },
    /// Deletes the logs of a host that was deleted or left its cluster.
    DeleteHostLogs {
        /// The cluster.
        cluster: ClusterId,
        /// The infra-env of the host.
        infra_env: InfraEnvId,
        /// The host.
        host: HostId,
    },
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

/// A job: work outside of a request, which survives the end of the process.
///
/// A job that is running is one whose next attempt is not due: each attempt first moves `not_before` behind its own
/// time limit. If the process is killed, another attempt begins then.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobRecord {
    /// Id.
    pub id: Uuid,
    /// The work.
    pub work: JobWork,
    /// Attempts that have begun.
    pub attempts: u32,
    /// Time of the next attempt.
    pub not_before: DateTime<Utc>,
    /// Time after which the job is given up.
    pub deadline: DateTime<Utc>,
    /// The error of the last attempt.
    pub last_error: Option<String>,
}

impl JobRecord {
    /// Returns a job whose first attempt is due now.
    pub(crate) fn new(work: JobWork, now: DateTime<Utc>) -> Self {
        Self {
            id: Uuid::new_v4(),
            work,
            attempts: 0,
            not_before: now,
            deadline: now + LIFETIME,
            last_error: None,
        }
    }

    /// Returns `true` if it is time for an attempt.
    pub(crate) fn is_due(&self, now: DateTime<Utc>) -> bool {
        self.not_before <= now
    }

    /// Returns `true` if all attempts have begun, or if the deadline is over.
    pub(crate) fn is_over(&self, now: DateTime<Utc>) -> bool {
        self.attempts >= MAX_ATTEMPTS || self.deadline <= now
    }

    /// Begins an attempt.
    pub(crate) fn begin(&mut self, now: DateTime<Utc>) {
        self.attempts = self.attempts.saturating_add(1);
        self.not_before = now + TIME_LIMIT;
    }

    /// Notes that the attempt failed. Returns `false` if it was the last one.
    pub(crate) fn fail(&mut self, error: String, now: DateTime<Utc>) -> bool {
        let doublings = self.attempts.saturating_sub(1).min(16);
        let pause = FIRST_PAUSE.saturating_mul(1 << doublings).min(MAX_PAUSE);
        self.not_before = now + pause;
        self.last_error = Some(error);
        self.attempts < MAX_ATTEMPTS && self.not_before < self.deadline
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

    fn job() -> JobRecord {
        JobRecord::new(JobWork::DeleteClusterFiles { cluster: ClusterId::fresh() }, Utc::now())
    }

    #[test]
    fn pauses_grow_until_the_job_is_given_up() {
        let (mut job, mut now) = (job(), Utc::now());
        let mut pauses = Vec::new();
        for attempt in 1..=MAX_ATTEMPTS {
            job.begin(now);
            assert!(!job.is_due(now) && job.is_due(now + TIME_LIMIT));
            let continues = job.fail("x".to_owned(), now);
            assert_eq!(continues, attempt < MAX_ATTEMPTS);
            pauses.push((job.not_before - now).num_seconds());
            now = job.not_before;
        }
        assert_eq!(pauses, [2, 4, 8, 16, 32, 64, 128, 256, 512, 900]);
    }

    #[test]
    fn job_is_given_up_after_its_deadline() {
        let mut job = job();
        let late = job.deadline;
        job.begin(late);
        assert!(!job.fail("x".to_owned(), late));
    }

    #[test]
    fn stored_form_is_stable() {
        let cluster: ClusterId = "0f2a5d3c-1111-4222-8333-444455556666".parse().unwrap();
        let text = serde_json::to_string(&JobWork::DeleteClusterFiles { cluster }).unwrap();
        assert_eq!(
            text,
            r#"{"kind":"delete-cluster-files","cluster":"0f2a5d3c-1111-4222-8333-444455556666"}"#
        );
    }
}
