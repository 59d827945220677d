//! Which OpenShift versions configure networks how.

/// How a machine's network is configured at early boot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Generation {
    /// With keyfiles that were generated for it.
    Keyfiles,
    /// With nmstate, which resolves a policy on the machine itself. Since OpenShift 4.18.
    Nmstate,
}

/// First release whose live system runs nmstate at boot.
const NMSTATE_SINCE: (u64, u64) = (4, 18);

impl Generation {
    /// The generation for an OpenShift version; keyfiles where it is empty or no version.
    ///
    /// Pre-releases come before their release: `4.18.0-rc.1` and `4.18-multi` still take keyfiles.
    ///
    /// # Examples
    ///
    /// ```
    /// use ignition::network::Generation;
    ///
    /// assert_eq!(Generation::for_version("4.18.1"), Generation::Nmstate);
    /// assert_eq!(Generation::for_version("4.18.0-rc.1"), Generation::Keyfiles);
    /// ```
    #[must_use]
    pub fn for_version(version: &str) -> Self {
        let since = Version { core: [NMSTATE_SINCE.0, NMSTATE_SINCE.1, 0], pre_release: None };
        Self::since(&since, version)
    }

    /// The generation of a version where another one than usual is the first of the newer generation. None if that is no
    /// version.
    #[must_use]
    pub fn for_version_with_first(version: &str, first: &str) -> Option<Self> {
        Version::parse(first).map(|first| Self::since(&first, version))
    }

    fn since(first: &Version<'_>, version: &str) -> Self {
        match Version::parse(version) {
            Some(version) if version.is_at_least(first) => Self::Nmstate,
            _ => Self::Keyfiles,
        }
    }
}

/// Whether images of an OpenShift version carry `nmstatectl` for the initrd. Unlike the generation, they do so since
/// the first engineering candidate of 4.18.
#[must_use]
pub fn needs_nmstatectl(version: &str) -> bool {
    let since = Version { core: [NMSTATE_SINCE.0, NMSTATE_SINCE.1, 0], pre_release: Some("ec.0") };
    Version::parse(version).is_some_and(|version| version.is_at_least(&since))
}

struct Version<'a> {
    core: [u64; 3],
    pre_release: Option<&'a str>,
}

impl<'a> Version<'a> {
    fn parse(text: &'a str) -> Option<Self> {
        let text = text.split('+').next()?;
        let (numbers, pre_release) = match text.split_once('-') {
            Some((numbers, pre_release)) => (numbers, Some(pre_release)),
            None => (text, None),
        };
        let mut core = [0; 3];
        let mut numbers = numbers.strip_prefix('v').unwrap_or(numbers).split('.');
        for (place, number) in core.iter_mut().zip(numbers.by_ref()) {
            *place = number.parse().ok()?;
        }
        numbers.next().is_none().then_some(Self { core, pre_release })
    }

    fn is_at_least(&self, other: &Self) -> bool {
        if self.core != other.core {
            return self.core > other.core;
        }
        match (self.pre_release, other.pre_release) {
            (None, _) => true,
            (Some(_), None) => false,
            (Some(this), Some(other)) => Part::all(this).ge(Part::all(other)),
        }
    }
}

/// A part of a pre-release. Numbers come before names.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Part<'a> {
    Number(u64),
    Name(&'a str),
}

impl Part<'_> {
    fn all(pre_release: &str) -> impl Iterator<Item = Part<'_>> {
        pre_release.split('.').map(|part| part.parse().map_or(Part::Name(part), Part::Number))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn releases_since_4_18_use_nmstate() {
        for version in
            ["4.18", "4.18.0", "4.18.1", "4.18.3-multi", "4.19.0-ec.1", "5.0", "v4.20", "4.18.0+build"]
        {
            assert_eq!(Generation::for_version(version), Generation::Nmstate, "{version}");
            assert!(needs_nmstatectl(version), "{version}");
        }
        for version in ["", "4.17.9", "4.18.0-rc.1", "4.18-multi", "4.18.0-ec.0", "4.2", "x", "4.18.0.1", "-"]
        {
            assert_eq!(Generation::for_version(version), Generation::Keyfiles, "{version}");
        }
    }

    #[test]
    fn the_first_version_can_be_another_one() {
        let generation = Generation::for_version_with_first;
        assert_eq!(generation("4.17.3", "4.17"), Some(Generation::Nmstate));
        assert_eq!(generation("4.18.3", "4.19.0"), Some(Generation::Keyfiles));
        assert_eq!(generation("", "4.19"), Some(Generation::Keyfiles));
        assert_eq!(generation("4.18", "soon"), None);
    }

    #[test]
    fn candidates_carry_the_program_already() {
        for version in ["4.18.0-ec.0", "4.18.0-ec.10", "4.18.0-rc.1", "4.18-multi"] {
            assert!(needs_nmstatectl(version), "{version}");
        }
        for version in ["", "4.17.30", "4.18.0-0.nightly", "4.18.0-alpha"] {
            assert!(!needs_nmstatectl(version), "{version}");
        }
    }
}
