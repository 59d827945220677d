//! Which images and releases there are, in the forms of `OS_IMAGES` and `RELEASE_IMAGES`.

use serde::{Deserialize, Serialize};

use super::architecture::CpuArchitecture;

/// A live image of CoreOS.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OsImage {
    /// The version of OpenShift that it is for: `4.14`, `4.14.3`, or one before its release.
    pub openshift_version: String,
    /// The machines that it is for.
    pub cpu_architecture: CpuArchitecture,
    /// Where it comes from.
    pub url: String,
    /// Its own version.
    pub version: String,
}

/// The images and releases that there are.
#[derive(Clone, Debug, Default)]
pub struct Catalogue {
    os_images: Vec<OsImage>,
}

/// No image or release is there.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CatalogueError {
    /// The list cannot be read.
    #[error("{variable}: {reason}")]
    List {
        /// Where the list stands.
        variable: &'static str,
        /// What is wrong with it.
        reason: String,
    },
    /// No image is there for a version.
    #[error("No OS image for Openshift version {version} and architecture {architecture}: {reason}")]
    NoOsImage {
        /// The version.
        version: String,
        /// The machine.
        architecture: CpuArchitecture,
        /// Why not.
        reason: String,
    },
    /// No image at all is there for a machine.
    #[error("Failed to get latest OS image for architecture {0}: No OS images are available")]
    NoOsImages(CpuArchitecture),
}

impl Catalogue {
    /// Reads a list of images in the form of `OS_IMAGES`.
    ///
    /// # Errors
    ///
    /// When the text is no such list, or an empty one.
    pub fn parse(os_images: &str) -> Result<Self, CatalogueError> {
        let list = |reason: String| CatalogueError::List { variable: "OS_IMAGES", reason };
        let os_images: Vec<OsImage> =
            serde_json::from_str(os_images).map_err(|error| list(error.to_string()))?;
        if os_images.is_empty() {
            return Err(list("No OS images provided".to_owned()));
        }
        Ok(Self { os_images })
    }

    /// All images.
    #[must_use]
    pub fn os_images(&self) -> &[OsImage] {
        &self.os_images
    }
}
