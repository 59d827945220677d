//! Serde helpers for the JSON conventions of the Go service.
//!
//! The Go service omits a scalar at its zero value, and writes a list that was never filled as null. Its readers treat
//! null, an absent key and the zero value alike, match keys case-insensitively, and ignore unknown keys.

use std::borrow::Cow;
use std::fmt;

use serde::de::value::StrDeserializer;
use serde::de::{DeserializeSeed, IgnoredAny, IntoDeserializer, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};

/// Returns `true` if a value is the zero value of its type, which is omitted.
pub(crate) fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// Reads null as the default value.
pub(crate) fn null_as_default<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(
    deserializer: D,
) -> Result<T, D::Error> {
    Option::deserialize(deserializer).map(Option::unwrap_or_default)
}

/// Reads null and an empty string as an absent value. The Go service accepts an empty string for most enums.
pub(crate) fn empty_as_none<'de, D: Deserializer<'de>, T: for<'a> Deserialize<'a>>(
    deserializer: D,
) -> Result<Option<T>, D::Error> {
    match Option::<Cow<'_, str>>::deserialize(deserializer)? {
        None => Ok(None),
        Some(text) if text.is_empty() => Ok(None),
        Some(text) => T::deserialize(StrDeserializer::new(&text)).map(Some),
    }
}

/// A value that a report omits in some cases.
pub(crate) trait Absent {
    /// Returns `true` if the value is omitted.
    fn is_absent(&self) -> bool;
}

macro_rules! absent_at_zero {
    ($($scalar:ty),+) => {$(
        impl Absent for $scalar {
            fn is_absent(&self) -> bool {
                is_default(self)
            }
        }
    )+};
}
absent_at_zero!(String, bool, i64, f64);

impl<T> Absent for Option<T> {
    fn is_absent(&self) -> bool {
        self.is_none()
    }
}

/// A deserializer that reads a struct from a JSON object, but not from an array. It matches keys case-insensitively,
/// and skips unknown keys.
#[derive(Debug)]
pub(crate) struct ObjectOnly<D>(pub(crate) D);

impl<'de, D: Deserializer<'de>> Deserializer<'de> for ObjectOnly<D> {
    type Error = D::Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        self.0.deserialize_map(visitor)
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        self.0.deserialize_map(KnownKeys { fields, inner: visitor })
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct
        newtype_struct seq tuple tuple_struct map enum identifier ignored_any
    }
}

/// An adapter that passes keys to `inner` in the spelling of the struct's fields, and skips unknown keys. The adapter
/// wraps the visitor of a struct, and then the map access that the visitor receives. A report is thus read in one pass,
/// without a copy of its keys.
struct KnownKeys<T> {
    fields: &'static [&'static str],
    inner: T,
}

impl<'de, V: Visitor<'de>> Visitor<'de> for KnownKeys<V> {
    type Value = V::Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.expecting(f)
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<V::Value, A::Error> {
        self.inner.visit_map(KnownKeys { fields: self.fields, inner: map })
    }
}

impl<'de, A: MapAccess<'de>> MapAccess<'de> for KnownKeys<A> {
    type Error = A::Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, A::Error> {
        while let Some(field) = self.inner.next_key_seed(FieldName(self.fields))? {
            match field {
                Some(field) => return seed.deserialize(field.into_deserializer()).map(Some),
                None => self.inner.next_value::<IgnoredAny>()?,
            };
        }
        Ok(None)
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, A::Error> {
        self.inner.next_value_seed(seed)
    }
}

/// A seed that reads a key as the name of the matching field, or as `None` if no field matches.
struct FieldName(&'static [&'static str]);

impl<'de> DeserializeSeed<'de> for FieldName {
    type Value = Option<&'static str>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for FieldName {
    type Value = Option<&'static str>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key")
    }

    fn visit_str<E: serde::de::Error>(self, key: &str) -> Result<Self::Value, E> {
        Ok(self.0.iter().find(|field| field.eq_ignore_ascii_case(key)).copied())
    }
}

/// Implements `Serialize` and `Deserialize` through [`ObjectOnly`] for structs with `#[serde(remote = "Self")]`.
///
/// Such structs may also have `deny_unknown_fields`. It only affects their API schemas, which document what a
/// service accepts in requests. Readers ignore the keys that a newer service adds.
macro_rules! lenient {
    (@impl [$($generics:tt)*], [$($of_reader:tt)*], $name:ty) => {
        impl $($generics)* serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                Self::serialize(self, serializer)
            }
        }

        impl<$($of_reader)*> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                Self::deserialize($crate::wire::ObjectOnly(deserializer))
            }
        }
    };
    ($($name:ty),+ $(,)?) => {$(
        $crate::wire::lenient!(@impl [], ['de], $name);
    )+};
}
pub(crate) use lenient;

/// Defines report types. Each field may be absent or null, and a field at its zero value is omitted. A type with the
/// lifetime `'a` borrows its texts from the JSON input. Types after `without Debug:` implement `Debug` by hand, to
/// redact secrets.
macro_rules! reported {
    (@struct $(#[$doc:meta])* $name:ident, [$($generics:tt)*], [$($of_reader:tt)*], [$($debug:ident)?], {
        $($(#[$of_field:meta])* $field:ident: $type:ty,)*
    } $(#[$bound:meta])?) => {
        $(#[$doc])*
        #[derive(Clone, $($debug,)? Default, PartialEq, serde::Serialize, serde::Deserialize)]
        #[serde(default, remote = "Self")]
        $(#[$bound])?
        pub struct $name $($generics)* {
            $(
                $(#[$of_field])*
                #[serde(
                    deserialize_with = "crate::wire::null_as_default",
                    skip_serializing_if = "crate::wire::Absent::is_absent"
                )]
                pub $field: $type,
            )*
        }

        $crate::wire::lenient!(@impl [$($generics)*], [$($of_reader)*], $name $($generics)*);

        /// A nested report is written even if all its fields are absent.
        impl $($generics)* $crate::wire::Absent for $name $($generics)* {
            fn is_absent(&self) -> bool {
                false
            }
        }
    };
    (@type $(#[$doc:meta])* $name:ident<'a> $debug:tt $fields:tt) => {
        $crate::wire::reported! {
            @struct $(#[$doc])* $name, [<'a>], ['de: 'a, 'a], $debug, $fields
            #[serde(bound(deserialize = "'de: 'a"))]
        }
    };
    (@type $(#[$doc:meta])* $name:ident $debug:tt $fields:tt) => {
        $crate::wire::reported! { @struct $(#[$doc])* $name, [], ['de], $debug, $fields }
    };
    ($($(#[$doc:meta])* $name:ident $(<$life:lifetime>)? { $($fields:tt)* })+) => {$(
        $crate::wire::reported! { @type $(#[$doc])* $name $(<$life>)? [Debug] { $($fields)* } }
    )+};
    (without Debug: $($(#[$doc:meta])* $name:ident $(<$life:lifetime>)? { $($fields:tt)* })+) => {$(
        $crate::wire::reported! { @type $(#[$doc])* $name $(<$life>)? [] { $($fields)* } }
    )+};
}
pub(crate) use reported;
