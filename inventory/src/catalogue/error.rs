//! The errors of the catalogue: invalid lists, and versions without a matching image or release.

use std::fmt;

use assisted::architecture::{CpuArchitecture, ReleaseArchitecture};

/// One of the configured lists that form a catalogue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum CatalogueList {
    /// The base images.
    OsImages,
    /// The OpenShift releases.
    Releases,
    /// The ignored OpenShift versions.
    IgnoredVersions,
}

impl CatalogueList {
    fn element_name(self) -> &'static str {
        match self {
            Self::OsImages => "base image",
            Self::Releases => "release",
            Self::IgnoredVersions => "ignored version",
        }
    }
}

impl fmt::Display for CatalogueList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "list of {}s", self.element_name())
    }
}

/// The reason why a list is refused, or why no image or release matches.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CatalogueError {
    /// The list is invalid.
    #[error("{list}: {reason}")]
    List {
        /// The invalid list.
        list: CatalogueList,
        /// Why the list is invalid.
        reason: String,
    },
    /// An element of a list is invalid.
    #[error("{} {}: {}{reason}", list.element_name(), index + 1, key_before_reason(key.as_deref()))]
    Element {
        /// The list that contains the element.
        list: CatalogueList,
        /// The position of the element, starting at 0. The message counts from 1.
        index: usize,
        /// The key of the invalid value, unless the element itself is invalid.
        key: Option<String>,
        /// Why the element is invalid, as a predicate of the key or the element.
        reason: String,
    },
    /// The version of an image is invalid.
    #[error("the OS image for architecture {architecture} has the invalid OpenShift version {version:?}")]
    InvalidVersion {
        /// The text that is not a version.
        version: String,
        /// The CPU architecture of the image.
        architecture: CpuArchitecture,
    },
    /// No image matches the version.
    #[error("No OS image for Openshift version {version} and architecture {architecture}: {reason}")]
    NoOsImage {
        /// The requested version.
        version: String,
        /// The requested CPU architecture.
        architecture: CpuArchitecture,
        /// Why no image matches.
        reason: String,
    },
    /// No image exists for the CPU architecture.
    #[error("Failed to get latest OS image for architecture {0}: No OS images are available")]
    NoOsImages(CpuArchitecture),
    /// No release matches the version.
    #[error("No release image for Openshift version {version} and architecture {architecture}: {reason}")]
    NoRelease {
        /// The requested version.
        version: String,
        /// The requested CPU architecture.
        architecture: ReleaseArchitecture,
        /// Why no release matches.
        reason: String,
    },
    /// A release matches, but no OS image exists for its CPU architecture.
    #[error("No OS images are available for version {version} and architecture {architecture}")]
    NoOsImageOfRelease {
        /// The version of the release.
        version: String,
        /// The CPU architecture.
        architecture: CpuArchitecture,
    },
    /// No release has this pull spec.
    #[error("No release image with URL {0}")]
    NoReleaseAt(String),
}

fn key_before_reason(key: Option<&str>) -> String {
    key.map(|key| format!("{key} ")).unwrap_or_default()
}
