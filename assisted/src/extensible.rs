//! Enum values from services that are newer than this crate.

use std::fmt;
use std::marker::PhantomData;

use serde::de::Visitor;
use serde::de::value::{Error, StrDeserializer};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A value of an enum that a newer service may extend.
///
/// A reader keeps a string that is not a value of `T` instead of rejecting the whole document. The string is written
/// back unchanged.
///
/// # Examples
///
/// ```
/// use assisted::Extensible;
/// use assisted::step::StepType;
///
/// let known: Extensible<StepType> = serde_json::from_str(r#""inventory""#)?;
/// assert_eq!(known, StepType::Inventory);
///
/// let newer: Extensible<StepType> = serde_json::from_str(r#""measure-noise""#)?;
/// assert_eq!(newer, Extensible::Unknown("measure-noise".to_owned()));
/// assert_eq!(newer.known(), None);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Extensible<T> {
    /// A value of `T`, which this version of the crate defines.
    Known(T),
    /// A string that is not a value of `T`.
    Unknown(String),
}

impl<T: Copy> Extensible<T> {
    /// Returns the value of `T`, or `None` if the string is not a value of `T`.
    #[must_use]
    pub fn known(&self) -> Option<T> {
        match self {
            Self::Known(value) => Some(*value),
            Self::Unknown(_) => None,
        }
    }
}

impl<T> From<T> for Extensible<T> {
    fn from(value: T) -> Self {
        Self::Known(value)
    }
}

impl<T: Default> Default for Extensible<T> {
    fn default() -> Self {
        Self::Known(T::default())
    }
}

impl<T: PartialEq> PartialEq<T> for Extensible<T> {
    fn eq(&self, other: &T) -> bool {
        matches!(self, Self::Known(value) if value == other)
    }
}

impl<T: fmt::Display> fmt::Display for Extensible<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Known(value) => value.fmt(f),
            Self::Unknown(text) => f.pad(text),
        }
    }
}

impl<T: Serialize> Serialize for Extensible<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Known(value) => value.serialize(serializer),
            Self::Unknown(text) => text.serialize(serializer),
        }
    }
}

impl<'de, T: for<'a> Deserialize<'a>> Deserialize<'de> for Extensible<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(ExtensibleVisitor(PhantomData))
    }
}

/// A visitor that parses a known value without allocating a string.
struct ExtensibleVisitor<T>(PhantomData<T>);

impl<T: for<'a> Deserialize<'a>> Visitor<'_> for ExtensibleVisitor<T> {
    type Value = Extensible<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string")
    }

    fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
        let value = T::deserialize(StrDeserializer::<Error>::new(text));
        Ok(value.map_or_else(|_| Extensible::Unknown(text.to_owned()), Extensible::Known))
    }
}
