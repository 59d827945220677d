//! Times in the JSON formats of the API.
//!
//! Most times have three decimals ([`Millis`]). Creation and update times have up to six ([`Micros`]), without trailing
//! zeros. An unset time is in the year 1, as clients of the Assisted Installer expect. Only times of the years 1 to
//! 9999 can be read and written: later years have no RFC 3339 form, and earlier ones are before the unset time.

use std::fmt;

use chrono::{DateTime, Datelike, NaiveDateTime, SecondsFormat, SubsecRound, TimeDelta, Utc};
use serde::de::Visitor;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A time in milliseconds, with three decimals in JSON.
///
/// # Examples
///
/// ```
/// use assisted::Millis;
///
/// let never: Millis = serde_json::from_str(r#""0001-01-01T00:00:00.000Z""#)?;
/// assert_eq!(never.0, None);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Millis(
    /// The time, or `None` if it is unset.
    pub Option<DateTime<Utc>>,
);

/// A time in microseconds, with up to six decimals in JSON.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Micros(
    /// The time, or `None` if it is unset.
    pub Option<DateTime<Utc>>,
);

impl Millis {
    /// Wraps a time, truncated to milliseconds.
    #[must_use]
    pub fn new(time: DateTime<Utc>) -> Self {
        Self(Some(time.trunc_subsecs(3)))
    }

    /// Returns the current time.
    #[must_use]
    pub fn now() -> Self {
        Self::new(Utc::now())
    }
}

impl Micros {
    /// Wraps a time, truncated to microseconds.
    #[must_use]
    pub fn new(time: DateTime<Utc>) -> Self {
        Self(Some(time.trunc_subsecs(6)))
    }

    /// Returns the current time.
    #[must_use]
    pub fn now() -> Self {
        Self::new(Utc::now())
    }

    /// Returns the time to record for a change that follows this time. Returns `now`, or one second after this time if
    /// that is later, for example because the clock was set back. The distance of one second makes the change visible
    /// to clients that compare times in whole seconds. Returns `now` if this time is unset, and `None` if the result
    /// would be after the year 9999.
    #[must_use]
    pub fn later_than(self, now: DateTime<Utc>) -> Option<Self> {
        let now = now.trunc_subsecs(6);
        let Some(before) = self.0 else { return Some(Self(Some(now))) };
        let next = before.checked_add_signed(TimeDelta::seconds(1)).filter(is_valid)?;
        Some(Self(Some(now.max(next))))
    }
}

/// The start of the year 1, which stands for an unset time, in seconds since 1970.
const UNSET: i64 = -62_135_596_800;

/// Returns `true` if a time is in the years 1 to 9999.
fn is_valid(time: &DateTime<Utc>) -> bool {
    (1..=9999).contains(&time.year())
}

fn require_valid<E: serde::ser::Error>(time: &DateTime<Utc>) -> Result<(), E> {
    if is_valid(time) { Ok(()) } else { Err(E::custom(format_args!("the time {time:?} is out of range"))) }
}

impl Serialize for Millis {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            None => serializer.serialize_str("0001-01-01T00:00:00.000Z"),
            Some(time) => {
                require_valid(&time)?;
                // `to_rfc3339_opts` is faster than a chrono format string, which is parsed for each time.
                serializer.serialize_str(&time.to_rfc3339_opts(SecondsFormat::Millis, true))
            }
        }
    }
}

impl Serialize for Micros {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Some(time) = self.0 else { return serializer.serialize_str("0001-01-01T00:00:00Z") };
        require_valid(&time)?;
        let mut text = time.to_rfc3339_opts(SecondsFormat::Micros, true);
        let digits = text.trim_end_matches('Z').trim_end_matches('0').trim_end_matches('.').len();
        text.truncate(digits);
        text.push('Z');
        serializer.serialize_str(&text)
    }
}

/// Parses an RFC 3339 time, with or without a zone. The outer `Option` is `None` if the text is not a time or is out of
/// range. The inner `Option` is `None` for the start of the year 1, which stands for an unset time.
#[must_use]
pub fn parse(text: &str) -> Option<Option<DateTime<Utc>>> {
    let time = DateTime::parse_from_rfc3339(text).map(|time| time.to_utc());
    let time = time.or_else(|_| text.parse::<NaiveDateTime>().map(|time| time.and_utc())).ok()?;
    match time.timestamp() {
        UNSET => Some(None),
        _ => Some(time).filter(is_valid).map(Some),
    }
}

fn read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<DateTime<Utc>>, D::Error> {
    struct TimeVisitor;

    impl Visitor<'_> for TimeVisitor {
        type Value = Option<DateTime<Utc>>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a string")
        }

        fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Self::Value, E> {
            parse(text).ok_or_else(|| E::custom(format_args!("{text:?} is not an RFC 3339 time")))
        }
    }

    deserializer.deserialize_str(TimeVisitor)
}

impl<'de> Deserialize<'de> for Millis {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        read(deserializer).map(Self)
    }
}

impl<'de> Deserialize<'de> for Micros {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        read(deserializer).map(Self)
    }
}

#[cfg(feature = "openapi")]
mod schema {
    use utoipa::openapi::RefOr;
    use utoipa::openapi::schema::{KnownFormat, ObjectBuilder, Schema, SchemaFormat, Type};
    use utoipa::{PartialSchema, ToSchema};

    use super::{Micros, Millis};

    fn time() -> RefOr<Schema> {
        let format = SchemaFormat::KnownFormat(KnownFormat::DateTime);
        ObjectBuilder::new().schema_type(Type::String).format(Some(format)).build().into()
    }

    impl PartialSchema for Millis {
        fn schema() -> RefOr<Schema> {
            time()
        }
    }

    impl ToSchema for Millis {}

    impl PartialSchema for Micros {
        fn schema() -> RefOr<Schema> {
            time()
        }
    }

    impl ToSchema for Micros {}
}

#[cfg(test)]
mod tests {
    use super::*;

    fn micros(text: &str) -> String {
        serde_json::to_string(&Micros(parse(text).unwrap())).unwrap()
    }

    #[test]
    fn micros_omit_trailing_zeros() {
        assert_eq!(micros("2026-08-21T10:00:00.123450Z"), r#""2026-08-21T10:00:00.12345Z""#);
        assert_eq!(micros("2026-08-21T10:00:00.5+01:00"), r#""2026-08-21T09:00:00.5Z""#);
        assert_eq!(micros("2026-08-21T10:00:00"), r#""2026-08-21T10:00:00Z""#);
        assert_eq!(micros("2026-08-20T10:00:10Z"), r#""2026-08-20T10:00:10Z""#);
    }

    #[test]
    fn millis_have_three_decimals() {
        let time = Millis(parse("2026-08-21T10:00:00.1239Z").unwrap());
        assert_eq!(serde_json::to_string(&time).unwrap(), r#""2026-08-21T10:00:00.123Z""#);
    }

    #[test]
    fn unset_time_is_the_year_1() {
        assert_eq!(serde_json::to_string(&Millis(None)).unwrap(), r#""0001-01-01T00:00:00.000Z""#);
        assert_eq!(serde_json::from_str::<Micros>(r#""0001-01-01T00:00:00Z""#).unwrap(), Micros(None));
        assert!(serde_json::from_str::<Micros>(r#""yesterday""#).is_err());
    }

    #[test]
    fn time_out_of_range_is_an_error() {
        for text in [
            "0000-12-31T23:59:59Z",
            "0001-01-01T00:00:00+01:00",
            "-0001-01-01T00:00:00",
            "9999-12-31T23:59:59-01:00",
            "+10000-01-01T00:00:00",
            "+262142-12-31T23:59:59",
        ] {
            assert_eq!(parse(text), None, "{text}");
            assert!(serde_json::from_value::<Millis>(text.into()).is_err(), "{text}");
        }
        for time in [DateTime::<Utc>::MIN_UTC, DateTime::<Utc>::MAX_UTC] {
            assert!(serde_json::to_string(&Millis(Some(time))).is_err(), "{time}");
            assert!(serde_json::to_string(&Micros(Some(time))).is_err(), "{time}");
        }
        for text in ["0001-01-01T00:00:01Z", "9999-12-31T23:59:59.999999Z"] {
            assert_eq!(micros(text), format!("{text:?}"));
        }
    }

    #[test]
    fn later_than_adds_a_second_or_returns_none() {
        let time = |text| Micros(parse(text).unwrap());
        let clock = time("2026-01-01T00:00:00.000001Z");
        let later = |before: Micros| before.later_than(clock.0.unwrap());
        assert_eq!(later(time("2999-01-01T00:00:00Z")), Some(time("2999-01-01T00:00:01Z")));
        assert_eq!(later(time("2020-01-01T00:00:00Z")), Some(clock));
        assert_eq!(later(Micros(None)), Some(clock));
        assert_eq!(later(time("9999-12-31T23:59:59Z")), None);
        assert_eq!(later(Micros(Some(DateTime::<Utc>::MAX_UTC))), None);
    }
}
