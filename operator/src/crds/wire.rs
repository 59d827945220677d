//! Serde helpers for values that Go clients serialize differently.

use serde::{Deserialize, Deserializer};

/// Deserializes `null` as the default value.
pub(super) fn nullable<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Default + Deserialize<'de>,
{
    Option::deserialize(deserializer).map(Option::unwrap_or_default)
}

/// Deserializes `null` and the empty string as `None`.
pub(super) fn text<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    let text: Option<String> = Option::deserialize(deserializer)?;
    Ok(text.filter(|text| !text.is_empty()))
}

/// Returns `true` if Go's `omitempty` would omit the value.
pub(super) fn zero<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}
