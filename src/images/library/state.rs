//! The state of an image at one time.

use chrono::{DateTime, Utc};
use isogen::Digest;
use serde::Serialize;
use utoipa::ToSchema;

use inventory::catalogue::OsImage;

/// An image of a library and its state.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ImageState {
    /// The image. If several entries of the catalogue name the same file, the entry with the newest OpenShift version.
    pub image: OsImage,
    /// The name of its file.
    pub name: String,
    /// Its state.
    pub state: BaseImageState,
    /// Whether the image was [added](super::Library::set_added) while the library is open.
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
        /// Its length.
        len: u64,
        /// Its SHA-256.
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
    /// Returns whether the image can be used.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        matches!(self, Self::Ready { .. })
    }
}
