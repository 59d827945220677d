//! Counts the work of the controllers, for metrics.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use inventory::store::DurationHistogram;

use crate::object::ObjectKey;
use crate::queue::{Next, Queue};

/// The queue depth and the counts of one controller. Clones share the counts.
#[derive(Clone, Debug)]
pub struct ControllerMetrics {
    name: &'static str,
    queue: Queue<ObjectKey>,
    counts: Arc<Counts>,
}

#[derive(Debug, Default)]
struct Counts {
    failures: AtomicU64,
    durations: DurationHistogram,
}

impl ControllerMetrics {
    pub(crate) fn new(name: &'static str, queue: Queue<ObjectKey>) -> Self {
        Self { name, queue, counts: Arc::default() }
    }

    /// Returns the name of the controller, which labels its metrics.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Returns the number of objects that are due or are being reconciled.
    #[must_use]
    pub fn queue_depth(&self) -> usize {
        self.queue.depth()
    }

    /// Returns the number of objects whose last reconciliation failed.
    #[must_use]
    pub fn failing_objects(&self) -> usize {
        self.queue.failing()
    }

    /// Counts a finished reconciliation.
    pub(crate) fn add(&self, duration: Duration, next: Next) {
        if next == Next::BackOff {
            self.counts.failures.fetch_add(1, Ordering::Relaxed);
        }
        self.counts.durations.record(duration);
    }

    /// Returns the number of failed reconciliations.
    #[must_use]
    pub fn failures(&self) -> u64 {
        self.counts.failures.load(Ordering::Relaxed)
    }

    /// Returns the durations of all reconciliations, including failed ones.
    #[must_use]
    pub fn durations(&self) -> &DurationHistogram {
        &self.counts.durations
    }
}
