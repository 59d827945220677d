//! The interface of a background task, and the state of one run.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::watch;

use super::leader::Leader;
use crate::error::Error;
use crate::service::TaskState;
use crate::store::{Key, RecordChange};

/// Work that runs at intervals and after changes to records. Runs of one task never overlap in one process.
#[async_trait]
pub(super) trait Task: Send + Sync {
    /// Returns the name, for logs and metrics.
    fn name(&self) -> &'static str;

    /// Returns the time from the start of a full run to the start of the next one. A failed run is repeated after this
    /// time at the latest.
    fn interval(&self) -> Duration;

    /// Returns the time from the start of the process to the first run.
    fn first_pause(&self) -> Duration {
        Duration::ZERO
    }

    /// Returns the minimum pause between two runs. Several changes during the pause cause only one run.
    fn min_pause(&self) -> Duration {
        Duration::from_millis(50)
    }

    /// Returns `true` if only the leader runs this task.
    fn is_leader_only(&self) -> bool;

    /// Returns `true` if changes to records may mark keys of this task.
    fn follows_changes(&self) -> bool {
        false
    }

    /// Returns the keys to mark after a change to a record, or no keys if the change does not concern this task.
    fn keys_to_mark(&self, _change: &RecordChange) -> Vec<Key> {
        Vec::new()
    }

    /// Runs the task once. Returns the time until the next run, if that run must start before the interval ends.
    async fn run(&self, run: &TaskRun) -> Result<Option<Duration>, Error>;

    /// Waits for work that continues after the last run.
    async fn drain(&self) {}
}

#[derive(Debug, Default)]
pub(super) struct TaskRun {
    /// Whether the run must process all records, not only the marked ones.
    pub(super) is_full: bool,
    pub(super) keys: BTreeSet<Key>,
    failures: Mutex<BTreeMap<Key, String>>,
    /// `None` if a caller runs the task outside the driver.
    driver: Option<RunControl>,
}

/// The conditions that end a run early.
#[derive(Debug)]
pub(super) struct RunControl {
    pub(super) state: Arc<TaskState>,
    /// The leader, if only the leader runs the task.
    pub(super) leader: Option<Arc<Leader>>,
    pub(super) stopping: watch::Receiver<bool>,
}

impl TaskRun {
    /// Creates a run for a driver.
    pub(super) fn new(is_full: bool, keys: BTreeSet<Key>, driver: RunControl) -> Self {
        Self { is_full, keys, failures: Mutex::default(), driver: Some(driver) }
    }

    /// Creates a full run outside the driver, whether or not this process is the leader.
    pub(super) fn without_driver() -> Self {
        Self { is_full: true, ..Self::default() }
    }

    /// Records progress. Returns `false` if the run must stop because the process ends or another replica is the
    /// leader.
    ///
    /// # Errors
    ///
    /// Returns an error if the database fails.
    pub(super) async fn may_continue(&self) -> Result<bool, Error> {
        let Some(driver) = &self.driver else { return Ok(true) };
        driver.state.record_progress();
        if *driver.stopping.borrow() {
            return Ok(false);
        }
        match &driver.leader {
            Some(leader) => leader.is_confirmed().await,
            None => Ok(true),
        }
    }

    /// Records the failure of a marked key, so that only this key is retried after a pause.
    pub(super) fn fail_key(&self, key: Key, error: &Error) {
        self.failures.lock().unwrap_or_else(PoisonError::into_inner).insert(key, error.to_string());
    }

    pub(super) fn into_failures(self) -> BTreeMap<Key, String> {
        self.failures.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}
