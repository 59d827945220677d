//! The `Date` header.

use std::time::{Duration, Instant};

use axum::http::HeaderValue;
use chrono::{DateTime, SubsecRound, Utc};

use super::conditional::date_value;

/// A formatted `Date` header, reused within its second.
#[derive(Debug, Clone)]
pub(in crate::http) struct Date {
    second: DateTime<Utc>,
    value: HeaderValue,
    /// The end of the second, by the monotonic clock. The system clock is not read before: if it is set meanwhile, the
    /// header is wrong for up to a second.
    until: Option<Instant>,
}

impl Default for Date {
    fn default() -> Self {
        Self::at(DateTime::UNIX_EPOCH)
    }
}

impl Date {
    fn at(second: DateTime<Utc>) -> Self {
        let value = date_value(second).unwrap_or(HeaderValue::from_static(""));
        Self { second, value, until: None }
    }

    /// Returns the header for the current time. `now` must be the current `Instant`.
    pub(in crate::http) fn now(&mut self, now: Instant) -> &Self {
        if self.until.is_none_or(|until| until <= now) {
            let time = Utc::now();
            // A leap second has more nanoseconds than this; the clock is then read again on the next call.
            let left = Duration::from_secs(1)
                .saturating_sub(Duration::from_nanos(time.timestamp_subsec_nanos().into()));
            *self = Self { until: now.checked_add(left), ..Self::at(time.trunc_subsecs(0)) };
        }
        self
    }

    /// Returns the start of the second.
    pub(super) fn second(&self) -> DateTime<Utc> {
        self.second
    }

    pub(super) fn value(&self) -> &HeaderValue {
        &self.value
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn date_follows_the_clock() {
        let mut date = Date::default();
        let before = Utc::now().timestamp();
        let now = Instant::now();
        let second = date.now(now).second();
        assert!((before..=Utc::now().timestamp()).contains(&second.timestamp()));
        // The value changes after at most a second, and not before `until`.
        let until = date.until.unwrap();
        assert!(until > now && until <= now + Duration::from_secs(1));
        assert_eq!(date.now(until.checked_sub(Duration::from_nanos(1)).unwrap()).second(), second);
        date.second = DateTime::UNIX_EPOCH;
        assert!(date.now(until).second() >= second);
        assert_eq!(Some(date.value()), date_value(date.second()).as_ref());
        date = Date::at(DateTime::from_timestamp(784_111_777, 0).unwrap());
        assert_eq!(date.value(), "Sun, 06 Nov 1994 08:49:37 GMT");
    }
}
