//! The OpenShift version of an infra-env.

use std::fmt;
use std::str::FromStr;

use ignition::version::Version;

/// An OpenShift version, such as `4.18`, in the form that the user wrote.
///
/// URLs and messages contain this text. Decisions use the [parsed](Self::parsed) version.
///
/// # Examples
///
/// ```
/// use discovery::OpenshiftVersion;
///
/// let version: OpenshiftVersion = "4.18".parse()?;
/// assert_eq!(version.to_string(), "4.18");
/// assert_eq!(version.parsed().minor(), (4, 18));
/// let error = "latest".parse::<OpenshiftVersion>().unwrap_err();
/// assert_eq!(error.to_string(), r#""latest" is not an OpenShift version such as 4.18"#);
/// # Ok::<(), discovery::InvalidVersion>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenshiftVersion {
    text: String,
    parsed: Version,
}

/// The error for a text that is not an OpenShift version.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not an OpenShift version such as 4.18")]
#[non_exhaustive]
pub struct InvalidVersion {
    /// The rejected text.
    pub text: String,
}

impl OpenshiftVersion {
    /// Returns the version as the user wrote it.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Returns the parsed version.
    #[must_use]
    pub fn parsed(&self) -> &Version {
        &self.parsed
    }
}

impl FromStr for OpenshiftVersion {
    type Err = InvalidVersion;

    fn from_str(text: &str) -> Result<Self, InvalidVersion> {
        // `Version` ignores build metadata after `+`, but URLs contain the whole text. Therefore check each character.
        let is_plain = |it: u8| it.is_ascii_alphanumeric() || b".-+".contains(&it);
        let parsed = Version::parse(text).filter(|_| text.bytes().all(is_plain));
        match parsed {
            Some(parsed) => Ok(Self { text: text.to_owned(), parsed }),
            None => Err(InvalidVersion { text: text.to_owned() }),
        }
    }
}

impl fmt::Display for OpenshiftVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn version_keeps_its_text() {
        for text in ["4.18", "4.18.1", "4.18.0-rc.1", "4.18-multi", "4.18.1+build.7"] {
            assert_eq!(text.parse::<OpenshiftVersion>().unwrap().as_str(), text);
        }
    }

    #[test]
    fn rejects_invalid_versions() {
        for text in ["", "latest", "4", "4.18-a b", " 4.18", "4.18+ x", "4.18+\"", "4.18\n", "v4.18"] {
            text.parse::<OpenshiftVersion>().unwrap_err();
        }
    }
}
