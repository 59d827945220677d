//! A macro for enums whose values are strings in the API and in records, such as `HostStatus`, `HostStage` and
//! `StepType`.

/// Defines enums, with the string of each variant.
macro_rules! string_enum {
    ($($(#[$meta:meta])* $vis:vis $name:ident { $($(#[$of_variant:meta])* $variant:ident = $string:tt,)+ })+) => {$(
        #[derive(
            Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize, utoipa::ToSchema,
        )]
        $(#[$meta])*
        $vis enum $name {
            $($(#[$of_variant])* #[serde(rename = $string)] $variant,)+
        }

        impl $name {
            /// Every value, in the order of definition.
            #[allow(dead_code, reason = "some enums are never listed")]
            $vis const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// Returns the string that the API uses.
            #[must_use]
            $vis fn as_str(self) -> &'static str {
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
pub(crate) use string_enum;
