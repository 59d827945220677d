//! The state of the background tasks in this process, for `/health` and the metrics. The driver of the tasks updates
//! it.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde::Serialize;
use tokio::sync::watch;
use tokio::time::Instant;
use utoipa::ToSchema;

use crate::store::DurationHistogram;

/// The health of the tasks that monitor hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = monitor_health)]
#[serde(rename_all = "snake_case")]
pub enum MonitorHealth {
    /// This process monitors the hosts.
    Active,
    /// Another replica monitors the hosts.
    Standby,
    /// The monitoring has made no progress for too long.
    Stuck,
}

/// The state of the background tasks in this process. Clones share the same state.
#[derive(Clone, Debug, Default)]
pub struct TaskStates(Arc<States>);

#[derive(Debug, Default)]
struct States {
    /// `None` before the driver of the tasks starts.
    leadership: Mutex<Option<LeaderContact>>,
    /// The instant until which this process certainly holds the leader's lease.
    lease_end: watch::Sender<Option<Instant>>,
    tasks: Mutex<BTreeMap<&'static str, Arc<TaskState>>>,
    disconnected: AtomicU64,
    assessed_clusters: AtomicU64,
    written_results: AtomicU64,
}

#[derive(Clone, Copy, Debug)]
struct LeaderContact {
    is_leader: bool,
    /// Time of the latest response from the database.
    confirmed_at: Instant,
    failed_at: Option<Instant>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // A panic leaves no value half-changed, because values are replaced as a whole.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl TaskStates {
    /// Returns the health of the leader's tasks. They are stuck if the latest contact with the database or the latest
    /// progress of a task was longer ago than `timeout`. Returns `None` if this process runs no tasks.
    #[must_use]
    pub fn monitor_health(&self, timeout: Duration) -> Option<MonitorHealth> {
        let leadership = (*lock(&self.0.leadership))?;
        if leadership.confirmed_at.elapsed() > timeout || self.is_leader_stalled(timeout) {
            return Some(MonitorHealth::Stuck);
        }
        Some(if leadership.is_leader { MonitorHealth::Active } else { MonitorHealth::Standby })
    }

    /// Returns `true` if this process is the leader according to the latest response from the database.
    #[must_use]
    pub fn is_leader(&self) -> bool {
        lock(&self.0.leadership).is_some_and(|leadership| leadership.is_leader)
    }

    /// Returns the states of all tasks that run in this process, sorted by name.
    #[must_use]
    pub fn all(&self) -> Vec<Arc<TaskState>> {
        lock(&self.0.tasks).values().cloned().collect()
    }

    /// Returns the state of the named task. Returns `None` if this process does not run it.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<Arc<TaskState>> {
        lock(&self.0.tasks).get(name).cloned()
    }

    /// Returns the number of hosts that this process has marked as disconnected because they were silent.
    #[must_use]
    pub fn disconnected_hosts(&self) -> u64 {
        self.0.disconnected.load(Ordering::Relaxed)
    }

    /// Returns the number of cluster assessments that this process has completed.
    #[must_use]
    pub fn assessed_clusters(&self) -> u64 {
        self.0.assessed_clusters.load(Ordering::Relaxed)
    }

    /// Returns the number of hosts whose validation results this process has written during assessments.
    #[must_use]
    pub fn written_results(&self) -> u64 {
        self.0.written_results.load(Ordering::Relaxed)
    }

    /// Returns the state of a task, and creates it if necessary.
    pub(crate) fn register(&self, name: &'static str, is_leader_only: bool) -> Arc<TaskState> {
        let mut tasks = lock(&self.0.tasks);
        let task = tasks.entry(name).or_insert_with(|| Arc::new(TaskState::new(name, is_leader_only)));
        // The progress is cleared, because an aborted driver does not record the end of a run.
        *lock(&task.progress_at) = None;
        Arc::clone(task)
    }

    /// Records a response from the database about who is the leader.
    pub(crate) fn confirm_leadership(&self, is_leader: bool) {
        let mut leadership = lock(&self.0.leadership);
        let failed_at = leadership.and_then(|leadership| leadership.failed_at);
        *leadership = Some(LeaderContact { is_leader, confirmed_at: Instant::now(), failed_at });
    }

    /// Records the instant until which this process certainly holds the lease. `None` if it does not hold the lease, or
    /// is about to release it.
    pub(crate) fn set_lease_end(&self, end: Option<Instant>) {
        self.0.lease_end.send_replace(end);
    }

    /// Returns a receiver of the instants passed to [`set_lease_end`](Self::set_lease_end).
    pub(crate) fn subscribe_to_lease(&self) -> watch::Receiver<Option<Instant>> {
        self.0.lease_end.subscribe()
    }

    /// Records that the database did not report who is the leader.
    pub(crate) fn fail_leadership(&self) {
        if let Some(leadership) = &mut *lock(&self.0.leadership) {
            leadership.failed_at = Some(Instant::now());
        }
    }

    /// Returns the time of the latest failed query for the leader.
    pub(crate) fn leadership_failed_at(&self) -> Option<Instant> {
        lock(&self.0.leadership).and_then(|leadership| leadership.failed_at)
    }

    /// Returns `true` if a run of a leader task has made no progress for `time`.
    pub(crate) fn is_leader_stalled(&self, time: Duration) -> bool {
        lock(&self.0.tasks).values().any(|task| task.is_leader_only && task.is_stalled(time))
    }

    /// Counts an assessment that has written the results of this number of hosts.
    pub(crate) fn add_assessment(&self, hosts: usize) {
        self.0.assessed_clusters.fetch_add(1, Ordering::Relaxed);
        self.0.written_results.fetch_add(u64::try_from(hosts).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    pub(crate) fn add_disconnected_hosts(&self, hosts: usize) {
        // The conversion never saturates for a real number of hosts.
        self.0.disconnected.fetch_add(u64::try_from(hosts).unwrap_or(u64::MAX), Ordering::Relaxed);
    }
}

/// The state of one background task in this process.
#[derive(Debug)]
pub struct TaskState {
    name: &'static str,
    is_leader_only: bool,
    durations: DurationHistogram,
    failures: AtomicU64,
    last_error: Mutex<Option<String>>,
    /// Time of the latest progress in the current run. `None` between runs.
    progress_at: Mutex<Option<Instant>>,
}

impl TaskState {
    fn new(name: &'static str, is_leader_only: bool) -> Self {
        Self {
            name,
            is_leader_only,
            durations: DurationHistogram::default(),
            failures: AtomicU64::new(0),
            last_error: Mutex::default(),
            progress_at: Mutex::default(),
        }
    }

    /// Returns the name of the task, as it appears in metrics.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Returns the durations of successful runs.
    #[must_use]
    pub fn durations(&self) -> &DurationHistogram {
        &self.durations
    }

    /// Returns the number of failed runs.
    #[must_use]
    pub fn failures(&self) -> u64 {
        self.failures.load(Ordering::Relaxed)
    }

    /// Returns the error of the latest run. Returns `None` if that run was successful.
    #[must_use]
    pub fn last_error(&self) -> Option<String> {
        lock(&self.last_error).clone()
    }

    fn is_stalled(&self, time: Duration) -> bool {
        lock(&self.progress_at).is_some_and(|progress_at| progress_at.elapsed() > time)
    }

    /// Records the start or the progress of a run.
    pub(crate) fn record_progress(&self) {
        *lock(&self.progress_at) = Some(Instant::now());
    }

    /// Records the end of a run.
    pub(crate) fn record_end(&self, duration: Duration, error: Option<&str>) {
        *lock(&self.progress_at) = None;
        *lock(&self.last_error) = error.map(str::to_owned);
        match error {
            None => self.durations.record(duration),
            Some(_) => {
                self.failures.fetch_add(1, Ordering::Relaxed);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIMEOUT: Duration = Duration::from_secs(60);

    #[tokio::test(start_paused = true)]
    async fn monitor_without_contact_is_stuck() {
        let states = TaskStates::default();
        assert_eq!(states.monitor_health(Duration::ZERO), None);
        states.confirm_leadership(false);
        assert_eq!(states.monitor_health(TIMEOUT), Some(MonitorHealth::Standby));
        tokio::time::advance(TIMEOUT * 2).await;
        assert_eq!(states.monitor_health(TIMEOUT), Some(MonitorHealth::Stuck));
        states.confirm_leadership(true);
        assert_eq!(states.monitor_health(TIMEOUT), Some(MonitorHealth::Active));
    }

    #[tokio::test(start_paused = true)]
    async fn monitor_whose_run_makes_no_progress_is_stuck() {
        let states = TaskStates::default();
        states.confirm_leadership(true);
        let (of_leader, of_all) = (states.register("leader", true), states.register("all", false));
        of_leader.record_progress();
        of_all.record_progress();
        tokio::time::advance(TIMEOUT * 2).await;
        states.confirm_leadership(true);
        assert_eq!(states.monitor_health(TIMEOUT), Some(MonitorHealth::Stuck));
        of_leader.record_progress();
        assert_eq!(states.monitor_health(TIMEOUT), Some(MonitorHealth::Active));
        tokio::time::advance(TIMEOUT * 2).await;
        states.confirm_leadership(true);
        of_leader.record_end(TIMEOUT, Some("failed on purpose"));
        assert_eq!(states.monitor_health(TIMEOUT), Some(MonitorHealth::Active));
        assert_eq!((of_leader.failures(), of_leader.durations().count()), (1, 0));
        assert_eq!(of_leader.last_error().as_deref(), Some("failed on purpose"));
    }
}
