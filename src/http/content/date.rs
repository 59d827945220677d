//! The `Date` of answers.

use axum::http::HeaderValue;
use chrono::{DateTime, SubsecRound, Utc};

use super::conditional::date_value;

/// A time as answers tell it, which is the same for a second.
#[derive(Debug, Clone)]
pub(in crate::http) struct Date {
    second: DateTime<Utc>,
    value: HeaderValue,
}

impl Default for Date {
    fn default() -> Self {
        Self::at(DateTime::UNIX_EPOCH)
    }
}

impl Date {
    fn at(second: DateTime<Utc>) -> Self {
        let value = date_value(second).unwrap_or(HeaderValue::from_static(""));
        Self { second, value }
    }

    /// The same for now.
    pub(in crate::http) fn now(&mut self) -> &Self {
        let now = Utc::now();
        if now.timestamp() != self.second.timestamp() {
            *self = Self::at(now.trunc_subsecs(0));
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
        let told = date.now().second().timestamp();
        assert!((before..=Utc::now().timestamp()).contains(&told));
        assert_eq!(Some(date.value()), date_value(date.second()).as_ref());
        date = Date::at(DateTime::from_timestamp(784_111_777, 0).unwrap());
        assert_eq!(date.value(), "Sun, 06 Nov 1994 08:49:37 GMT");
    }
}
