//! OpenShift versions and their order.
//!
//! The Assisted Installer compares versions by semantic versioning, so `4.18.0-rc.1` and `4.18-multi` come before
//! `4.18`. Versions of OKD, such as `4.18.0-okd-scos.1`, also come before `4.18`. In a list of releases, `-multi` means
//! a release for several architectures, so the caller removes that suffix before it parses the version.

use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;

/// An OpenShift version, such as `4.14`, `4.14.3` or `4.15.0-rc.1`.
///
/// A missing patch number is 0. Build metadata after `+` is ignored.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version {
    numbers: [u64; 3],
    stage: ReleaseStage,
}

/// The part of a version after the numbers. The order of the variants is the order of versions.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum ReleaseStage {
    PreRelease(Vec<PreReleaseIdentifier>),
    Release,
}

/// An identifier in a pre-release. Numbers come before names.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum PreReleaseIdentifier {
    Number(u64),
    Name(String),
}

impl Version {
    /// The range of minor versions that Kindling supports. Other versions work if their base images have the same
    /// format.
    pub const KNOWN_MINORS: RangeInclusive<(u64, u64)> = (4, 6)..=(4, 22);

    /// Parses a version with two or three numbers and an optional pre-release. Returns `None` if the text is not a
    /// version.
    ///
    /// # Examples
    ///
    /// ```
    /// use ignition::version::Version;
    ///
    /// assert!(Version::parse("4.9") < Version::parse("4.14.0-rc.1"));
    /// assert!(Version::parse("4.14.0-rc.1") < Version::parse("4.14"));
    /// assert_eq!(Version::parse("latest"), None);
    /// ```
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.split('+').next()?;
        let (numbers, stage) = match text.split_once('-') {
            Some((numbers, stage)) => (numbers, ReleaseStage::PreRelease(parse_identifiers(stage)?)),
            None => (text, ReleaseStage::Release),
        };
        let numbers: Vec<u64> = numbers.splitn(4, '.').map(parse_digits).collect::<Option<_>>()?;
        let numbers = match *numbers.as_slice() {
            [major, minor] => [major, minor, 0],
            [major, minor, patch] => [major, minor, patch],
            _ => return None,
        };
        Some(Self { numbers, stage })
    }

    /// Creates the release `major.minor.0`.
    #[must_use]
    pub const fn new(major: u64, minor: u64) -> Self {
        Self { numbers: [major, minor, 0], stage: ReleaseStage::Release }
    }

    /// Returns the major and the minor number.
    #[must_use]
    pub fn minor(&self) -> (u64, u64) {
        let [major, minor, _] = self.numbers;
        (major, minor)
    }

    /// Returns `true` if this is a pre-release by semantic versioning.
    #[must_use]
    pub fn is_pre_release(&self) -> bool {
        self.stage != ReleaseStage::Release
    }
}

/// The error for a text that is not a version.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{found:?} is not a version such as 4.18 or 4.18.3")]
#[non_exhaustive]
pub struct VersionError {
    /// The invalid text.
    pub found: String,
}

impl FromStr for Version {
    type Err = VersionError;

    fn from_str(text: &str) -> Result<Self, VersionError> {
        Self::parse(text).ok_or_else(|| VersionError { found: text.to_owned() })
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [major, minor, patch] = self.numbers;
        write!(f, "{major}.{minor}.{patch}")?;
        let ReleaseStage::PreRelease(identifiers) = &self.stage else { return Ok(()) };
        for (index, identifier) in identifiers.iter().enumerate() {
            f.write_str(if index == 0 { "-" } else { "." })?;
            match identifier {
                PreReleaseIdentifier::Number(number) => number.fmt(f)?,
                PreReleaseIdentifier::Name(name) => f.write_str(name)?,
            }
        }
        Ok(())
    }
}

/// Parses a number without a sign.
fn parse_digits(text: &str) -> Option<u64> {
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| text.parse().ok()).flatten()
}

fn parse_identifiers(stage: &str) -> Option<Vec<PreReleaseIdentifier>> {
    let identifier = |text: &str| {
        let is_valid =
            !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
        let parsed = || {
            parse_digits(text)
                .map_or_else(|| PreReleaseIdentifier::Name(text.to_owned()), PreReleaseIdentifier::Number)
        };
        is_valid.then(parsed)
    };
    stage.split('.').map(identifier).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn versions_have_the_order_of_semantic_versioning() {
        let in_order = [
            "4.9.59",
            "4.14.0-0.nightly-2023-08-11-055332",
            "4.14.0-ec.4",
            "4.14.0-rc.2",
            "4.14.0-rc.10",
            "4.14",
            "4.14.3",
            "4.14.12-multi",
            "4.14.12",
            "4.18.0-0.okd-scos-2025-01-01-000000",
            "4.18.0-ec.0",
            "4.18-multi",
            "4.18.0-okd-scos.1",
            "4.18.0-rc.1",
            "4.18",
            "4.18.3-multi",
            "4.18.3",
            "4.100.0",
            "5.0",
        ];
        for pair in in_order.windows(2) {
            assert!(Version::parse(pair[0]).unwrap() < Version::parse(pair[1]).unwrap(), "{pair:?}");
        }
        assert_eq!(Version::parse("4.14.0+build"), Version::parse("4.14"));
        assert_eq!(Version::parse("4.14"), Some(Version::new(4, 14)));
    }

    #[test]
    fn suffixed_versions_are_pre_releases() {
        for text in
            ["4.18-multi", "4.18.3-multi", "4.18.0-rc.1", "4.18.0-okd-scos.1", "4.18.0-0.okd-2025-01-01"]
        {
            assert!(Version::parse(text).unwrap().is_pre_release(), "{text}");
        }
        for text in ["4.18", "4.18.3", "4.18.3+build"] {
            assert!(!Version::parse(text).unwrap().is_pre_release(), "{text}");
        }
    }

    #[test]
    fn rejects_texts_that_are_not_versions() {
        for text in
            ["", "latest", "4", "4.", "4.14.0.1", "v4.14", "4.-1", "+4.1", "4.14-", "4.14-rc..1", "4.14-a b"]
        {
            assert_eq!(Version::parse(text), None, "{text:?}");
            let error = text.parse::<Version>().unwrap_err();
            assert_eq!(error.to_string(), format!("{text:?} is not a version such as 4.18 or 4.18.3"));
        }
        assert_eq!(Version::parse("4.99999999999999999999"), None);
    }

    proptest! {
        #[test]
        fn any_version_round_trips(text in r"[0-9]{1,3}\.[0-9]{1,3}\.[0-9]{1,3}(-[a-z0-9]{1,4}(\.[a-z0-9]{1,4})?)?") {
            let version = Version::parse(&text).unwrap();
            prop_assert_eq!(Version::parse(&version.to_string()), Some(version));
        }

        #[test]
        fn any_text_is_parsed_or_rejected(text in ".{0,40}") {
            let _ = Version::parse(&text);
        }
    }
}
