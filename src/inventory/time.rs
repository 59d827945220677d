//! Times as this API writes them.
//!
//! Most have three decimals. When a record was made and changed has as many as it needs, up to six. A time that is not
//! set is in the year 1, as clients expect it.

use std::borrow::Cow;

use chrono::{DateTime, NaiveDateTime, SecondsFormat, SubsecRound, TimeDelta, Utc};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{KnownFormat, ObjectBuilder, Schema, SchemaFormat, Type};
use utoipa::{PartialSchema, ToSchema};

/// A time with three decimals.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Millis(pub Option<DateTime<Utc>>);

/// A time with up to six decimals.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Micros(pub Option<DateTime<Utc>>);

impl Millis {
    /// The time on the clock.
    #[must_use]
    pub fn now() -> Self {
        Self(Some(Utc::now().trunc_subsecs(3)))
    }
}

impl Micros {
    /// The time on the clock.
    #[must_use]
    pub fn now() -> Self {
        Self(Some(Utc::now().trunc_subsecs(6)))
    }

    /// The time of a change after another one: later by a second at least, also where the clock was set back meanwhile, so
    /// that clients who go by dates of whole seconds see it.
    #[must_use]
    pub fn later_than(self) -> Self {
        let next = self.0.map(|before| before + TimeDelta::seconds(1));
        Self(Self::now().0.max(next))
    }
}

impl Serialize for Millis {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            None => serializer.serialize_str("0001-01-01T00:00:00.000Z"),
            Some(time) => serializer.collect_str(&time.format("%Y-%m-%dT%H:%M:%S%.3fZ")),
        }
    }
}

impl Serialize for Micros {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Some(time) = self.0 else { return serializer.serialize_str("0001-01-01T00:00:00Z") };
        let text = time.to_rfc3339_opts(SecondsFormat::Micros, true);
        let digits = text.trim_end_matches('Z').trim_end_matches('0').trim_end_matches('.');
        serializer.collect_str(&format_args!("{digits}Z"))
    }
}

/// Reads RFC 3339, also without zone. The year 1 is no time.
pub(crate) fn parse(text: &str) -> Option<Option<DateTime<Utc>>> {
    let time = DateTime::parse_from_rfc3339(text).map(|time| time.to_utc());
    let time = time.or_else(|_| text.parse::<NaiveDateTime>().map(|time| time.and_utc())).ok()?;
    Some(Some(time).filter(|time| time.timestamp() > -62_135_596_800))
}

fn read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<DateTime<Utc>>, D::Error> {
    let text = Cow::<str>::deserialize(deserializer)?;
    parse(&text).ok_or_else(|| serde::de::Error::custom(format_args!("{text:?} is no time of RFC 3339")))
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

fn schema() -> RefOr<Schema> {
    let format = SchemaFormat::KnownFormat(KnownFormat::DateTime);
    ObjectBuilder::new().schema_type(Type::String).format(Some(format)).build().into()
}

impl PartialSchema for Millis {
    fn schema() -> RefOr<Schema> {
        schema()
    }
}

impl ToSchema for Millis {}

impl PartialSchema for Micros {
    fn schema() -> RefOr<Schema> {
        schema()
    }
}

impl ToSchema for Micros {}

#[cfg(test)]
mod tests {
    use super::*;

    fn micros(text: &str) -> String {
        serde_json::to_string(&Micros(parse(text).unwrap())).unwrap()
    }

    #[test]
    fn zeros_at_the_end_are_not_written() {
        assert_eq!(micros("2026-08-21T10:00:00.123450Z"), r#""2026-08-21T10:00:00.12345Z""#);
        assert_eq!(micros("2026-08-21T10:00:00.5+01:00"), r#""2026-08-21T09:00:00.5Z""#);
        assert_eq!(micros("2026-08-21T10:00:00"), r#""2026-08-21T10:00:00Z""#);
        assert_eq!(micros("2026-08-20T10:00:10Z"), r#""2026-08-20T10:00:10Z""#);
    }

    #[test]
    fn milliseconds_are_always_three() {
        let time = Millis(parse("2026-08-21T10:00:00.1239Z").unwrap());
        assert_eq!(serde_json::to_string(&time).unwrap(), r#""2026-08-21T10:00:00.123Z""#);
    }

    #[test]
    fn no_time_is_the_year_one_and_back() {
        assert_eq!(serde_json::to_string(&Millis(None)).unwrap(), r#""0001-01-01T00:00:00.000Z""#);
        assert_eq!(serde_json::from_str::<Micros>(r#""0001-01-01T00:00:00Z""#).unwrap(), Micros(None));
        assert!(serde_json::from_str::<Micros>(r#""yesterday""#).is_err());
    }
}
