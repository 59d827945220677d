//! What is known of an image at a time.

use chrono::{DateTime, Utc};
use isogen::Digest;
use serde::Serialize;

use crate::images::OsImage;

/// An image of a library, and how far it is.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ImageState {
    /// The image: of several entries of the catalogue that are the same file, the one of the newest version.
    pub image: OsImage,
    /// The name of its file.
    pub name: String,
    /// How far it is.
    pub state: State,
}

/// How far an image is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case", tag = "state")]
#[non_exhaustive]
pub enum State {
    /// Nothing is done for it: it waits for its turn or for somebody who asks for it.
    #[default]
    Absent,
    /// It is being fetched, by this process or another one.
    Downloading {
        /// The bytes that are there.
        have: u64,
        /// The bytes that there will be, once the server has told.
        total: Option<u64>,
    },
    /// All of it is there and is being looked at.
    Verifying {
        /// The bytes that were read.
        have: u64,
        /// The bytes that there are.
        total: u64,
    },
    /// It can be used.
    Ready {
        /// Its length.
        len: u64,
        /// Its SHA-256.
        digest: Digest,
    },
    /// It could not be had.
    Failed {
        /// Which image, where it comes from and what went wrong, without credentials.
        reason: String,
        /// When it is tried again.
        retry_at: DateTime<Utc>,
    },
}

impl State {
    /// Whether it can be used.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        matches!(self, Self::Ready { .. })
    }
}
