//! Errors of the catalogue.

use assisted::architecture::{CpuArchitecture, ReleaseArchitecture};

/// Why a list is refused, or no image or release matches.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CatalogueError {
    /// The list is invalid.
    #[error("{variable}: {reason}")]
    List {
        /// The variable that contains the list.
        variable: &'static str,
        /// The reason, with the element and the key.
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
        /// The version.
        version: String,
        /// The CPU architecture.
        architecture: CpuArchitecture,
        /// The reason.
        reason: String,
    },
    /// No image exists for the CPU architecture.
    #[error("Failed to get latest OS image for architecture {0}: No OS images are available")]
    NoOsImages(CpuArchitecture),
    /// No release matches the version.
    #[error("No release image for Openshift version {version} and architecture {architecture}: {reason}")]
    NoRelease {
        /// The version.
        version: String,
        /// The CPU architecture.
        architecture: ReleaseArchitecture,
        /// The reason.
        reason: String,
    },
    /// A release matches, but its CPU architecture has no OS image.
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
