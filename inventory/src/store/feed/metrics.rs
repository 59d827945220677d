//! Measurements of the change feed.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::store::DurationHistogram;

/// Measurements of a change feed since its store was opened.
#[derive(Debug, Default)]
pub struct FeedMetrics {
    lag: DurationHistogram,
    notifications: AtomicU64,
    resyncs: AtomicU64,
    repairs: AtomicU64,
}

impl FeedMetrics {
    /// Returns the delays between sending a notification and receiving it. Only this process's own notifications are
    /// measured, because the clocks of replicas differ.
    #[must_use]
    pub fn lag(&self) -> &DurationHistogram {
        &self.lag
    }

    /// Returns the number of notifications received from other replicas.
    #[must_use]
    pub fn notifications(&self) -> u64 {
        self.notifications.load(Ordering::Relaxed)
    }

    /// Returns the number of times that events were lost.
    #[must_use]
    pub fn resyncs(&self) -> u64 {
        self.resyncs.load(Ordering::Relaxed)
    }

    /// Returns the number of cached records that a check found to differ from the database.
    #[must_use]
    pub fn repairs(&self) -> u64 {
        self.repairs.load(Ordering::Relaxed)
    }

    pub(super) fn record_lag(&self, lag: Duration) {
        self.lag.record(lag);
    }

    pub(super) fn add_notification(&self) {
        self.notifications.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn add_resync(&self) {
        self.resyncs.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn add_repair(&self) {
        self.repairs.fetch_add(1, Ordering::Relaxed);
    }
}
