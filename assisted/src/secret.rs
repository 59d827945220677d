//! Texts that logs and error messages must not contain.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A secret text. `Debug` does not show it.
///
/// It is serialized as a plain string.
///
/// # Examples
///
/// ```
/// use assisted::Secret;
///
/// let token = Secret::new("abc");
/// assert_eq!(format!("{token:?}"), "<redacted>");
/// assert_eq!(token.reveal(), "abc");
/// ```
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Secret(String);

impl Secret {
    /// Wraps a text.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// Returns the text.
    #[must_use]
    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// Returns `true` if the text is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("<redacted>")
    }
}

/// A text whose `Debug` output shows only the length.
pub(crate) struct Redacted<'a>(pub(crate) &'a str);

impl fmt::Debug for Redacted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "<redacted, {} bytes>", self.0.len())
    }
}
