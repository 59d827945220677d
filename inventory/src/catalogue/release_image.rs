//! One OpenShift release of the configuration, in the format of the Assisted Installer's `RELEASE_IMAGES`.

use assisted::architecture::{CpuArchitecture, ReleaseArchitecture};
pub use assisted::version::SupportLevel;

use super::Version;
use super::error::CatalogueError;
use super::list::CatalogueElement;

const SUPPORT_LEVELS: [(&str, SupportLevel); 4] = [
    ("beta", SupportLevel::Beta),
    ("production", SupportLevel::Production),
    ("maintenance", SupportLevel::Maintenance),
    ("end-of-life", SupportLevel::EndOfLife),
];

/// An OpenShift release.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReleaseImage {
    /// The version that selects this release if a request names no patch version, such as `4.14` or `4.14-multi`.
    pub openshift_version: String,
    /// The full version, such as `4.14.3`.
    pub version: String,
    /// The architecture as the list names it.
    pub cpu_architecture: ReleaseArchitecture,
    /// All CPU architectures that the release supports.
    pub cpu_architectures: Vec<CpuArchitecture>,
    /// The pull spec of the release image.
    pub url: String,
    /// Whether clients should offer this release first.
    pub is_default: bool,
    /// The support level. A beta release is selected only if no other release matches.
    pub support_level: SupportLevel,
    /// The full version without `-multi`.
    parsed_version: Version,
}

impl ReleaseImage {
    /// Returns the full version without `-multi`.
    pub(crate) fn parsed_version(&self) -> &Version {
        &self.parsed_version
    }

    /// Returns `true` if one cluster can have hosts of several architectures.
    #[must_use]
    pub fn is_multi(&self) -> bool {
        self.cpu_architecture == ReleaseArchitecture::Multi || self.cpu_architectures.len() > 1
    }

    pub(super) fn is_for(&self, architecture: ReleaseArchitecture) -> bool {
        self.cpu_architecture == architecture
            || matches!(architecture, ReleaseArchitecture::One(one) if self.cpu_architectures.contains(&one))
    }

    /// Returns the rank for a selection: non-beta releases first, then the newest, then releases for one architecture.
    pub(super) fn rank(&self) -> (bool, &Version, bool) {
        (self.support_level != SupportLevel::Beta, &self.parsed_version, !self.is_multi())
    }

    pub(super) fn display_name(&self) -> String {
        let is_named = self.version.ends_with("-multi");
        if self.is_multi() && !is_named { format!("{}-multi", self.version) } else { self.version.clone() }
    }
}

pub(super) fn without_multi(version: &str) -> &str {
    version.strip_suffix("-multi").unwrap_or(version)
}

const RELEASE_KEYS: [&str; 8] = [
    "openshift_version",
    "version",
    "cpu_architecture",
    "cpu_architectures",
    "url",
    "default",
    "support_level",
    "release_version",
];

pub(super) fn read_release(element: &CatalogueElement<'_>) -> Result<ReleaseImage, CatalogueError> {
    element.refuse_misspelt_keys(&RELEASE_KEYS)?;
    let version_of = |key: &'static str| {
        let text = element.text(key)?;
        let wrong = || element.error(key, format_args!("is {text:?}, which is not a valid version"));
        // Releases are ordered by their version without the suffix `-multi`, so the rest of the text must be a valid
        // version.
        Version::parse(without_multi(text)).map(|version| (text, version)).ok_or_else(wrong)
    };
    let ((openshift_version, _), (version, parsed_version)) =
        (version_of("openshift_version")?, version_of("version")?);
    let name = element.text("cpu_architecture")?;
    let no_processor = |key: &str, name: &str| {
        element.error(key, format_args!("is {name:?}, which is not a known CPU architecture"))
    };
    let cpu_architecture =
        ReleaseArchitecture::from_name(name).ok_or_else(|| no_processor("cpu_architecture", name))?;
    let mut cpu_architectures = Vec::new();
    let names = element.texts("cpu_architectures")?;
    for name in if names.is_empty() { vec![name] } else { names } {
        match ReleaseArchitecture::from_name(name) {
            Some(ReleaseArchitecture::One(one)) if !cpu_architectures.contains(&one) => {
                cpu_architectures.push(one)
            }
            Some(_) => {}
            None => return Err(no_processor("cpu_architectures", name)),
        }
    }
    let support_level = match element.optional("support_level")? {
        Some(name) => read_support_level(element, name)?,
        None if parsed_version.is_pre_release() => SupportLevel::Beta,
        None => SupportLevel::Production,
    };
    Ok(ReleaseImage {
        openshift_version: openshift_version.to_owned(),
        version: version.to_owned(),
        cpu_architecture,
        cpu_architectures,
        url: element.text("url")?.to_owned(),
        is_default: element.flag("default")?,
        support_level,
        parsed_version,
    })
}

fn read_support_level(element: &CatalogueElement<'_>, name: &str) -> Result<SupportLevel, CatalogueError> {
    let entry = SUPPORT_LEVELS.iter().find(|(level_name, _)| *level_name == name);
    entry.map(|(_, level)| *level).ok_or_else(|| {
        let level_names = SUPPORT_LEVELS.map(|(level_name, _)| level_name).join(", ");
        element.error("support_level", format_args!("is {name:?}; expected one of {level_names}"))
    })
}
