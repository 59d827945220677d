//! The state of the monitor, for `/health` and the metrics.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde::Serialize;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::store::DurationHistogram;

/// The health of the monitor of this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = monitor_health)]
#[serde(rename_all = "snake_case")]
pub enum MonitorHealth {
    /// This process monitors the hosts.
    Active,
    /// Another replica does.
    Standby,
    /// The monitor has not succeeded for too long.
    Stuck,
}

/// The state of the monitor of this process.
#[derive(Debug)]
pub struct MonitorState {
    holder: Uuid,
    /// `None` before the monitor is started.
    latest: Mutex<Option<LatestTurn>>,
    passes: DurationHistogram,
    disconnected: AtomicU64,
}

#[derive(Clone, Copy, Debug)]
struct LatestTurn {
    health: MonitorHealth,
    at: Instant,
}

impl MonitorState {
    pub(crate) fn new() -> Self {
        Self {
            holder: Uuid::new_v4(),
            latest: Mutex::default(),
            passes: DurationHistogram::default(),
            disconnected: AtomicU64::new(0),
        }
    }

    fn latest(&self) -> MutexGuard<'_, Option<LatestTurn>> {
        self.latest.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the health of the monitor. It is stuck if its latest success is longer ago than `timeout`. Returns
    /// `None` if this process has no monitor.
    #[must_use]
    pub fn health(&self, timeout: Duration) -> Option<MonitorHealth> {
        let latest = (*self.latest())?;
        Some(if latest.at.elapsed() > timeout { MonitorHealth::Stuck } else { latest.health })
    }

    /// Returns the durations of the passes over all silent hosts.
    #[must_use]
    pub fn passes(&self) -> &DurationHistogram {
        &self.passes
    }

    /// Returns the number of hosts that the monitor has disconnected.
    #[must_use]
    pub fn disconnected_hosts(&self) -> u64 {
        self.disconnected.load(Ordering::Relaxed)
    }

    /// Returns the id of this process in the lease.
    pub(super) fn holder(&self) -> Uuid {
        self.holder
    }

    pub(super) fn start(&self) {
        self.record_health(MonitorHealth::Standby);
    }

    pub(super) fn record_health(&self, health: MonitorHealth) {
        *self.latest() = Some(LatestTurn { health, at: Instant::now() });
    }

    pub(super) fn record_pass(&self, duration: Duration) {
        self.passes.record(duration);
    }

    pub(super) fn add_disconnected(&self, hosts: usize) {
        // No deployment has more hosts.
        self.disconnected.fetch_add(u64::try_from(hosts).unwrap_or(u64::MAX), Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn monitor_without_success_is_stuck() {
        let state = MonitorState::new();
        assert_eq!(state.health(Duration::ZERO), None);
        state.start();
        assert_eq!(state.health(Duration::MAX), Some(MonitorHealth::Standby));
        std::thread::sleep(Duration::from_millis(2));
        assert_eq!(state.health(Duration::from_millis(1)), Some(MonitorHealth::Stuck));
        state.record_health(MonitorHealth::Active);
        assert_eq!(state.health(Duration::from_secs(60)), Some(MonitorHealth::Active));
    }
}
