//! JSON as it stands in a text: objects keep repeated keys, which a map would hide. Configs are trees of it, too: one of a
//! thousand machines has thousands of objects, and each is one list here, whose keys are those of the schema.

use std::borrow::Cow;
use std::fmt;

use serde_json::Value;

use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde::{Serialize, Serializer};

/// A value of a JSON text. The JSON reader bounds its depth.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Json {
    Null,
    Boolean(bool),
    Integer(i64),
    /// A number that is no integer of 64 bits.
    Number,
    Text(Cow<'static, str>),
    List(Vec<Self>),
    Object(Object),
}

impl Json {
    /// An object of these fields.
    pub(crate) fn object<const N: usize>(fields: [(&'static str, Self); N]) -> Self {
        Self::Object(fields.into_iter().collect())
    }

    /// A list of texts.
    pub(crate) fn texts(items: &[String]) -> Self {
        Self::List(items.iter().cloned().map(Self::from).collect())
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

    /// A field, where this is an object that has it.
    pub(crate) fn get(&self, key: &str) -> Option<&Self> {
        if let Self::Object(object) = self { object.get(key) } else { None }
    }

    pub(crate) fn get_mut(&mut self, key: &str) -> Option<&mut Self> {
        if let Self::Object(object) = self { object.get_mut(key) } else { None }
    }

    pub(crate) fn as_text(&self) -> Option<&str> {
        if let Self::Text(text) = self { Some(text) } else { None }
    }

    pub(crate) fn as_integer(&self) -> Option<i64> {
        if let Self::Integer(number) = self { Some(*number) } else { None }
    }

    pub(crate) fn as_boolean(&self) -> Option<bool> {
        if let Self::Boolean(value) = self { Some(*value) } else { None }
    }

    pub(crate) fn as_list(&self) -> Option<&[Self]> {
        if let Self::List(items) = self { Some(items) } else { None }
    }

    pub(crate) fn as_list_mut(&mut self) -> Option<&mut Vec<Self>> {
        if let Self::List(items) = self { Some(items) } else { None }
    }

    pub(crate) fn as_object(&self) -> Option<&Object> {
        if let Self::Object(object) = self { Some(object) } else { None }
    }
}

/// The fields of an object in their order, of which a text may have one twice. They are so few, in all that a config
/// knows, that looking at each takes less than the hash of one.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Object(Vec<(Cow<'static, str>, Json)>);

impl Object {
    pub(crate) fn with_capacity(fields: usize) -> Self {
        Self(Vec::with_capacity(fields))
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn get(&self, key: &str) -> Option<&Json> {
        self.0.iter().find(|(name, _)| name == key).map(|(_, value)| value)
    }

    pub(crate) fn get_mut(&mut self, key: &str) -> Option<&mut Json> {
        self.0.iter_mut().find(|(name, _)| name == key).map(|(_, value)| value)
    }

    /// Sets a field, which is the last one if it is new.
    pub(crate) fn set(&mut self, key: &'static str, value: Json) {
        match self.get_mut(key) {
            Some(there) => *there = value,
            None => self.add(key, value),
        }
    }

    /// Appends a field that is not there yet.
    pub(crate) fn add(&mut self, key: &'static str, value: Json) {
        self.0.push((key.into(), value));
    }

    /// What a JSON pointer names whose parts all are plain keys of objects.
    pub(crate) fn pointer_mut(&mut self, pointer: &str) -> Option<&mut Json> {
        let mut keys = pointer.split('/').skip(1);
        let first = self.get_mut(keys.next()?)?;
        keys.try_fold(first, |value, key| value.get_mut(key))
    }

    /// Puts the fields in the order of their names.
    pub(crate) fn sort(&mut self) {
        self.0.sort_by(|(one, _), (other, _)| one.cmp(other));
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &Json)> {
        self.0.iter().map(|(name, value)| (name.as_ref(), value))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl IntoIterator for Object {
    type Item = (Cow<'static, str>, Json);
    type IntoIter = std::vec::IntoIter<Self::Item>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl<K: Into<Cow<'static, str>>> FromIterator<(K, Json)> for Object {
    fn from_iter<I: IntoIterator<Item = (K, Json)>>(fields: I) -> Self {
        Self(fields.into_iter().map(|(key, value)| (key.into(), value)).collect())
    }
}

impl Serialize for Json {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Null | Self::Number => serializer.serialize_unit(),
            Self::Boolean(value) => serializer.serialize_bool(*value),
            Self::Integer(number) => serializer.serialize_i64(*number),
            Self::Text(text) => serializer.serialize_str(text),
            Self::List(items) => serializer.collect_seq(items),
            Self::Object(object) => object.serialize(serializer),
        }
    }
}

impl Serialize for Object {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.iter())
    }
}

impl<'de> Deserialize<'de> for Json {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Builder)
    }
}

impl From<&'static str> for Json {
    fn from(text: &'static str) -> Self {
        Self::Text(text.into())
    }
}

impl From<String> for Json {
    fn from(text: String) -> Self {
        Self::Text(text.into())
    }
}

impl From<Object> for Json {
    fn from(object: Object) -> Self {
        Self::Object(object)
    }
}

impl From<Json> for Value {
    fn from(json: Json) -> Self {
        match json {
            Json::Null | Json::Number => Self::Null,
            Json::Boolean(value) => Self::Bool(value),
            Json::Integer(number) => Self::Number(number.into()),
            Json::Text(text) => Self::String(text.into_owned()),
            Json::List(items) => Self::Array(items.into_iter().map(Self::from).collect()),
            Json::Object(object) => Self::Object(
                object.into_iter().map(|(key, value)| (key.into_owned(), value.into())).collect(),
            ),
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
        Ok(value.to_owned().into())
    }

    fn visit_string<E: Error>(self, value: String) -> Result<Json, E> {
        Ok(value.into())
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
        Ok(Json::Object(Object(object)))
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
        assert_eq!(json, Json::object([("a", Json::Integer(1)), ("a", Json::List(list.into()))]));
        assert!(serde_json::from_str::<Json>(&"[".repeat(1000)).is_err(), "the depth is bounded");
    }
}
