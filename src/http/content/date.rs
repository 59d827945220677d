//! The `Date` of answers.

use std::time::{Duration, Instant};

use axum::http::HeaderValue;
use chrono::{DateTime, SubsecRound, Utc};

use super::conditional::date_value;

/// A time as answers tell it, which is the same for a second.
#[derive(Debug, Clone)]
pub(in crate::http) struct Date {
    second: DateTime<Utc>,
    value: HeaderValue,
    /// When there is another one. Nobody looks at the clock of the world before; where that is set meanwhile, this is so much late.
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

    /// The same for now, which is `now`.
    pub(in crate::http) fn now(&mut self, now: Instant) -> &Self {
        if self.until.is_none_or(|until| until <= now) {
            let time = Utc::now();
            // A second that leaps has more of them than this, and is looked at again.
            let left = Duration::from_secs(1)
                .saturating_sub(Duration::from_nanos(time.timestamp_subsec_nanos().into()));
            *self = Self { until: now.checked_add(left), ..Self::at(time.trunc_subsecs(0)) };
        }
        self
    }

    /// When the second began.
    pub(super) fn second(&self) -> DateTime<Utc> {
        self.second
    }

    /// The value of the header.
    pub(super) fn value(&self) -> &HeaderValue {
        &self.value
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_the_time_of_the_clock() {
        let mut date = Date::default();
        let before = Utc::now().timestamp();
        let now = Instant::now();
        let told = date.now(now).second();
        assert!((before..=Utc::now().timestamp()).contains(&told.timestamp()));
        // It is another one a second later at most, and the same until then.
        let until = date.until.unwrap();
        assert!(until > now && until <= now + Duration::from_secs(1));
        assert_eq!(date.now(until.checked_sub(Duration::from_nanos(1)).unwrap()).second(), told);
        date.second = DateTime::UNIX_EPOCH;
        assert!(date.now(until).second() >= told);
        assert_eq!(Some(date.value()), date_value(date.second()).as_ref());
        date = Date::at(DateTime::from_timestamp(784_111_777, 0).unwrap());
        assert_eq!(date.value(), "Sun, 06 Nov 1994 08:49:37 GMT");
    }
}
