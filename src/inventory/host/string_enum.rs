//! Enums whose values are strings in the API and in records: `HostStatus`, `HostStage`, `HostRole`, `StepType` and the like.
//!
//! It holds the macro that defines such an enum with its serde names, not texts for users.

/// Defines enums, each variant with its string.
macro_rules! string_enum {
    ($($(#[$meta:meta])* $name:ident { $($(#[$of_variant:meta])* $variant:ident = $string:tt,)+ })+) => {$(
        #[derive(
            Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize, utoipa::ToSchema,
        )]
        $(#[$meta])*
        pub enum $name {
            $($(#[$of_variant])* #[serde(rename = $string)] $variant,)+
        }

        impl $name {
            /// Every value, in the order of definition.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// Returns the string that the API uses.
            #[must_use]
            pub fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $string,)+
                }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.as_str())
            }
        }
    )+};
}
pub(super) use string_enum;
