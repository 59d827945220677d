//! The driver of the background tasks. It runs each task at its interval, when keys are marked, and again after a
//! failure.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::join_all;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::dirty::{DirtyKeys, TakenKeys, pause_after};
use super::leader::{Leader, Lease, RENEWAL_INTERVAL};
use super::task::{RunControl, Task, TaskRun};
use crate::service::{TaskState, TaskStates};
use crate::store::{FeedEvent, FeedReader};

/// Maximum time to wait for running tasks when the process ends. Tasks that still run after this time are aborted, as
/// if the process were killed.
const DRAIN_TIME: Duration = Duration::from_secs(5);
/// Maximum interval. A longer interval would exceed the range of the clock.
const MAX_INTERVAL: Duration = Duration::from_secs(365 * 24 * 60 * 60);

/// The driver, which runs tasks until the process ends.
pub(super) struct Driver {
    tasks: Vec<Arc<DrivenTask>>,
    leader: Arc<Leader>,
}

/// A task with its marked keys.
struct DrivenTask {
    task: Box<dyn Task>,
    dirty: DirtyKeys,
    state: Arc<TaskState>,
}

/// The time of the next full run, and the number of failed full runs in a row.
struct Schedule {
    next: Instant,
    failures: u32,
}

impl Driver {
    pub(super) fn new(tasks: Vec<Box<dyn Task>>, lease: Box<dyn Lease>, states: &TaskStates) -> Self {
        let tasks = tasks.into_iter().map(|task| {
            let state = states.register(task.name(), task.is_leader_only());
            Arc::new(DrivenTask { task, dirty: DirtyKeys::default(), state })
        });
        Self { tasks: tasks.collect(), leader: Arc::new(Leader::new(lease, states.clone())) }
    }

    /// Runs the tasks until `end` completes. Then starts no more runs, waits a limited time for running tasks, and
    /// releases the lease.
    pub(super) async fn run(&self, end: impl Future<Output = ()>) {
        let (stop, stopping) = watch::channel(false);
        let mut loops = JoinSet::new();
        for task in &self.tasks {
            loops.spawn(Arc::clone(task).repeat(Arc::clone(&self.leader), stopping.clone()));
        }
        let run = async {
            end.await;
            stop.send_replace(true);
            if tokio::time::timeout(DRAIN_TIME, self.drain(&mut loops)).await.is_err() {
                tracing::warn!("background tasks did not end in time and are aborted");
            }
        };
        tokio::select! {
            () = run => {}
            () = self.leader.keep() => {}
        }
        loops.shutdown().await;
        self.leader.release().await;
    }

    async fn drain(&self, loops: &mut JoinSet<()>) {
        while let Some(ended) = loops.join_next().await {
            if let Err(error) = ended {
                tracing::error!(%error, "the loop of a background task failed");
            }
        }
        join_all(self.tasks.iter().map(|task| task.task.drain())).await;
    }

    /// Marks the keys of changed records. Never returns.
    pub(super) async fn mark_changes(&self, mut changes: FeedReader) {
        while let Some(event) = changes.next().await {
            for task in &self.tasks {
                task.mark(event);
            }
        }
        std::future::pending().await
    }
}

impl DrivenTask {
    fn mark(&self, event: FeedEvent) {
        match event {
            FeedEvent::Changed(change) => {
                for key in self.task.keys_to_mark(&change) {
                    self.dirty.mark(key);
                }
            }
            FeedEvent::Resync if self.task.follows_changes() => self.dirty.mark_all(),
            FeedEvent::Resync => {}
        }
    }

    async fn repeat(self: Arc<Self>, leader: Arc<Leader>, mut stopping: watch::Receiver<bool>) {
        let mut schedule = Schedule { next: Instant::now() + self.task.first_pause(), failures: 0 };
        loop {
            tokio::select! {
                biased;
                // An error means that the driver was dropped.
                _ = stopping.wait_for(|is_stopping| *is_stopping) => return,
                () = self.wait_for_turn(&leader, schedule.next) => {}
            }
            self.run(&mut schedule, &leader, &stopping).await;
        }
    }

    /// Waits until a run is due, and until this replica may run the task.
    async fn wait_for_turn(&self, leader: &Leader, next: Instant) {
        tokio::time::sleep(self.task.min_pause()).await;
        self.dirty.wait_until_due(next).await;
        if !self.task.is_leader_only() {
            return;
        }
        loop {
            match leader.is_confirmed().await {
                Ok(true) => return,
                Ok(false) => leader.wait_until_leader().await,
                Err(_) => tokio::time::sleep(RENEWAL_INTERVAL).await,
            }
        }
    }

    async fn run(&self, schedule: &mut Schedule, leader: &Arc<Leader>, stopping: &watch::Receiver<bool>) {
        let (began, TakenKeys { all, keys }) = (Instant::now(), self.dirty.take());
        let interval = self.task.interval().min(MAX_INTERVAL);
        let leader = self.task.is_leader_only().then(|| Arc::clone(leader));
        let control = RunControl { state: Arc::clone(&self.state), leader, stopping: stopping.clone() };
        let is_full = all || began >= schedule.next;
        let run = TaskRun::new(is_full, keys.keys().copied().collect(), control);
        self.state.record_progress();
        let result = AssertUnwindSafe(self.task.run(&run)).catch_unwind().await;
        let result = match result {
            Ok(result) => result.map_err(|error| error.to_string()),
            Err(_) => Err("the task panicked".to_owned()),
        };
        let mut failures = run.into_failures();
        if let Err(error) = &result {
            failures.extend(keys.keys().map(|key| (*key, error.clone())));
        }
        for key in failures.keys() {
            let before = keys.get(key).copied().unwrap_or_default();
            self.dirty.requeue(*key, before.saturating_add(1), interval);
        }
        let error = result.as_ref().err().or_else(|| failures.values().next());
        self.log(error);
        self.state.record_end(began.elapsed(), error.map(String::as_str));
        schedule.update(began, is_full, &result, interval);
    }

    /// Logs the first failure in a series, and the end of the series.
    fn log(&self, error: Option<&String>) {
        let (task, was_failing) = (self.state.name(), self.state.last_error().is_some());
        match error {
            Some(error) if !was_failing => {
                tracing::warn!(task, %error, "a background task failed, will retry")
            }
            Some(error) => tracing::debug!(task, %error, "a background task failed again, will retry"),
            None if was_failing => tracing::info!(task, "a background task works again"),
            None => {}
        }
    }
}

impl Schedule {
    /// Sets the time of the next full run, based on the result of a run.
    fn update(
        &mut self,
        began: Instant,
        is_full: bool,
        result: &Result<Option<Duration>, String>,
        interval: Duration,
    ) {
        let now = Instant::now();
        match result {
            Ok(pause) => {
                if is_full {
                    (self.next, self.failures) = (began + interval, 0);
                }
                if let Some(pause) = pause {
                    self.next = self.next.min(now + *pause);
                }
            }
            Err(_) if is_full => {
                self.failures = self.failures.saturating_add(1);
                self.next = now + pause_after(self.failures, interval);
            }
            // The keys of the run have been marked again.
            Err(_) => {}
        }
    }
}

#[cfg(test)]
mod tests;
