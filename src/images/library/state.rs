//! The state of an image in the library.

use chrono::{DateTime, Utc};
use isogen::Digest;
use serde::Serialize;
use utoipa::ToSchema;

use inventory::catalogue::OsImage;

/// An image of a library and its state.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ImageState {
    /// The entry of the image. If several entries describe the same image, the one with the newest OpenShift version.
    pub image: OsImage,
    /// The file name of the image.
    pub name: String,
    /// The current state of the download or of the ready image.
    pub state: BaseImageState,
    /// Whether a user [added](super::Library::set_added) the image. `false` for images of the catalogue.
    pub is_added: bool,
}

/// The state of an image.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = base_image_state)]
#[serde(rename_all = "snake_case", tag = "state")]
#[non_exhaustive]
pub enum BaseImageState {
    /// Not started: the image waits for other downloads or for its first use.
    #[default]
    Absent,
    /// This or another process downloads the image.
    Downloading {
        /// Bytes received so far.
        have: u64,
        /// The length of the image, if the server has reported it.
        total: Option<u64>,
    },
    /// The file is complete and is being checked.
    Verifying {
        /// Bytes read so far.
        have: u64,
        /// The length of the file.
        total: u64,
    },
    /// The image can be used.
    Ready {
        /// Length of the image, in bytes.
        len: u64,
        /// SHA-256 digest of the image.
        #[schema(value_type = String)]
        digest: Digest,
    },
    /// The image could not be obtained.
    Failed {
        /// The image, its location without credentials, and the error.
        reason: String,
        /// The time of the next attempt.
        retry_at: DateTime<Utc>,
    },
}

impl BaseImageState {
    /// Returns `true` if the image can be used.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        matches!(self, Self::Ready { .. })
    }
}
