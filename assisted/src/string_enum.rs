//! A macro for enums whose values are strings in the API.

/// Defines public enums with the string of each variant. The name of the schema after `as` is optional.
#[macro_export]
macro_rules! string_enum {
    ($(
        $(#[$meta:meta])* $name:ident $(as $schema:ident)?
        { $($(#[$of_variant:meta])* $variant:ident = $string:tt,)+ }
    )+) => {$(
        #[derive(
            Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize,
        )]
        $(#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = $schema))])?
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
pub(crate) use string_enum;
