//! The versions of the Ignition specification.

use std::fmt;
use std::str::FromStr;

/// A version of the Ignition specification that this crate reads and writes.
///
/// # Examples
///
/// ```
/// use ignition::spec::Spec;
///
/// let spec: Spec = "3.4.0".parse()?;
/// assert!(Spec::V3_1 < spec && spec < Spec::LATEST);
/// assert_eq!(spec.to_string(), "3.4.0");
/// # Ok::<(), ignition::spec::UnknownSpec>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Spec {
    /// 3.0.0.
    V3_0,
    /// 3.1.0: proxies, HTTP headers, mount options.
    V3_1,
    /// 3.2.0: LUKS, partition resizing, removal of users.
    V3_2,
    /// 3.3.0: kernel arguments.
    V3_3,
    /// 3.4.0: LUKS discard and open options, offline Tang, S3 access points.
    V3_4,
    /// 3.5.0: LUKS on s390x crypto cards.
    V3_5,
    /// 3.6.0: special mode bits.
    V3_6,
}

impl Spec {
    /// All versions, oldest first.
    pub const ALL: [Self; 7] =
        [Self::V3_0, Self::V3_1, Self::V3_2, Self::V3_3, Self::V3_4, Self::V3_5, Self::V3_6];
    pub(crate) const OLDEST: Self = Self::V3_0;
    /// The newest version.
    pub const LATEST: Self = Self::V3_6;

    /// Returns the text of `ignition.version`, for example `3.4.0`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::V3_0 => "3.0.0",
            Self::V3_1 => "3.1.0",
            Self::V3_2 => "3.2.0",
            Self::V3_3 => "3.3.0",
            Self::V3_4 => "3.4.0",
            Self::V3_5 => "3.5.0",
            Self::V3_6 => "3.6.0",
        }
    }
}

impl fmt::Display for Spec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// The error for a text that is not a supported version of the Ignition specification.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{found:?} is not a supported spec version; supported are {oldest} to {latest}",
    oldest = Spec::OLDEST,
    latest = Spec::LATEST
)]
#[non_exhaustive]
pub struct UnknownSpec {
    /// The unsupported text.
    pub found: String,
}

impl FromStr for Spec {
    type Err = UnknownSpec;

    fn from_str(text: &str) -> Result<Self, UnknownSpec> {
        let spec = Self::ALL.into_iter().find(|spec| spec.as_str() == text);
        spec.ok_or_else(|| UnknownSpec { found: text.to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_full_release_versions_are_known() {
        for spec in Spec::ALL {
            assert_eq!(spec.to_string().parse(), Ok(spec));
        }
        for text in ["", "3.1", "3.7.0", "3.7.0-experimental", " 3.1.0", "3.1.0+a", "2.2.0"] {
            assert_eq!(text.parse::<Spec>().unwrap_err().found, text);
        }
    }
}
