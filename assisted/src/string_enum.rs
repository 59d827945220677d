//! A macro that defines enums whose values are strings in the API.

/// Defines public enums and the API string of each variant. `as NAME` sets the name of the schema, and is optional.
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
            /// All values, in the order of definition.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// Returns the API string of the value.
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
