//! The wall clock of the inventory. Only this module reads the clock of the system.

use std::fmt::Debug;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};

/// A wall clock. The inventory reads the time only through this trait.
pub trait Clock: Debug + Send + Sync {
    /// Returns the current time.
    fn now(&self) -> DateTime<Utc>;
}

/// The wall clock of the operating system.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "the only place that reads the clock of the system")]
    fn now(&self) -> DateTime<Utc> {
        Utc::now()
    }
}

/// A clock for tests. The time changes only when a test changes it.
#[derive(Debug)]
pub struct ManualClock(Mutex<DateTime<Utc>>);

impl ManualClock {
    /// Creates a clock that shows this time.
    #[must_use]
    pub fn new(time: DateTime<Utc>) -> Self {
        Self(Mutex::new(time))
    }

    /// Moves the clock forward.
    pub fn advance(&self, time: Duration) {
        let mut now = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // A time beyond the calendar moves the clock to the end of the calendar.
        let time = TimeDelta::from_std(time).unwrap_or(TimeDelta::MAX);
        *now = now.checked_add_signed(time).unwrap_or(DateTime::<Utc>::MAX_UTC);
    }

    /// Sets the clock, possibly to an earlier time.
    pub fn set(&self, time: DateTime<Utc>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = time;
    }
}

impl Clock for ManualClock {
    fn now(&self) -> DateTime<Utc> {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
