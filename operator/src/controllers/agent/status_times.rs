//! Limits how often the status of each object is written.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::object::ObjectKey;

/// Minimum time between two writes of the same status.
const INTERVAL: Duration = Duration::from_secs(1);

/// The time of the last status write for each object.
#[derive(Debug, Default)]
pub(crate) struct StatusTimes(Mutex<HashMap<ObjectKey, Instant>>);

impl StatusTimes {
    /// Returns the time to wait before the status may be written, or `None` if it may be written now.
    pub(super) fn delay(&self, key: &ObjectKey) -> Option<Duration> {
        let next = *self.times().get(key)? + INTERVAL;
        let delay = next.saturating_duration_since(Instant::now());
        (!delay.is_zero()).then_some(delay)
    }

    /// Records a write of the status.
    pub(super) fn note(&self, key: &ObjectKey) {
        self.times().insert(key.clone(), Instant::now());
    }

    /// Drops an object that no longer exists.
    pub(super) fn remove(&self, key: &ObjectKey) {
        self.times().remove(key);
    }

    fn times(&self) -> MutexGuard<'_, HashMap<ObjectKey, Instant>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn status_write_waits_one_second_after_the_last_write() {
        let (times, key) = (StatusTimes::default(), ObjectKey::new("ns", "a"));
        assert_eq!(times.delay(&key), None);
        times.note(&key);
        tokio::time::advance(Duration::from_millis(400)).await;
        assert_eq!(times.delay(&key), Some(Duration::from_millis(600)));
        assert_eq!(times.delay(&ObjectKey::new("ns", "b")), None);
        tokio::time::advance(Duration::from_millis(600)).await;
        assert_eq!(times.delay(&key), None);
        times.note(&key);
        times.remove(&key);
        assert_eq!(times.delay(&key), None);
    }
}
