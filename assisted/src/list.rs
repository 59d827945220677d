//! `List`: lists in reports and step arguments, which the Go service writes as `null` if they were never filled.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::wire::Absent;

/// Maximum number of items in a list. An item of two bytes of JSON can take hundreds of bytes in memory.
const MAX_ITEMS: usize = 16 << 10;

/// A list that is never omitted. It is written as null if it was never filled.
///
/// Readers reject lists with more than 16384 items, because a service need not trust the hosts that send reports.
///
/// # Examples
///
/// ```
/// use assisted::List;
///
/// let never_filled: List<String> = List::default();
/// assert_eq!(serde_json::to_string(&never_filled)?, "null");
/// let flags: List<String> = ["up", "running"].map(str::to_owned).into_iter().collect();
/// assert_eq!(serde_json::to_string(&flags)?, r#"["up","running"]"#);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct List<T>(
    /// The items, or `None` if the list was never filled.
    pub Option<Vec<T>>,
);

impl<T> Default for List<T> {
    fn default() -> Self {
        Self(None)
    }
}

impl<T> From<Vec<T>> for List<T> {
    fn from(items: Vec<T>) -> Self {
        Self(Some(items))
    }
}

impl<T> FromIterator<T> for List<T> {
    fn from_iter<I: IntoIterator<Item = T>>(items: I) -> Self {
        Self(Some(items.into_iter().collect()))
    }
}

impl<T> Absent for List<T> {
    fn is_absent(&self) -> bool {
        false
    }
}

impl<T> List<T> {
    /// Returns an iterator over the items.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.0.iter().flatten()
    }

    /// Returns an iterator that allows changing the items.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.0.iter_mut().flatten()
    }

    /// Removes the items for which `keep` returns `false`.
    pub fn retain(&mut self, keep: impl FnMut(&T) -> bool) {
        if let Some(items) = &mut self.0 {
            items.retain(keep);
        }
    }

    /// Returns the number of items.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.as_ref().map_or(0, Vec::len)
    }

    /// Returns `true` if there are no items.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl<T: Serialize> Serialize for List<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for List<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_seq(Items(PhantomData)).map(|items| Self(Some(items)))
    }
}

struct Items<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for Items<T> {
    type Value = Vec<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a list of at most {MAX_ITEMS}")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Vec<T>, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = list.next_element()? {
            if items.len() == MAX_ITEMS {
                return Err(serde::de::Error::invalid_length(MAX_ITEMS + 1, &self));
            }
            items.push(item);
        }
        Ok(items)
    }
}
