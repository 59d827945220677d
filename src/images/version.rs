//! Versions of OpenShift, in order.

use std::fmt;
use std::ops::RangeInclusive;

/// A version of OpenShift: `4.14`, `4.14.3`, `4.15.0-rc.1`.
///
/// Versions are in the order of semantic versioning: pre-releases come before their release. Numbers that are not there
/// are 0, and `-multi` at the end, which says of a release that it is for several processors, does not count.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version {
    numbers: [u64; 3],
    stage: Stage,
}

/// Whether it is released. The order of the variants is that of versions.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Stage {
    Before(Vec<Part>),
    Released,
}

/// A part of the name of a pre-release. Numbers come before names.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Part {
    Number(u64),
    Name(String),
}

impl Version {
    /// The minor versions that Kindling was made for, from the oldest to the newest. Others work as well if their live
    /// images have the same format.
    pub const KNOWN_MINORS: RangeInclusive<(u64, u64)> = (4, 6)..=(4, 22);

    /// Reads a version of two or three numbers.
    ///
    /// # Examples
    ///
    /// ```
    /// use kindling::images::Version;
    ///
    /// assert!(Version::parse("4.9") < Version::parse("4.14.0-rc.1"));
    /// assert!(Version::parse("4.14.0-rc.1") < Version::parse("4.14"));
    /// assert_eq!(Version::parse("latest"), None);
    /// ```
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.split('+').next()?;
        let text = text.strip_suffix("-multi").unwrap_or(text);
        let (numbers, stage) = match text.split_once('-') {
            Some((numbers, stage)) => (numbers, Stage::Before(parts(stage)?)),
            None => (text, Stage::Released),
        };
        let mut version = Self { numbers: [0; 3], stage };
        let numbers: Vec<_> = numbers.splitn(4, '.').map(digits).collect::<Option<_>>()?;
        for (place, number) in version.numbers.iter_mut().zip(&numbers) {
            *place = *number;
        }
        (2..=3).contains(&numbers.len()).then_some(version)
    }

    /// The release of two numbers: `4.14`, say.
    #[must_use]
    pub fn of(major: u64, minor: u64) -> Self {
        Self { numbers: [major, minor, 0], stage: Stage::Released }
    }

    /// Its first two numbers.
    #[must_use]
    pub fn minor(&self) -> (u64, u64) {
        let [major, minor, _] = self.numbers;
        (major, minor)
    }

    /// Whether it comes before its release.
    #[must_use]
    pub fn is_pre_release(&self) -> bool {
        self.stage != Stage::Released
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [major, minor, patch] = self.numbers;
        write!(f, "{major}.{minor}.{patch}")?;
        let Stage::Before(parts) = &self.stage else { return Ok(()) };
        for (index, part) in parts.iter().enumerate() {
            f.write_str(if index == 0 { "-" } else { "." })?;
            match part {
                Part::Number(number) => number.fmt(f)?,
                Part::Name(name) => f.write_str(name)?,
            }
        }
        Ok(())
    }
}

/// A number without a sign.
fn digits(text: &str) -> Option<u64> {
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| text.parse().ok()).flatten()
}

fn parts(stage: &str) -> Option<Vec<Part>> {
    let part = |text: &str| {
        let is_part =
            !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
        is_part.then(|| digits(text).map_or_else(|| Part::Name(text.to_owned()), Part::Number))
    };
    stage.split('.').map(part).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn versions_are_in_the_order_of_their_making() {
        let in_order = [
            "4.9.59",
            "4.14.0-0.nightly-2023-08-11-055332",
            "4.14.0-ec.4",
            "4.14.0-rc.2",
            "4.14.0-rc.10",
            "4.14",
            "4.14.3",
            "4.14.12-multi",
            "4.100.0",
            "5.0",
        ];
        for pair in in_order.windows(2) {
            assert!(Version::parse(pair[0]).unwrap() < Version::parse(pair[1]).unwrap(), "{pair:?}");
        }
        assert_eq!(Version::parse("4.14.0+build"), Version::parse("4.14"));
        assert_eq!(Version::parse("4.14-multi"), Some(Version::of(4, 14)));
    }

    #[test]
    fn what_is_no_version_is_none() {
        for text in
            ["", "latest", "4", "4.", "4.14.0.1", "v4.14", "4.-1", "+4.1", "4.14-", "4.14-rc..1", "4.14-a b"]
        {
            assert_eq!(Version::parse(text), None, "{text:?}");
        }
        assert_eq!(Version::parse("4.99999999999999999999"), None);
    }

    proptest! {
        #[test]
        fn a_version_reads_as_it_is_written(text in r"[0-9]{1,3}\.[0-9]{1,3}\.[0-9]{1,3}(-[a-z0-9]{1,4}(\.[a-z0-9]{1,4})?)?") {
            let version = Version::parse(&text).unwrap();
            prop_assert_eq!(Version::parse(&version.to_string()), Some(version));
        }

        #[test]
        fn any_text_is_read_or_not(text in ".{0,40}") {
            let _ = Version::parse(&text);
        }
    }
}
