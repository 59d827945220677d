//! Selects OpenShift releases by version.

use std::collections::BTreeMap;

use assisted::architecture::{CpuArchitecture, ReleaseArchitecture};
use assisted::version::OpenshiftVersion;

use super::Version;
use super::error::{CatalogueError, CatalogueList};
use super::os_image::{Catalogue, minor_text};
use super::release_image::{ReleaseImage, read_release, without_multi};

/// A filter for OpenShift versions.
#[derive(Clone, Copy, Debug, Default)]
pub struct VersionQuery<'a> {
    /// Only releases whose version contains this text.
    pub containing: Option<&'a str>,
    /// Only the newest version of each minor version.
    pub only_latest: bool,
}

impl Catalogue {
    /// Sets the releases from a list in the format of the Assisted Installer's `RELEASE_IMAGES`. An empty text is an
    /// empty list.
    ///
    /// # Errors
    ///
    /// Returns an error if the text is not a valid list.
    pub fn with_release_images(mut self, release_images: &str) -> Result<Self, CatalogueError> {
        if !release_images.trim().is_empty() {
            self.releases = CatalogueList::Releases.read(release_images, read_release)?;
        }
        Ok(self)
    }

    /// Hides the versions of a list in the format of the Assisted Installer's `IGNORED_OPENSHIFT_VERSIONS`. An empty
    /// text is an empty list.
    ///
    /// # Errors
    ///
    /// Returns an error if the text is not a valid list of versions.
    pub fn ignoring(mut self, versions: &str) -> Result<Self, CatalogueError> {
        if !versions.trim().is_empty() {
            let list = CatalogueList::IgnoredVersions;
            let versions: Vec<String> =
                serde_json::from_str(versions).map_err(|error| list.error(error.to_string()))?;
            let read = |(index, text): (usize, &String)| match Version::parse(without_multi(text)) {
                Some(_) => Ok(without_multi(text).to_owned()),
                None => Err(list.element_error(index, format!("is {text:?}, which is not a valid version"))),
            };
            self.ignored = versions.iter().enumerate().map(read).collect::<Result<_, _>>()?;
        }
        Ok(self)
    }

    /// Returns all releases.
    #[must_use]
    pub fn releases(&self) -> &[ReleaseImage] {
        &self.releases
    }

    /// Returns the release selected by a version: the release with exactly this version, otherwise the newest release
    /// listed under it. A beta release is selected only if no other release matches.
    ///
    /// # Errors
    ///
    /// Returns an error if no release matches, or if no OS image exists for the release's architecture.
    pub fn release(
        &self,
        version: &str,
        architecture: ReleaseArchitecture,
    ) -> Result<&ReleaseImage, CatalogueError> {
        let of_machine = || self.releases.iter().filter(|release| release.is_for(architecture));
        let exactly = highest_ranked(of_machine().filter(|release| release.version == version));
        let by_name = || highest_ranked(of_machine().filter(|release| release.openshift_version == version));
        let release = exactly.or_else(by_name).ok_or_else(|| self.no_release(version, architecture))?;
        self.require_os_image(release)?;
        Ok(release)
    }

    /// Returns the release with this pull spec.
    ///
    /// # Errors
    ///
    /// Returns an error if no such release exists for this architecture, or if the architecture has no OS image.
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
        let reason = if Version::parse(version).is_none() {
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

    /// Requires an OS image for a single-architecture release. A multi-architecture release is usable on every
    /// architecture with an image.
    fn require_os_image(&self, release: &ReleaseImage) -> Result<(), CatalogueError> {
        match release.cpu_architecture {
            ReleaseArchitecture::One(architecture) if !release.is_multi() => {
                let image = self.os_image(Some(&release.version), architecture);
                let version = release.version.clone();
                image.map(drop).map_err(|_| CatalogueError::NoOsImageOfRelease { version, architecture })
            }
            _ => Ok(()),
        }
    }

    /// Returns the versions of new clusters, by name. The choice of the newest versions considers all releases: an old
    /// patch release does not become the newest because it is the only one that contains the text of the query.
    #[must_use]
    pub fn openshift_versions(&self, query: VersionQuery<'_>) -> BTreeMap<String, OpenshiftVersion> {
        let offered: Vec<_> = self.releases.iter().filter(|release| !self.is_ignored(release)).collect();
        let newest = if query.only_latest { newest_of_each_minor(&offered) } else { BTreeMap::new() };
        let mut versions = BTreeMap::<String, OpenshiftVersion>::new();
        for release in offered {
            let is_newest = || {
                let best = newest.get(&release.parsed_version().minor());
                best.is_some_and(|best| best.parsed_version() == release.parsed_version())
            };
            if query.containing.is_some_and(|text| !release.version.contains(text))
                || (query.only_latest && !is_newest())
            {
                continue;
            }
            for architecture in &release.cpu_architectures {
                if self.os_image(Some(&release.version), *architecture).is_ok() {
                    add_openshift_version(&mut versions, release, *architecture);
                }
            }
        }
        versions
    }

    fn is_ignored(&self, release: &ReleaseImage) -> bool {
        let is_listed = |version: &str| self.ignored.contains(version);
        is_listed(without_multi(&release.version)) || is_listed(&minor_text(release.parsed_version()))
    }
}

fn add_openshift_version(
    versions: &mut BTreeMap<String, OpenshiftVersion>,
    release: &ReleaseImage,
    architecture: CpuArchitecture,
) {
    let name = release.display_name();
    let version = versions.entry(name.clone()).or_insert_with(|| OpenshiftVersion {
        display_name: name,
        support_level: release.support_level.into(),
        cpu_architectures: Vec::new(),
        default: false,
    });
    version.default |= release.is_default;
    if !version.cpu_architectures.iter().any(|listed| *listed == architecture) {
        version.cpu_architectures.push(architecture.into());
    }
}

fn newest_of_each_minor<'a>(releases: &[&'a ReleaseImage]) -> BTreeMap<(u64, u64), &'a ReleaseImage> {
    let mut newest = BTreeMap::new();
    for release in releases.iter().copied() {
        let best = newest.entry(release.parsed_version().minor()).or_insert(release);
        if release.rank() > best.rank() {
            *best = release;
        }
    }
    newest
}

/// Returns the first of the releases with the highest rank.
fn highest_ranked<'a>(releases: impl Iterator<Item = &'a ReleaseImage>) -> Option<&'a ReleaseImage> {
    releases.reduce(|best, release| if release.rank() > best.rank() { release } else { best })
}

#[cfg(test)]
mod tests;
