//! Measurements of the store, which the HTTP layer exports as metrics.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use super::Outcome;

/// An operation of the store whose duration is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Reads of records, reports and events, searches, and renewals of leases.
    Read,
    /// Commits of changes, including the time that they wait for other changes.
    Commit,
    /// Locks that a change takes on its records after repeated conflicts.
    Reserve,
    /// Commits of check-ins, each for many hosts.
    CheckIns,
}

impl Operation {
    /// All operations, in the order of their declaration.
    pub const ALL: [Self; 4] = [Self::Read, Self::Commit, Self::Reserve, Self::CheckIns];

    /// Returns the operation's value for a metric label, such as `commit`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Commit => "commit",
            Self::Reserve => "reserve",
            Self::CheckIns => "check_ins",
        }
    }
}

/// A histogram of durations, safe for concurrent use.
#[derive(Debug, Default)]
pub struct DurationHistogram {
    /// The number of durations in each bucket: one bucket for each upper bound, and a last bucket for longer durations.
    buckets: [AtomicU64; Self::BOUNDS_MICROS.len() + 1],
    micros: AtomicU64,
}

impl DurationHistogram {
    /// Upper bounds of the buckets in microseconds. A last bucket without a bound follows.
    pub const BOUNDS_MICROS: [u64; 8] = [100, 500, 2_000, 10_000, 50_000, 250_000, 1_000_000, 10_000_000];

    /// Adds a duration to its bucket.
    pub fn record(&self, duration: Duration) {
        // If the conversion saturates, the duration is in the last bucket.
        let micros = u64::try_from(duration.as_micros()).unwrap_or(u64::MAX);
        let bucket = Self::BOUNDS_MICROS.iter().position(|bound| micros <= *bound);
        let bucket = bucket.unwrap_or(Self::BOUNDS_MICROS.len());
        if let Some(bucket) = self.buckets.get(bucket) {
            bucket.fetch_add(1, Ordering::Relaxed);
        }
        self.micros.fetch_add(micros, Ordering::Relaxed);
    }

    /// Returns the number of durations in each bucket. The numbers are not cumulative. The last bucket has no upper
    /// bound.
    #[must_use]
    pub fn buckets(&self) -> [u64; Self::BOUNDS_MICROS.len() + 1] {
        std::array::from_fn(|index| self.buckets.get(index).map_or(0, |count| count.load(Ordering::Relaxed)))
    }

    /// Returns the total number of durations.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.buckets().iter().sum()
    }

    /// Returns the sum of all durations.
    #[must_use]
    pub fn sum(&self) -> Duration {
        Duration::from_micros(self.micros.load(Ordering::Relaxed))
    }
}

/// Measurements of one store since it was opened.
#[derive(Debug, Default)]
pub struct StoreMetrics {
    read: DurationHistogram,
    commit: DurationHistogram,
    reserve: DurationHistogram,
    store_check_ins: DurationHistogram,
    failures: [AtomicU64; Operation::ALL.len()],
    conflicts: AtomicU64,
    retries: AtomicU64,
    check_ins: AtomicU64,
    stored_check_ins: AtomicU64,
}

impl StoreMetrics {
    /// Returns the durations of an operation, including failed calls.
    #[must_use]
    pub fn durations(&self, operation: Operation) -> &DurationHistogram {
        match operation {
            Operation::Read => &self.read,
            Operation::Commit => &self.commit,
            Operation::Reserve => &self.reserve,
            Operation::CheckIns => &self.store_check_ins,
        }
    }

    /// Returns the number of failed calls of an operation. Conflicts are not failures.
    #[must_use]
    pub fn failures(&self, operation: Operation) -> u64 {
        self.failures_of(operation).map_or(0, |count| count.load(Ordering::Relaxed))
    }

    /// Returns the number of commits that wrote nothing because they conflicted with another change.
    #[must_use]
    pub fn conflicts(&self) -> u64 {
        self.conflicts.load(Ordering::Relaxed)
    }

    fn failures_of(&self, operation: Operation) -> Option<&AtomicU64> {
        let mut all = Operation::ALL.iter().zip(&self.failures);
        all.find_map(|(one, count)| (*one == operation).then_some(count))
    }

    /// Returns the number of times that a change was planned again.
    #[must_use]
    pub fn retries(&self) -> u64 {
        self.retries.load(Ordering::Relaxed)
    }

    /// Returns the number of check-ins received. Most of them are stored later, in batches.
    #[must_use]
    pub fn check_ins(&self) -> u64 {
        self.check_ins.load(Ordering::Relaxed)
    }

    /// Returns the number of check-ins written to the database in batches. Only the latest check-in of a host is
    /// stored.
    #[must_use]
    pub fn stored_check_ins(&self) -> u64 {
        self.stored_check_ins.load(Ordering::Relaxed)
    }

    pub(super) fn add_check_in(&self) {
        self.check_ins.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn add_stored_check_ins(&self, count: usize) {
        // A batch is far smaller, so the count never saturates.
        self.stored_check_ins.fetch_add(u64::try_from(count).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    pub(super) fn add_retry(&self) {
        self.retries.fetch_add(1, Ordering::Relaxed);
    }

    /// Runs a commit and records its duration, failure or conflict.
    pub(super) async fn measure_commit<E>(
        &self,
        commit: impl Future<Output = Result<Outcome, E>>,
    ) -> Result<Outcome, E> {
        let result = self.measure(Operation::Commit, commit).await;
        if matches!(result, Ok(Outcome::Overtaken)) {
            self.conflicts.fetch_add(1, Ordering::Relaxed);
        }
        result
    }

    /// Runs an operation and records its duration or failure.
    pub(super) async fn measure<T, E>(
        &self,
        operation: Operation,
        work: impl Future<Output = Result<T, E>>,
    ) -> Result<T, E> {
        let start = Instant::now();
        let result = work.await;
        self.durations(operation).record(start.elapsed());
        if result.is_err()
            && let Some(count) = self.failures_of(operation)
        {
            count.fetch_add(1, Ordering::Relaxed);
        }
        result
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_counted_by_bucket() {
        let histogram = DurationHistogram::default();
        for micros in [0, 100, 101, 10_000_000, 10_000_001] {
            histogram.record(Duration::from_micros(micros));
        }
        assert_eq!(histogram.buckets(), [2, 1, 0, 0, 0, 0, 0, 1, 1]);
        assert_eq!((histogram.count(), histogram.sum()), (5, Duration::from_micros(20_000_202)));
    }

    #[tokio::test]
    async fn failures_are_counted_by_operation() {
        let metrics = StoreMetrics::default();
        let failed: Result<(), ()> = metrics.measure(Operation::Commit, async { Err(()) }).await;
        failed.unwrap_err();
        metrics.measure(Operation::Read, async { Ok::<_, ()>(1) }).await.unwrap();
        let counts = Operation::ALL.map(|one| (metrics.durations(one).count(), metrics.failures(one)));
        assert_eq!(counts, [(1, 0), (1, 1), (0, 0), (0, 0)]);
    }
}
