//! JSON as it stands in a text: objects keep repeated keys, which a map would hide.

use std::borrow::Cow;
use std::fmt;

use serde_json::Value;

use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};

/// A value of a JSON text. The JSON reader bounds its depth.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Json {
    Null,
    Boolean(bool),
    Integer(i64),
    /// A number that is no integer of 64 bits.
    Number,
    Text(String),
    List(Vec<Self>),
    Object(Vec<(Cow<'static, str>, Self)>),
}

impl Json {
    /// An object of these fields.
    pub(crate) fn object<const N: usize>(fields: [(&'static str, Self); N]) -> Self {
        Self::Object(fields.into_iter().map(|(name, value)| (name.into(), value)).collect())
    }

    /// What the value is, for messages.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Boolean(_) => "a boolean",
            Self::Integer(_) => "an integer",
            Self::Number => "a number that is no integer of 64 bits",
            Self::Text(_) => "a string",
            Self::List(_) => "a list",
            Self::Object(_) => "an object",
        }
    }

    pub(crate) fn get(&self, key: &str) -> Option<&Self> {
        let Self::Object(fields) = self else { return None };
        fields.iter().find(|(name, _)| name == key).map(|(_, value)| value)
    }
}

impl<'de> Deserialize<'de> for Json {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Builder)
    }
}

impl From<&str> for Json {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<Value> for Json {
    fn from(value: Value) -> Self {
        match value {
            Value::Null => Self::Null,
            Value::Bool(value) => Self::Boolean(value),
            Value::Number(number) => number.as_i64().map_or(Self::Number, Self::Integer),
            Value::String(text) => Self::Text(text),
            Value::Array(items) => Self::List(items.into_iter().map(Self::from).collect()),
            Value::Object(fields) => {
                Self::Object(fields.into_iter().map(|(key, value)| (key.into(), value.into())).collect())
            }
        }
    }
}

struct Builder;

impl<'de> Visitor<'de> for Builder {
    type Value = Json;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E: Error>(self) -> Result<Json, E> {
        Ok(Json::Null)
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Json, E> {
        Ok(Json::Boolean(value))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Json, E> {
        Ok(Json::Integer(value))
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Json, E> {
        Ok(i64::try_from(value).map_or(Json::Number, Json::Integer))
    }

    fn visit_f64<E: Error>(self, _: f64) -> Result<Json, E> {
        Ok(Json::Number)
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Json, E> {
        Ok(Json::Text(value.to_owned()))
    }

    fn visit_string<E: Error>(self, value: String) -> Result<Json, E> {
        Ok(Json::Text(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Json, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element()? {
            list.push(item);
        }
        Ok(Json::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Json, A::Error> {
        let mut object = Vec::new();
        while let Some((key, value)) = fields.next_entry::<String, Json>()? {
            object.push((key.into(), value));
        }
        Ok(Json::Object(object))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeated_keys_and_kinds_are_kept() {
        let text = r#"{"a":1,"a":[null,true,1.0,18446744073709551615,-2,"x\n"]}"#;
        let json: Json = serde_json::from_str(text).unwrap();
        let list = [
            Json::Null,
            Json::Boolean(true),
            Json::Number,
            Json::Number,
            Json::Integer(-2),
            Json::Text("x\n".into()),
        ];
        let fields = [("a".into(), Json::Integer(1)), ("a".into(), Json::List(list.into()))];
        assert_eq!(json, Json::Object(fields.into()));
        let value: Value = serde_json::from_str(&text.replacen("\"a\":1,", "", 1)).unwrap();
        assert_eq!(Json::from(value), serde_json::from_str(&text.replacen("\"a\":1,", "", 1)).unwrap());
        assert!(serde_json::from_str::<Json>(&"[".repeat(1000)).is_err(), "the depth is bounded");
    }
}
