//! Releases of OpenShift: which ones there are, and which one a version means.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::architecture::CpuArchitecture;
use super::catalogue::{Catalogue, CatalogueError, minor_of};
use super::list::{Element, List};
use super::version::Version;

/// The machines that a release is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub enum ReleaseArchitecture {
    /// Those of one kind.
    One(CpuArchitecture),
    /// Several kinds at once.
    Multi,
}

impl ReleaseArchitecture {
    /// As the API writes it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::One(architecture) => architecture.as_str(),
            Self::Multi => "multi",
        }
    }

    /// Reads any of its names.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        if name == "multi" { Some(Self::Multi) } else { CpuArchitecture::from_name(name).map(Self::One) }
    }
}

impl Default for ReleaseArchitecture {
    fn default() -> Self {
        Self::One(CpuArchitecture::default())
    }
}

impl fmt::Display for ReleaseArchitecture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl From<ReleaseArchitecture> for String {
    fn from(architecture: ReleaseArchitecture) -> Self {
        architecture.as_str().to_owned()
    }
}

impl TryFrom<String> for ReleaseArchitecture {
    type Error = String;

    fn try_from(name: String) -> Result<Self, String> {
        Self::from_name(&name).ok_or_else(|| format!("{name:?} is no processor"))
    }
}

/// How far a release is supported.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
#[schema(as = support_level)]
pub enum SupportLevel {
    /// It may be tried.
    Beta,
    /// In full.
    Production,
    /// It is still repaired.
    Maintenance,
    /// No more.
    EndOfLife,
}

impl SupportLevel {
    const NAMES: [(&'static str, Self); 4] = [
        ("beta", Self::Beta),
        ("production", Self::Production),
        ("maintenance", Self::Maintenance),
        ("end-of-life", Self::EndOfLife),
    ];
}

/// A release of OpenShift.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReleaseImage {
    /// The versions by which it is asked for when they name no patch: `4.14`, `4.14-multi`.
    pub openshift_version: String,
    /// Its own version.
    pub version: String,
    /// What it calls its machines.
    pub cpu_architecture: ReleaseArchitecture,
    /// All kinds of machines that it is for.
    pub cpu_architectures: Vec<CpuArchitecture>,
    /// Its pull spec.
    pub url: String,
    /// Whether it is the one that clients should offer first.
    pub is_default: bool,
    /// How far it is supported.
    pub support_level: SupportLevel,
}

impl ReleaseImage {
    /// Whether machines of several kinds can be of one cluster.
    #[must_use]
    pub fn is_multi(&self) -> bool {
        self.cpu_architecture == ReleaseArchitecture::Multi || self.cpu_architectures.len() > 1
    }

    fn is_for(&self, architecture: ReleaseArchitecture) -> bool {
        self.cpu_architecture == architecture
            || matches!(architecture, ReleaseArchitecture::One(one) if self.cpu_architectures.contains(&one))
    }

    /// Ones that are not for trying only come first, then the newest, then those for one kind of machine.
    fn rank(&self) -> (bool, Option<Version>, bool) {
        (self.support_level != SupportLevel::Beta, Version::parse(&self.version), !self.is_multi())
    }

    fn display_name(&self) -> String {
        let is_named = self.version.ends_with("-multi");
        if self.is_multi() && !is_named { format!("{}-multi", self.version) } else { self.version.clone() }
    }
}

/// A version that clusters can be made of.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = openshift_version)]
pub struct OpenshiftVersion {
    /// The version.
    pub display_name: String,
    /// How far it is supported.
    pub support_level: SupportLevel,
    /// The machines that it is for.
    #[schema(value_type = Vec<String>)]
    pub cpu_architectures: Vec<CpuArchitecture>,
    /// Whether it is the one that clients should offer first.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub default: bool,
}

/// Which versions.
#[derive(Clone, Copy, Debug, Default)]
pub struct VersionQuery<'a> {
    /// Those of releases with this in their version.
    pub containing: Option<&'a str>,
    /// The newest one of each minor version.
    pub only_latest: bool,
}

const RELEASE_IMAGES: List = List("RELEASE_IMAGES");
const IGNORED: List = List("IGNORED_OPENSHIFT_VERSIONS");

impl Catalogue {
    /// With the releases of a list in the form of `RELEASE_IMAGES`. An empty text is an empty list.
    ///
    /// # Errors
    ///
    /// When the text is no such list.
    pub fn with_release_images(mut self, release_images: &str) -> Result<Self, CatalogueError> {
        if !release_images.trim().is_empty() {
            self.releases = RELEASE_IMAGES.read(release_images, read_release)?;
        }
        Ok(self)
    }

    /// Without the versions of a list in the form of `IGNORED_OPENSHIFT_VERSIONS` among those that it offers. An empty
    /// text is an empty list.
    ///
    /// # Errors
    ///
    /// When the text is no such list.
    pub fn ignoring(mut self, versions: &str) -> Result<Self, CatalogueError> {
        if !versions.trim().is_empty() {
            let versions: Vec<String> =
                serde_json::from_str(versions).map_err(|error| IGNORED.error(error.to_string()))?;
            self.ignored = versions.iter().map(|version| without_multi(version).to_owned()).collect();
        }
        Ok(self)
    }

    /// All releases.
    #[must_use]
    pub fn releases(&self) -> &[ReleaseImage] {
        &self.releases
    }

    /// The release that a version means: the one of exactly this version, or the newest one that goes by it; one that is
    /// for trying only if there is no other.
    ///
    /// # Errors
    ///
    /// When there is none, or its machines have no image to boot.
    pub fn release(
        &self,
        version: &str,
        architecture: ReleaseArchitecture,
    ) -> Result<&ReleaseImage, CatalogueError> {
        let of_machine = || self.releases.iter().filter(|release| release.is_for(architecture));
        let exactly = best(of_machine().filter(|release| release.version == version));
        let by_name = || best(of_machine().filter(|release| release.openshift_version == version));
        let release = exactly.or_else(by_name).ok_or_else(|| self.no_release(version, architecture))?;
        self.require_os_image(release)?;
        Ok(release)
    }

    /// The release with a pull spec.
    ///
    /// # Errors
    ///
    /// When there is none for these machines, or they have no image to boot.
    pub fn release_at(
        &self,
        url: &str,
        architecture: ReleaseArchitecture,
    ) -> Result<&ReleaseImage, CatalogueError> {
        let release = self.releases.iter().find(|release| release.url == url);
        let release = release.ok_or_else(|| CatalogueError::NoReleaseAt(url.to_owned()))?;
        if !release.is_for(architecture) {
            return Err(self.no_release(&release.version, architecture));
        }
        self.require_os_image(release)?;
        Ok(release)
    }

    fn no_release(&self, version: &str, architecture: ReleaseArchitecture) -> CatalogueError {
        let reason = if minor_of(version).is_none() {
            "invalid version".to_owned()
        } else if self.releases.is_empty() {
            "The release images list is empty".to_owned()
        } else {
            format!(
                "The requested release image for version ({version}) and CPU architecture ({architecture}) isn't \
                 specified in release images list"
            )
        };
        CatalogueError::NoRelease { version: version.to_owned(), architecture, reason }
    }

    /// A release for several kinds of machines may be used with those that have an image.
    fn require_os_image(&self, release: &ReleaseImage) -> Result<(), CatalogueError> {
        match release.cpu_architecture {
            ReleaseArchitecture::One(architecture) if !release.is_multi() => {
                let found = self.os_image(Some(&release.version), architecture);
                let version = release.version.clone();
                found.map(drop).map_err(|_| CatalogueError::NoOsImageOfRelease { version, architecture })
            }
            _ => Ok(()),
        }
    }

    /// The versions that clusters can be made of, by name. Both conditions of a query are asked of all releases: an old
    /// patch release is never the newest, even where it is the only one that is `containing` something.
    #[must_use]
    pub fn openshift_versions(&self, query: VersionQuery<'_>) -> BTreeMap<String, OpenshiftVersion> {
        let offered: Vec<_> = self.releases.iter().filter(|release| !self.is_ignored(release)).collect();
        let newest = if query.only_latest { newest_of_each_minor(&offered) } else { BTreeMap::new() };
        let mut versions = BTreeMap::<String, OpenshiftVersion>::new();
        for release in offered {
            let version = Version::parse(&release.version);
            let is_newest = || {
                let best = minor_of(&release.version).and_then(|minor| newest.get(minor));
                best.is_some_and(|best| Version::parse(&best.version) == version)
            };
            if query.containing.is_some_and(|text| !release.version.contains(text))
                || (query.only_latest && !is_newest())
            {
                continue;
            }
            for architecture in &release.cpu_architectures {
                if self.os_image(Some(&release.version), *architecture).is_ok() {
                    offer(&mut versions, release, *architecture);
                }
            }
        }
        versions
    }

    fn is_ignored(&self, release: &ReleaseImage) -> bool {
        let minor = minor_of(&release.version).unwrap_or_default();
        self.ignored.contains(without_multi(&release.version)) || self.ignored.contains(minor)
    }
}

fn offer(
    versions: &mut BTreeMap<String, OpenshiftVersion>,
    release: &ReleaseImage,
    architecture: CpuArchitecture,
) {
    let name = release.display_name();
    let version = versions.entry(name.clone()).or_insert_with(|| OpenshiftVersion {
        display_name: name,
        support_level: release.support_level,
        cpu_architectures: Vec::new(),
        default: false,
    });
    version.default |= release.is_default;
    if !version.cpu_architectures.contains(&architecture) {
        version.cpu_architectures.push(architecture);
    }
}

fn newest_of_each_minor<'a>(releases: &[&'a ReleaseImage]) -> BTreeMap<&'a str, &'a ReleaseImage> {
    let minors: BTreeSet<_> = releases.iter().filter_map(|release| minor_of(&release.version)).collect();
    let newest = |minor| {
        let of_minor = releases.iter().filter(|release| minor_of(&release.version) == Some(minor));
        Some((minor, best(of_minor.copied())?))
    };
    minors.into_iter().filter_map(newest).collect()
}

/// The first one of the highest rank.
fn best<'a>(releases: impl Iterator<Item = &'a ReleaseImage>) -> Option<&'a ReleaseImage> {
    releases.reduce(|best, release| if release.rank() > best.rank() { release } else { best })
}

fn without_multi(version: &str) -> &str {
    version.strip_suffix("-multi").unwrap_or(version)
}

fn read_release(element: &Element<'_>) -> Result<ReleaseImage, CatalogueError> {
    let version_of = |key: &'static str| {
        let text = element.text(key)?;
        let wrong = || element.error(key, format_args!("is {text:?}, which is no version"));
        if Version::parse(text).is_some() { Ok(text) } else { Err(wrong()) }
    };
    let (openshift_version, version) = (version_of("openshift_version")?, version_of("version")?);
    let name = element.text("cpu_architecture")?;
    let no_processor =
        |key: &str, name: &str| element.error(key, format_args!("is {name:?}, which is no processor"));
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
        None if Version::parse(version).is_some_and(|version| version.is_pre_release()) => SupportLevel::Beta,
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
    })
}

fn read_support_level(element: &Element<'_>, name: &str) -> Result<SupportLevel, CatalogueError> {
    let found = SupportLevel::NAMES.iter().find(|(known, _)| *known == name);
    found.map(|(_, level)| *level).ok_or_else(|| {
        let known = SupportLevel::NAMES.map(|(known, _)| known).join(", ");
        element.error("support_level", format_args!("is {name:?}; it may be {known}"))
    })
}

#[cfg(test)]
mod tests;
