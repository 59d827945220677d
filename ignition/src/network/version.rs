//! The mechanism by which an OpenShift version configures the network at boot.

use crate::version::Version;

/// The mechanism that configures a machine's network at early boot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NetworkGeneration {
    /// The image contains generated keyfiles.
    Keyfiles,
    /// nmstate runs on the machine and resolves a policy in the image. Used since OpenShift 4.18.
    Nmstate,
}

impl NetworkGeneration {
    /// The first release whose live system runs nmstate at boot.
    pub const FIRST_NMSTATE_VERSION: Version = Version::new(4, 18);

    /// Returns the mechanism for an OpenShift version, or [`Keyfiles`](Self::Keyfiles) if the text is not a version.
    ///
    /// A pre-release comes before its release, so `4.18.0-rc.1` and `4.18-multi` still use keyfiles.
    ///
    /// # Examples
    ///
    /// ```
    /// use ignition::network::NetworkGeneration;
    ///
    /// assert_eq!(NetworkGeneration::for_version("4.18.1"), NetworkGeneration::Nmstate);
    /// assert_eq!(NetworkGeneration::for_version("4.18.0-rc.1"), NetworkGeneration::Keyfiles);
    /// ```
    #[must_use]
    pub fn for_version(version: &str) -> Self {
        Self::for_version_since(version, &Self::FIRST_NMSTATE_VERSION)
    }

    /// Returns the mechanism for an OpenShift version if `first` is the first version with nmstate.
    #[must_use]
    pub fn for_version_since(version: &str, first: &Version) -> Self {
        match Version::parse(version) {
            Some(version) if version >= *first => Self::Nmstate,
            _ => Self::Keyfiles,
        }
    }
}

/// Returns `true` if images of an OpenShift version need `nmstatectl` in the initrd. The first such version is the
/// first engineering candidate of 4.18, although [`NetworkGeneration`] counts it as older than 4.18.
#[must_use]
pub fn needs_nmstatectl(version: &str) -> bool {
    const FIRST_WITH_NMSTATECTL: &str = "4.18.0-ec.0";
    Version::parse(version)
        .zip(Version::parse(FIRST_WITH_NMSTATECTL))
        .is_some_and(|(version, since)| version >= since)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn releases_since_4_18_use_nmstate() {
        for version in ["4.18", "4.18.0", "4.18.1", "4.18.3-multi", "4.19.0-ec.1", "5.0", "4.18.0+build"] {
            assert_eq!(NetworkGeneration::for_version(version), NetworkGeneration::Nmstate, "{version}");
            assert!(needs_nmstatectl(version), "{version}");
        }
        for version in
            ["", "4.17.9", "4.18.0-rc.1", "4.18-multi", "4.18.0-ec.0", "4.2", "x", "4.18.0.1", "-", "v4.20"]
        {
            assert_eq!(NetworkGeneration::for_version(version), NetworkGeneration::Keyfiles, "{version}");
        }
    }

    #[test]
    fn first_version_can_be_configured() {
        let generation = NetworkGeneration::for_version_since;
        assert_eq!(generation("4.17.3", &Version::new(4, 17)), NetworkGeneration::Nmstate);
        assert_eq!(generation("4.18.3", &Version::new(4, 19)), NetworkGeneration::Keyfiles);
        assert_eq!(generation("", &Version::new(4, 19)), NetworkGeneration::Keyfiles);
    }

    #[test]
    fn engineering_candidates_need_nmstatectl() {
        for version in ["4.18.0-ec.0", "4.18.0-ec.10", "4.18.0-rc.1", "4.18-multi"] {
            assert!(needs_nmstatectl(version), "{version}");
        }
        for version in ["", "4.17.30", "4.18.0-0.nightly", "4.18.0-alpha"] {
            assert!(!needs_nmstatectl(version), "{version}");
        }
    }
}
