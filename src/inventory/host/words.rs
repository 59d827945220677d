//! Values that are one of a few words, in the API and in records.

/// Makes an enum of words.
macro_rules! words {
    ($($(#[$meta:meta])* $name:ident { $($(#[$of_word:meta])* $variant:ident = $word:tt,)+ })+) => {$(
        #[derive(
            Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize, utoipa::ToSchema,
        )]
        $(#[$meta])*
        pub enum $name {
            $($(#[$of_word])* #[serde(rename = $word)] $variant,)+
        }

        impl $name {
            /// All of them.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// As the API writes it.
            #[must_use]
            pub fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $word,)+
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
pub(super) use words;
