//! A compact JSON form for summaries: fields that are empty or zero are omitted.

use serde::{Deserialize, Deserializer};

/// Returns `true` if a field with this value is omitted from the JSON.
pub(super) fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// Deserializes a list into a vector without spare capacity.
pub(super) fn exact<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    deserializer: D,
) -> Result<Vec<T>, D::Error> {
    Box::<[T]>::deserialize(deserializer).map(Vec::from)
}

/// Deserializes an optional list into a vector without spare capacity.
pub(super) fn exact_option<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    deserializer: D,
) -> Result<Option<Vec<T>>, D::Error> {
    Option::<Box<[T]>>::deserialize(deserializer).map(|list| list.map(Vec::from))
}

/// Defines structs of a summary. A field with its default value is omitted from the JSON.
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
