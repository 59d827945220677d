//! The digest of a downloaded Ignition config: `sha256-` or `sha512-`, followed by hexadecimal digits.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize};

use crate::customize::from_text::from_text;

/// A digest with which the installer verifies an Ignition config.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(into = "String")]
#[non_exhaustive]
pub enum IgnitionDigest {
    /// A SHA-256 digest, in text form `sha256-...`.
    Sha256([u8; 32]),
    /// A SHA-512 digest, in text form `sha512-...`.
    Sha512([u8; 64]),
}

/// The reason why a digest is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum IgnitionDigestError {
    /// The text has no dash after the hash type.
    #[error("digest {digest:?} is not of the form <type>-<hexvalue>")]
    Form {
        /// The complete text of the digest.
        digest: String,
    },
    /// The hash type is neither `sha256` nor `sha512`.
    #[error("unknown hash type {kind:?} in digest {digest:?}; expected sha256 or sha512")]
    Kind {
        /// The complete text of the digest.
        digest: String,
        /// The text before the dash.
        kind: String,
    },
    /// The value is not hexadecimal, or has the wrong length.
    #[error("digest {digest:?} does not hold {expected} hexadecimal digits")]
    Value {
        /// The complete text of the digest.
        digest: String,
        /// Number of digits that the hash type requires.
        expected: usize,
    },
}

impl FromStr for IgnitionDigest {
    type Err = IgnitionDigestError;

    fn from_str(text: &str) -> Result<Self, IgnitionDigestError> {
        let digest = || text.to_owned();
        let Some((kind, value)) = text.split_once('-') else {
            return Err(IgnitionDigestError::Form { digest: digest() });
        };
        let (parsed, expected) = match kind {
            "sha256" => (decode_hex(value).map(Self::Sha256), 64),
            "sha512" => (decode_hex(value).map(Self::Sha512), 128),
            _ => return Err(IgnitionDigestError::Kind { digest: digest(), kind: kind.to_owned() }),
        };
        parsed.ok_or_else(|| IgnitionDigestError::Value { digest: digest(), expected })
    }
}

/// Decodes exactly `N` bytes of hexadecimal digits, in upper or lower case.
fn decode_hex<const N: usize>(hex: &str) -> Option<[u8; N]> {
    let digits: Vec<u8> =
        hex.chars().map(|c| c.to_digit(16).and_then(|d| u8::try_from(d).ok())).collect::<Option<_>>()?;
    let (pairs, rest) = digits.as_chunks::<2>();
    let bytes: Vec<u8> = pairs.iter().map(|[high, low]| high << 4 | low).collect();
    rest.is_empty().then_some(bytes)?.try_into().ok()
}

impl fmt::Display for IgnitionDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (kind, value): (_, &[u8]) = match self {
            Self::Sha256(value) => ("sha256", value),
            Self::Sha512(value) => ("sha512", value),
        };
        write!(f, "{kind}-")?;
        value.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl<'de> Deserialize<'de> for IgnitionDigest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        from_text(deserializer)
    }
}

impl From<IgnitionDigest> for String {
    fn from(digest: IgnitionDigest) -> Self {
        digest.to_string()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn rejects_malformed_digests() {
        let error = |text: &str| text.parse::<IgnitionDigest>().unwrap_err().to_string();
        assert!(error("sha256").contains("form"));
        assert!(error("md5-00").contains("\"md5\""));
        assert!(error(&format!("sha256-{}", "0".repeat(63))).contains("64"));
        assert!(error(&format!("sha256-{}", "0".repeat(66))).contains("64"));
        assert!(error(&format!("sha512-{}", "g".repeat(128))).contains("128"));
        assert!(error(&format!("sha256-{}", "é".repeat(32))).contains("64"));
    }

    #[test]
    fn upper_case_is_written_in_lower_case() {
        let digest: IgnitionDigest = format!("sha256-{}", "AB".repeat(32)).parse().unwrap();
        assert_eq!(digest.to_string(), format!("sha256-{}", "ab".repeat(32)));
    }

    proptest! {
        #[test]
        fn digest_text_round_trips(text in "sha256-[0-9a-f]{64}|sha512-[0-9a-f]{128}") {
            let digest: IgnitionDigest = text.parse().unwrap();
            prop_assert_eq!(digest.to_string(), text);
        }
    }
}
