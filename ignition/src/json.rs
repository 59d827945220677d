//! JSON values whose objects can contain repeated keys. A map would hide repeated keys from the reader.
//!
//! The trees of configs consist of these values, too. The config of a thousand machines contains thousands of objects,
//! so an object is a single list, and its keys are borrowed from the schema.

use std::borrow::Cow;
use std::fmt;

use serde_json::{Number, Value};

use serde::de::value::SeqAccessDeserializer;
use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde::{Serialize, Serializer};

/// A JSON value. The JSON parser limits the depth of nesting.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub(crate) enum Json {
    Null,
    Boolean(bool),
    Integer(i64),
    /// A number that does not fit into a signed 64-bit integer. No field of a config has this type.
    Number(Number),
    Text(Cow<'static, str>),
    List(Vec<Self>),
    Object(Object),
}

impl Json {
    pub(crate) fn object<const N: usize>(fields: [(&'static str, Self); N]) -> Self {
        Self::Object(fields.into_iter().collect())
    }

    /// Creates an object with the fields that have a value.
    pub(crate) fn object_of_set_fields<const N: usize>(fields: [(&'static str, Option<Self>); N]) -> Self {
        Self::Object(fields.into_iter().filter_map(|(name, value)| Some((name, value?))).collect())
    }

    /// Returns the object as a value, or `None` if it is empty.
    pub(crate) fn non_empty_object(object: Object) -> Option<Self> {
        (!object.is_empty()).then_some(Self::Object(object))
    }

    /// Returns the list as a value, or `None` if it is empty.
    pub(crate) fn non_empty_list(items: Vec<Self>) -> Option<Self> {
        (!items.is_empty()).then_some(Self::List(items))
    }

    pub(crate) fn texts(items: &[String]) -> Self {
        Self::List(items.iter().cloned().map(Self::from).collect())
    }

    /// Returns the name of the value's type, for messages.
    pub(crate) fn type_name(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Boolean(_) => "a boolean",
            Self::Integer(_) => "an integer",
            Self::Number(_) => "a number that is not a 64-bit integer",
            Self::Text(_) => "a string",
            Self::List(_) => "a list",
            Self::Object(_) => "an object",
        }
    }

    /// Returns the value of a field, or `None` if the value is not an object or the object has no such field.
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

/// The fields of an object in order, possibly with repeated keys. Objects in configs have few fields, so a linear
/// search is faster than hashing.
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

    /// Sets a field. A new field is appended.
    pub(crate) fn set(&mut self, key: &'static str, value: Json) {
        match self.get_mut(key) {
            Some(there) => *there = value,
            None => self.add(key, value),
        }
    }

    /// Appends a field. The object must not have the field yet.
    pub(crate) fn add(&mut self, key: &'static str, value: Json) {
        self.0.push((key.into(), value));
    }

    /// Returns the value at a JSON pointer. The pointer consists of object keys without escapes.
    pub(crate) fn pointer_mut(&mut self, pointer: &str) -> Option<&mut Json> {
        let mut keys = pointer.split('/').skip(1);
        let first = self.get_mut(keys.next()?)?;
        keys.try_fold(first, |value, key| value.get_mut(key))
    }

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

impl Serialize for Object {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.iter())
    }
}

impl<'de> Deserialize<'de> for Json {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(JsonVisitor)
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

impl From<Json> for Value {
    fn from(json: Json) -> Self {
        match json {
            Json::Null => Self::Null,
            Json::Number(number) => Self::Number(number),
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

struct JsonVisitor;

impl<'de> Visitor<'de> for JsonVisitor {
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
        Ok(i64::try_from(value).map_or_else(|_| Json::Number(value.into()), Json::Integer))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Json, E> {
        Number::from_f64(value).map(Json::Number).ok_or_else(|| E::custom("not a finite number"))
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Json, E> {
        Ok(value.to_owned().into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, items: A) -> Result<Json, A::Error> {
        Vec::deserialize(SeqAccessDeserializer::new(items)).map(Json::List)
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
    fn repeated_keys_and_types_are_kept() {
        let text = r#"{"a":1,"a":[null,true,1.0,18446744073709551615,-2,"x\n"]}"#;
        let json: Json = serde_json::from_str(text).unwrap();
        let list = [
            Json::Null,
            Json::Boolean(true),
            Json::Number(Number::from_f64(1.0).unwrap()),
            Json::Number(u64::MAX.into()),
            Json::Integer(-2),
            Json::Text("x\n".into()),
        ];
        assert_eq!(json, Json::object([("a", Json::Integer(1)), ("a", Json::List(list.into()))]));
        assert_eq!(serde_json::to_string(&json).unwrap(), text, "a number that no config has is not lost");
        assert!(serde_json::from_str::<Json>(&"[".repeat(1000)).is_err(), "the depth is bounded");
    }
}
