//! The compact JSON of summaries: what is empty or zero is left out.

use serde::{Deserialize, Deserializer};

/// Returns `true` for a value that is left out.
pub(super) fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// Reads a list without unused memory after its items.
pub(super) fn exact<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    deserializer: D,
) -> Result<Vec<T>, D::Error> {
    Box::<[T]>::deserialize(deserializer).map(Vec::from)
}

/// Reads a list that may be absent.
pub(super) fn exact_option<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    deserializer: D,
) -> Result<Option<Vec<T>>, D::Error> {
    Option::<Box<[T]>>::deserialize(deserializer).map(|list| list.map(Vec::from))
}

/// Defines parts of a summary whose fields are left out of the JSON if they have their default values.
macro_rules! compact {
    ($($(#[$meta:meta])* $name:ident { $($(#[$of_field:meta])* $field:ident: $type:ty,)* })+) => {$(
        $(#[$meta])*
        #[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
        #[serde(default)]
        pub struct $name {
            $(
                $(#[$of_field])*
                #[serde(skip_serializing_if = "crate::summary::compact::is_default")]
                pub $field: $type,
            )*
        }

        crate::summary::memory::heap_len!($name { $($field),* });
    )+};
}
pub(super) use compact;
