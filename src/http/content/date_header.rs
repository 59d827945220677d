//! The `Date` header of responses, formatted at most once per second.

use std::time::{Duration, Instant};

use axum::http::HeaderValue;
use chrono::{DateTime, SubsecRound, Utc};

use discovery::representation::format_date;

/// A formatted `Date` header, valid until the end of its second.
#[derive(Debug, Clone)]
pub(in crate::http) struct DateHeader {
    second: DateTime<Utc>,
    /// `None` if the time of the system clock does not fit into the header.
    value: Option<HeaderValue>,
    /// The end of the second, by the monotonic clock. The system clock is not read before this time. If it is set in
    /// between, the header is wrong for up to a second.
    until: Option<Instant>,
}

impl Default for DateHeader {
    fn default() -> Self {
        Self::from_second(DateTime::UNIX_EPOCH)
    }
}

impl DateHeader {
    fn from_second(second: DateTime<Utc>) -> Self {
        Self { second, value: format_date(second), until: None }
    }

    /// Updates the header if its second is over, and returns it. `now` must be the current `Instant`.
    pub(in crate::http) fn update(&mut self, now: Instant) -> &Self {
        if self.until.is_none_or(|until| until <= now) {
            let time = Utc::now();
            // A leap second can exceed this time. Then the clock is read again by the next call.
            let left = Duration::from_secs(1)
                .saturating_sub(Duration::from_nanos(time.timestamp_subsec_nanos().into()));
            *self = Self { until: now.checked_add(left), ..Self::from_second(time.trunc_subsecs(0)) };
        }
        self
    }

    /// Returns the start of the second that the header shows.
    pub(super) fn start_of_second(&self) -> DateTime<Utc> {
        self.second
    }

    pub(super) fn value(&self) -> Option<&HeaderValue> {
        self.value.as_ref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn date_follows_the_clock() {
        let mut date = DateHeader::default();
        let before = Utc::now().timestamp();
        let now = Instant::now();
        let second = date.update(now).start_of_second();
        assert!((before..=Utc::now().timestamp()).contains(&second.timestamp()));
        // The value changes after at most a second, and not before `until`.
        let until = date.until.unwrap();
        assert!(until > now && until <= now + Duration::from_secs(1));
        assert_eq!(
            date.update(until.checked_sub(Duration::from_nanos(1)).unwrap()).start_of_second(),
            second
        );
        date.second = DateTime::UNIX_EPOCH;
        assert!(date.update(until).start_of_second() >= second);
        assert_eq!(date.value(), format_date(date.start_of_second()).as_ref());
        date = DateHeader::from_second(DateTime::from_timestamp(784_111_777, 0).unwrap());
        assert_eq!(date.value().unwrap(), "Sun, 06 Nov 1994 08:49:37 GMT");
    }
}
