//! The queue of objects that a controller must reconcile.
//!
//! An object is in the queue at most once, and no two workers reconcile it at the same time. After a failure, the
//! object is delayed; the delay grows with each failure.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;

/// Delay after the first failure.
const FIRST_BACK_OFF: Duration = Duration::from_millis(500);
/// Maximum delay after repeated failures.
const MAX_BACK_OFF: Duration = Duration::from_secs(60);
/// Duration without changes that ends a burst. The objects of the burst are then reconciled.
const BURST_PAUSE: Duration = Duration::from_millis(300);
/// Maximum delay of an object during a burst without pauses.
const MAX_BURST: Duration = Duration::from_secs(3);

/// The next step for an object after an attempt to reconcile it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// Wait for the next change of the object.
    Wait,
    /// Try again after this duration.
    After(Duration),
    /// The attempt failed. Try again after a delay that grows with each failure.
    BackOff,
}

/// A queue of objects. Clones share the queue.
#[derive(Debug)]
pub(crate) struct Queue<K>(Arc<QueueParts<K>>);

#[derive(Debug)]
struct QueueParts<K> {
    state: Mutex<State<K>>,
    changed: Notify,
}

#[derive(Debug)]
struct State<K> {
    /// The waiting objects, sorted by due time. The number keeps the order of objects with the same due time.
    due: BTreeSet<(Instant, u64, K)>,
    waiting: HashMap<K, Waiting>,
    running: HashSet<K>,
    failures: HashMap<K, u32>,
    sequence: u64,
}

#[derive(Clone, Copy, Debug)]
struct Waiting {
    due: Instant,
    sequence: u64,
    /// The latest time to which a burst can postpone `due`. `None` if the object is not part of a burst.
    end_of_burst: Option<Instant>,
}

impl<K> Clone for Queue<K> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<K: Clone + Ord + Hash> Default for Queue<K> {
    fn default() -> Self {
        Self::new()
    }
}

impl<K: Clone + Ord + Hash> Queue<K> {
    #[must_use]
    pub(crate) fn new() -> Self {
        let state = State {
            due: BTreeSet::new(),
            waiting: HashMap::new(),
            running: HashSet::new(),
            failures: HashMap::new(),
            sequence: 0,
        };
        Self(Arc::new(QueueParts { state: Mutex::new(state), changed: Notify::new() }))
    }

    /// Adds an object that is due immediately, even if a failure has delayed it.
    pub(crate) fn push(&self, key: K) {
        self.push_after(key, Duration::ZERO);
    }

    /// Adds an object that is due after `delay`, unless it is already due earlier.
    pub(crate) fn push_after(&self, key: K, delay: Duration) {
        let due = Instant::now() + delay;
        let mut state = self.state();
        if state.waiting.get(&key).is_some_and(|waiting| waiting.due <= due) {
            return;
        }
        state.remove(&key);
        state.insert(key, due, None);
        drop(state);
        self.0.changed.notify_one();
    }

    /// Adds an object that changes in a burst. It is due when the burst pauses, or after the maximum delay.
    pub(crate) fn push_in_burst(&self, key: K) {
        let now = Instant::now();
        let mut state = self.state();
        let latest = match state.waiting.get(&key) {
            Some(Waiting { end_of_burst: Some(latest), .. }) => *latest,
            Some(waiting) => (now + MAX_BURST).min(waiting.due),
            None => now + MAX_BURST,
        };
        state.remove(&key);
        state.insert(key, (now + BURST_PAUSE).min(latest), Some(latest));
        drop(state);
        self.0.changed.notify_one();
    }

    /// Waits for a due object. The caller must call [`finish`](Self::finish) after it has reconciled the object.
    pub(crate) async fn next(&self) -> K {
        loop {
            let changed = self.0.changed.notified();
            let next_due = {
                let mut state = self.state();
                if let Some(key) = state.take_due(Instant::now()) {
                    // Another worker may be waiting for the next object.
                    self.0.changed.notify_one();
                    return key;
                }
                state.next_due()
            };
            match next_due {
                Some(due) => {
                    let _ = tokio::time::timeout_at(due, changed).await;
                }
                None => changed.await,
            }
        }
    }

    /// Records the end of an attempt, and queues the object again if necessary.
    pub(crate) fn finish(&self, key: K, next: Next) {
        let mut state = self.state();
        state.running.remove(&key);
        let delay = match next {
            Next::Wait => None,
            Next::After(delay) => Some(delay),
            Next::BackOff => {
                let failures = state.failures.entry(key.clone()).or_default();
                *failures = failures.saturating_add(1);
                Some(back_off(*failures))
            }
        };
        if next != Next::BackOff {
            state.failures.remove(&key);
        }
        drop(state);
        if let Some(delay) = delay {
            self.push_after(key, delay);
        }
        self.0.changed.notify_one();
    }

    /// Records that an attempt was aborted. The object is not queued again, but can be reconciled later.
    pub(crate) fn abandon(&self, key: &K) {
        self.state().running.remove(key);
        self.0.changed.notify_one();
    }

    /// Removes all waiting objects. Running attempts continue.
    pub(crate) fn clear(&self) {
        let mut state = self.state();
        state.due.clear();
        state.waiting.clear();
        state.failures.clear();
    }

    /// Returns the number of objects that are due or are being reconciled.
    #[must_use]
    pub(crate) fn depth(&self) -> usize {
        let (state, now) = (self.state(), Instant::now());
        state.due.iter().take_while(|(due, ..)| *due <= now).count() + state.running.len()
    }

    /// Returns the number of objects whose last attempt failed.
    #[must_use]
    pub(crate) fn failing(&self) -> usize {
        self.state().failures.len()
    }

    fn state(&self) -> MutexGuard<'_, State<K>> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<K: Clone + Ord + Hash> State<K> {
    fn insert(&mut self, key: K, due: Instant, end_of_burst: Option<Instant>) {
        self.sequence += 1;
        let sequence = self.sequence;
        self.waiting.insert(key.clone(), Waiting { due, sequence, end_of_burst });
        self.due.insert((due, sequence, key));
    }

    fn remove(&mut self, key: &K) {
        if let Some(waiting) = self.waiting.remove(key) {
            self.due.remove(&(waiting.due, waiting.sequence, key.clone()));
        }
    }

    /// Removes and returns the first due object that is not being reconciled.
    fn take_due(&mut self, now: Instant) -> Option<K> {
        let is_free = |(due, _, key): &&(Instant, u64, K)| *due <= now && !self.running.contains(key);
        let key = self.due.iter().take_while(|(due, ..)| *due <= now).find(is_free)?.2.clone();
        self.remove(&key);
        self.running.insert(key.clone());
        Some(key)
    }

    /// Returns the next due time of an object that is not being reconciled.
    fn next_due(&self) -> Option<Instant> {
        self.due.iter().find(|(_, _, key)| !self.running.contains(key)).map(|(due, ..)| *due)
    }
}

fn back_off(failures: u32) -> Duration {
    let factor = 2_u32.saturating_pow(failures.saturating_sub(1));
    FIRST_BACK_OFF.saturating_mul(factor).min(MAX_BACK_OFF)
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    fn next_now(queue: &Queue<&'static str>) -> Option<&'static str> {
        queue.next().now_or_never()
    }

    #[tokio::test(start_paused = true)]
    async fn object_is_in_the_queue_once() {
        let queue = Queue::new();
        queue.push("a");
        queue.push("b");
        queue.push("a");
        assert_eq!([next_now(&queue), next_now(&queue), next_now(&queue)], [Some("a"), Some("b"), None]);
    }

    #[tokio::test(start_paused = true)]
    async fn object_changed_during_reconciliation_is_reconciled_again() {
        let queue = Queue::new();
        queue.push("a");
        assert_eq!(next_now(&queue), Some("a"));
        queue.push("a");
        queue.push("a");
        assert_eq!(next_now(&queue), None);
        queue.finish("a", Next::Wait);
        assert_eq!(next_now(&queue), Some("a"));
        queue.finish("a", Next::Wait);
        assert_eq!(next_now(&queue), None);
    }

    #[tokio::test(start_paused = true)]
    async fn delay_grows_with_each_failure() {
        let queue = Queue::new();
        queue.push("a");
        let mut delays = Vec::new();
        for _ in 0..9 {
            let before = Instant::now();
            let key = queue.next().await;
            delays.push((Instant::now() - before).as_millis());
            queue.finish(key, Next::BackOff);
        }
        let expected = [0, 500, 1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 60_000];
        // The timer of the runtime has a resolution of one millisecond.
        assert!(
            delays.iter().zip(expected).all(|(delay, expected)| delay.abs_diff(expected) <= 1),
            "{delays:?}"
        );
        assert_eq!(queue.failing(), 1);
        queue.push("a");
        assert_eq!(next_now(&queue), Some("a"));
        queue.finish("a", Next::Wait);
        assert_eq!(queue.failing(), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn burst_is_reconciled_once_when_it_pauses() {
        let queue = Queue::new();
        for _ in 0..5 {
            queue.push_in_burst("a");
            tokio::time::advance(BURST_PAUSE / 2).await;
            assert_eq!(next_now(&queue), None);
        }
        assert_eq!(queue.next().await, "a");
        queue.finish("a", Next::Wait);
        assert_eq!(next_now(&queue), None);
    }

    #[tokio::test(start_paused = true)]
    async fn burst_without_a_pause_has_a_maximum_delay() {
        let queue = Queue::new();
        let begin = Instant::now();
        while next_now(&queue).is_none() {
            queue.push_in_burst("a");
            tokio::time::advance(BURST_PAUSE / 3).await;
            assert!(begin.elapsed() <= MAX_BURST + BURST_PAUSE);
        }
        assert!(begin.elapsed() >= MAX_BURST);
    }

    #[tokio::test(start_paused = true)]
    async fn change_outside_of_a_burst_is_not_delayed_by_it() {
        let queue = Queue::new();
        queue.push_in_burst("a");
        queue.push("a");
        queue.push_in_burst("a");
        assert_eq!(next_now(&queue), Some("a"));
    }

    #[tokio::test(start_paused = true)]
    async fn burst_brings_a_delayed_attempt_forward() {
        let queue = Queue::new();
        queue.push_after("a", MAX_BACK_OFF);
        queue.push_in_burst("a");
        let begin = Instant::now();
        assert_eq!(queue.next().await, "a");
        assert!(begin.elapsed() < MAX_BURST);
    }

    #[tokio::test(start_paused = true)]
    async fn object_with_aborted_attempt_is_reconciled_again() {
        let queue = Queue::new();
        queue.push("a");
        assert_eq!(next_now(&queue), Some("a"));
        queue.clear();
        queue.push("a");
        assert_eq!(next_now(&queue), None);
        queue.abandon(&"a");
        assert_eq!(next_now(&queue), Some("a"));
    }

    async fn work(queue: Queue<u32>, done: Arc<Mutex<Vec<u32>>>) {
        loop {
            let key = queue.next().await;
            tokio::task::yield_now().await;
            done.lock().unwrap().push(key);
            queue.finish(key, Next::Wait);
        }
    }

    #[tokio::test]
    async fn all_objects_are_reconciled_by_several_workers() {
        let queue = Queue::new();
        let done = Arc::new(Mutex::new(Vec::new()));
        let workers: Vec<_> = (0..4).map(|_| tokio::spawn(work(queue.clone(), Arc::clone(&done)))).collect();
        for key in 0..1_000 {
            queue.push(key);
        }
        while done.lock().unwrap().len() < 1_000 {
            tokio::task::yield_now().await;
        }
        workers.iter().for_each(tokio::task::JoinHandle::abort);
        let mut keys = done.lock().unwrap().clone();
        keys.sort_unstable();
        assert_eq!(keys, (0..1_000).collect::<Vec<_>>());
    }
}
