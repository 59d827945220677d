//! The keys that a task must process again, because their records changed.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;

use crate::store::Key;

/// The pause after the first failure. It doubles with each further failure.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
/// Maximum number of marked keys. Above this number, all records count as changed.
const MAX_KEYS: usize = 4096;

/// Returns the pause after several failures in a row, at most `limit`.
pub(super) fn pause_after(failures: u32, limit: Duration) -> Duration {
    let doublings = failures.saturating_sub(1).min(16);
    FIRST_PAUSE.saturating_mul(1 << doublings).min(limit.max(FIRST_PAUSE))
}

/// The keys that one task must process again. A repeatedly marked key is in the set once.
#[derive(Debug, Default)]
pub(super) struct DirtyKeys {
    marks: Mutex<Marks>,
    marked: Notify,
}

#[derive(Debug, Default)]
struct Marks {
    /// Whether all records may have changed.
    all: bool,
    ready: BTreeSet<Key>,
    /// Keys that wait after a failure. A mark does not shorten their pause.
    delayed: BTreeMap<Key, Delay>,
}

#[derive(Clone, Copy, Debug)]
struct Delay {
    until: Instant,
    failures: u32,
}

/// The marks that one run takes from the set.
#[derive(Debug, Default)]
pub(super) struct TakenKeys {
    /// Whether all records may have changed.
    pub(super) all: bool,
    /// The keys, each with its number of failures in a row.
    pub(super) keys: BTreeMap<Key, u32>,
}

impl DirtyKeys {
    fn marks(&self) -> MutexGuard<'_, Marks> {
        // A panic during a change can only leave a key marked, so the marks of a poisoned lock are usable.
        self.marks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn mark(&self, key: Key) {
        let mut marks = self.marks();
        if marks.all || marks.delayed.contains_key(&key) {
            return;
        }
        marks.ready.insert(key);
        if marks.ready.len() > MAX_KEYS {
            marks.ready.clear();
            marks.all = true;
        }
        self.marked.notify_one();
    }

    /// Marks all keys, because any record may have changed.
    pub(super) fn mark_all(&self) {
        let mut marks = self.marks();
        marks.ready.clear();
        marks.all = true;
        self.marked.notify_one();
    }

    /// Marks a key again after its failure, with a pause that grows with `failures` up to `max_pause`.
    pub(super) fn requeue(&self, key: Key, failures: u32, max_pause: Duration) {
        let mut marks = self.marks();
        let until = Instant::now() + pause_after(failures, max_pause);
        marks.ready.remove(&key);
        marks.delayed.insert(key, Delay { until, failures });
    }

    /// Takes all marks that are due.
    pub(super) fn take(&self) -> TakenKeys {
        let (mut marks, now) = (self.marks(), Instant::now());
        let mut keys: BTreeMap<_, _> =
            std::mem::take(&mut marks.ready).into_iter().map(|key| (key, 0)).collect();
        marks.delayed.retain(|key, delay| {
            let is_due = delay.until <= now;
            if is_due {
                keys.insert(*key, delay.failures);
            }
            !is_due
        });
        TakenKeys { all: std::mem::take(&mut marks.all), keys }
    }

    /// Returns the due time of the earliest mark. The time may be in the past.
    fn due_at(&self) -> Option<Instant> {
        let marks = self.marks();
        if marks.all || !marks.ready.is_empty() {
            return Some(Instant::now());
        }
        marks.delayed.values().map(|delay| delay.until).min()
    }

    /// Waits until a mark is due, or until `deadline`. Cancel safe.
    pub(super) async fn wait_until_due(&self, deadline: Instant) {
        loop {
            let due_at = self.due_at().map_or(deadline, |due_at| due_at.min(deadline));
            if due_at <= Instant::now() {
                return;
            }
            tokio::select! {
                () = tokio::time::sleep_until(due_at) => {}
                () = self.marked.notified() => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;
    use crate::store::Kind;

    fn key() -> Key {
        Key { kind: Kind::Cluster, parent: None, id: Uuid::new_v4() }
    }

    #[test]
    fn pauses_grow_up_to_the_limit() {
        let pauses = |limit| {
            [1, 2, 3, 4, 40].map(|failures| pause_after(failures, Duration::from_secs(limit)).as_secs())
        };
        assert_eq!(pauses(60), [1, 2, 4, 8, 60]);
        assert_eq!(pauses(0), [1; 5], "the first pause is the shortest limit");
    }

    #[tokio::test(start_paused = true)]
    async fn key_is_taken_once_and_failed_keys_wait() {
        let (dirty, one, other) = (DirtyKeys::default(), key(), key());
        for _ in 0..1000 {
            dirty.mark(one);
        }
        assert_eq!(dirty.take().keys, BTreeMap::from([(one, 0)]));
        assert_eq!(dirty.take().keys, BTreeMap::new());
        dirty.requeue(one, 3, Duration::from_secs(60));
        dirty.mark(one);
        dirty.mark(other);
        assert_eq!(dirty.take().keys, BTreeMap::from([(other, 0)]), "the other key does not wait");
        let began = Instant::now();
        dirty.wait_until_due(began + Duration::from_secs(60)).await;
        assert_eq!(began.elapsed().as_secs(), 4);
        assert_eq!(dirty.take().keys, BTreeMap::from([(one, 3)]));
    }

    #[test]
    fn too_many_keys_mark_all_records() {
        let dirty = DirtyKeys::default();
        for _ in 0..=MAX_KEYS {
            dirty.mark(key());
        }
        let marks = dirty.take();
        assert!(marks.all && marks.keys.is_empty());
        assert!(!dirty.take().all);
    }
}
