//! The text type of reports, which borrows from the JSON input.

use std::borrow::Cow;
use std::fmt;
use std::ops::Deref;

use serde::de::Visitor;
use serde::{Deserialize, Deserializer, Serialize};

use crate::wire::Absent;

/// A text in a report. It borrows from the JSON input, or is a copy if the JSON string contains escapes.
///
/// A report contains more than a thousand short texts, so borrowing saves a service many allocations. A text from
/// another source is usually a `Text<'static>`.
///
/// # Examples
///
/// ```
/// use assisted::Text;
///
/// let json = r#"["eth0", "a\tb"]"#;
/// let texts: Vec<Text<'_>> = serde_json::from_str(json)?;
/// assert_eq!(texts, ["eth0", "a\tb"]);
/// assert!(texts.iter().any(|text| text.starts_with("eth")));
///
/// let owned: Text<'static> = Text::from("eth0".to_owned());
/// assert_eq!(texts[0], owned);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct Text<'a>(Cow<'a, str>);

impl Text<'_> {
    /// Returns the text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the text as a `String`. Copies the text if it is borrowed.
    #[must_use]
    pub fn into_string(self) -> String {
        self.0.into_owned()
    }
}

impl Deref for Text<'_> {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

impl fmt::Display for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

impl PartialEq<str> for Text<'_> {
    fn eq(&self, other: &str) -> bool {
        self.0 == other
    }
}

impl PartialEq<&str> for Text<'_> {
    fn eq(&self, other: &&str) -> bool {
        self.0 == *other
    }
}

impl PartialEq<String> for Text<'_> {
    fn eq(&self, other: &String) -> bool {
        self.0 == *other
    }
}

impl<'a> From<&'a str> for Text<'a> {
    fn from(text: &'a str) -> Self {
        Self(Cow::Borrowed(text))
    }
}

impl From<String> for Text<'_> {
    fn from(text: String) -> Self {
        Self(Cow::Owned(text))
    }
}

impl Absent for Text<'_> {
    fn is_absent(&self) -> bool {
        self.is_empty()
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Text<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(TextVisitor).map(Self)
    }
}

struct TextVisitor;

impl<'de> Visitor<'de> for TextVisitor {
    type Value = Cow<'de, str>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string")
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Cow<'de, str>, E> {
        Ok(Cow::Borrowed(text))
    }

    fn visit_str<E>(self, text: &str) -> Result<Cow<'de, str>, E> {
        Ok(Cow::Owned(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_with_escapes_are_copied() {
        let json = r#"["a\n\u00e9", "é"]"#;
        let texts: Vec<Text<'_>> = serde_json::from_str(json).unwrap();
        assert_eq!(texts, ["a\né", "é"]);
        assert!(matches!(texts.as_slice(), [Text(Cow::Owned(_)), Text(Cow::Borrowed(_))]));
        assert_eq!(serde_json::to_string(&texts).unwrap(), r#"["a\né","é"]"#);
    }
}
