//! A check whose result concurrent and later requests share.
//!
//! Supervisors request the health every few seconds, and any client may do so, too. The result of a check is reused for
//! a moment, so that the cost does not depend on the number of requests.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::watch;
use tokio::time::timeout;

/// Maximum time for a request to wait for a check.
const PATIENCE: Duration = Duration::from_secs(2);

/// A check that requests share. Clones share its result.
#[derive(Clone, Debug)]
pub(super) struct SharedCheck<C> {
    /// How long a result is reused, counted from the start of the check.
    fresh: Duration,
    last: Arc<Mutex<Option<CheckRun<C>>>>,
}

/// A check in progress, or its result.
#[derive(Clone, Debug)]
struct CheckRun<C> {
    start: Instant,
    /// `None` until the check has finished.
    result: watch::Receiver<Option<C>>,
}

impl<C: Copy> CheckRun<C> {
    fn condition(&self) -> Option<C> {
        *self.result.borrow()
    }

    fn is_running(&self) -> bool {
        // If the task of a check panicked, its sender was dropped.
        self.condition().is_none() && self.result.has_changed().is_ok()
    }

    fn is_fresh(&self, fresh: Duration) -> bool {
        self.condition().is_some() && self.start.elapsed() < fresh
    }
}

impl<C: Copy + Send + Sync + 'static> SharedCheck<C> {
    pub(super) fn new(fresh: Duration) -> Self {
        Self { fresh, last: Arc::default() }
    }

    /// Returns the result of the current or a recent check. Otherwise, starts `check` and passes it the previous
    /// result. Returns `None` if the check takes too long. The check then continues for later requests.
    pub(super) async fn result<F>(&self, check: impl FnOnce(Option<C>) -> F) -> Option<C>
    where
        F: Future<Output = C> + Send + 'static,
    {
        let mut result = self.current_run(check).result;
        let done = timeout(PATIENCE, result.wait_for(Option::is_some)).await;
        // There is no result if the check panicked.
        done.ok()?.ok().and_then(|condition| *condition)
    }

    fn current_run<F>(&self, check: impl FnOnce(Option<C>) -> F) -> CheckRun<C>
    where
        F: Future<Output = C> + Send + 'static,
    {
        // A panic leaves the state valid, because it changes only by assignment.
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(run) = last.as_ref().filter(|run| run.is_running() || run.is_fresh(self.fresh)) {
            return run.clone();
        }
        let work = check(last.as_ref().and_then(CheckRun::condition));
        let (done, result) = watch::channel(None);
        let run = CheckRun { start: Instant::now(), result };
        *last = Some(run.clone());
        tokio::spawn(async move {
            done.send_replace(Some(work.await));
        });
        run
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    #[tokio::test]
    async fn concurrent_requests_start_one_check() {
        let check = SharedCheck::new(Duration::from_secs(3600));
        let (count, gate) = (Arc::new(AtomicU32::new(0)), Arc::new(tokio::sync::Semaphore::new(0)));
        let begin = |previous: Option<u32>| {
            let (count, gate) = (Arc::clone(&count), Arc::clone(&gate));
            async move {
                gate.acquire().await.unwrap().forget();
                assert_eq!(previous, None);
                count.fetch_add(1, Ordering::Relaxed) + 7
            }
        };
        let requests = futures_util::future::join_all((0..20).map(|_| check.result(begin)));
        let (results, ()) = tokio::join!(requests, async { gate.add_permits(1) });
        assert_eq!(results, [Some(7); 20]);
        assert_eq!(check.result(begin).await, Some(7));
        assert_eq!(count.load(Ordering::Relaxed), 1);
    }

    #[tokio::test]
    async fn old_result_is_replaced_and_passed_to_the_next_check() {
        let check = SharedCheck::new(Duration::ZERO);
        assert_eq!(check.result(|_| async { 1 }).await, Some(1));
        let next = |previous| async move { if previous == Some(1) { 2 } else { 0 } };
        assert_eq!(check.result(next).await, Some(2));
    }
}
