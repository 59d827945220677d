//! The number of retries after a failed download: a number or `infinite`.

use std::fmt;
use std::num::ParseIntError;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize};

use crate::customize::from_text::from_text;

/// The number of retries after a failed download.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(into = "String")]
#[non_exhaustive]
pub enum FetchRetries {
    /// A limited number of retries. The default is 0.
    Times(u32),
    /// Unlimited retries, until the download succeeds.
    Infinite,
}

/// The reason why a number of retries is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("fetch-retries {text:?} is neither a number nor \"infinite\"")]
pub struct FetchRetriesError {
    text: String,
    source: ParseIntError,
}

impl FetchRetries {
    pub(super) fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

impl Default for FetchRetries {
    fn default() -> Self {
        Self::Times(0)
    }
}

impl FromStr for FetchRetries {
    type Err = FetchRetriesError;

    fn from_str(text: &str) -> Result<Self, FetchRetriesError> {
        if text == "infinite" {
            return Ok(Self::Infinite);
        }
        let times = text.parse().map_err(|source| FetchRetriesError { text: text.to_owned(), source })?;
        Ok(Self::Times(times))
    }
}

impl fmt::Display for FetchRetries {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Times(times) => times.fmt(f),
            Self::Infinite => f.write_str("infinite"),
        }
    }
}

impl<'de> Deserialize<'de> for FetchRetries {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        from_text(deserializer)
    }
}

impl From<FetchRetries> for String {
    fn from(retries: FetchRetries) -> Self {
        retries.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_infinite_round_trip() {
        for (text, retries) in [
            ("0", FetchRetries::default()),
            ("4294967295", FetchRetries::Times(u32::MAX)),
            ("infinite", FetchRetries::Infinite),
        ] {
            assert_eq!(text.parse::<FetchRetries>().unwrap(), retries);
            assert_eq!(retries.to_string(), text);
        }
        for text in ["", "-1", "4294967296", "Infinite", "1.5"] {
            let error = text.parse::<FetchRetries>().unwrap_err();
            assert!(error.to_string().contains(&format!("{text:?}")), "{error}");
        }
    }
}
