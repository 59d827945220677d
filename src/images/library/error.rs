//! What can go wrong with a library and with its images.

use std::error::Error;
use std::fmt::Write as _;
use std::io;
use std::path::PathBuf;

use chrono::{DateTime, Utc};
use isogen::Digest;

use super::location::LocationError;

/// The library cannot be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LibraryError {
    /// The directory is not to be had.
    #[error("the directory {} cannot be used for images", path.display())]
    Directory {
        /// Which one.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The version of an image cannot be in the name of its file.
    #[error("{version:?} cannot be the version of an image: files are named by it")]
    Version {
        /// The version.
        version: String,
    },
    /// The URL of an image is none.
    #[error("the image {image} is nowhere")]
    Location {
        /// Which image.
        image: String,
        /// What is wrong with its URL.
        source: LocationError,
    },
    /// The file of certificates is none.
    #[error("the certificates in {} cannot be used", path.display())]
    Certificates {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: Box<dyn Error + Send + Sync>,
    },
    /// A header that no request can have. The value is not told: it may be a credential.
    #[error("requests cannot have the header {name:?} with that value")]
    Header {
        /// Its name.
        name: String,
    },
    /// There is no runtime that could do the work.
    #[error("a library of images can only be opened within a Tokio runtime")]
    NoRuntime,
    /// No requests can be made at all.
    #[error("images cannot be fetched")]
    Client {
        /// Why.
        source: Box<dyn Error + Send + Sync>,
    },
}

/// An image cannot be used now.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NotReady {
    /// The library has no such image.
    #[error("{image} is not in the catalogue")]
    Unknown {
        /// The name that its file would have.
        image: String,
    },
    /// It is on its way.
    #[error("{image} is not there yet")]
    OnItsWay {
        /// The name of its file.
        image: String,
    },
    /// It could not be had, and will be tried again.
    #[error("{reason}")]
    Failed {
        /// Which image, where it comes from and what went wrong.
        reason: String,
        /// When it is tried again.
        retry_at: DateTime<Utc>,
    },
    /// The library is closed.
    #[error("the library of images is closed")]
    Closed,
}

/// The program `nmstatectl` of an image is not to be had.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NmstatectlError {
    /// It cannot be taken out of the image.
    #[error("nmstatectl cannot be taken out of {image}")]
    Extract {
        /// The name of the image.
        image: String,
        /// Why.
        source: isogen::Error,
    },
    /// The work was given up.
    #[error("nmstatectl was not taken out of {image}: the work was given up")]
    GivenUp {
        /// The name of the image.
        image: String,
    },
}

/// Why an image could not be had this time.
#[derive(Debug, thiserror::Error)]
pub(super) enum FetchError {
    #[error("the request failed")]
    Request { source: Box<dyn Error + Send + Sync> },
    #[error("the server answered with status {status}")]
    Status { status: u16 },
    #[error("the server redirects {reason}")]
    Redirect { reason: String },
    #[error(
        "the server does not tell the length of the image, so that nobody would know whether all of it came"
    )]
    NoLength,
    #[error("the server sends the image encoded as {encoding:?}, which nobody asked for")]
    Encoded { encoding: String },
    #[error(
        "the server has another version of the image than the one that was begun; it is fetched from the start"
    )]
    Changed,
    #[error(
        "asked for the bytes from {asked} on, the server sent {found:?}; the image is fetched from the start"
    )]
    WrongRange { asked: u64, found: String },
    #[error("the connection ended after {have} of {total} bytes")]
    Truncated { have: u64, total: u64, source: Option<Box<dyn Error + Send + Sync>> },
    #[error("the server sends more than the {total} bytes that it promised")]
    TooLong { total: u64 },
    #[error("the downloaded file is not an ISO image: {found}")]
    NotAnImage { found: String },
    #[error("the downloaded file is not a usable base image")]
    Structure { source: isogen::Error },
    #[error("the volume identifier {volume_id:?} is that of no CoreOS live image")]
    VolumeId { volume_id: String },
    #[error("the SHA-256 is {found}, and the catalogue asks for {expected}")]
    Digest { expected: Digest, found: Digest },
    #[error("{doing} {} failed", path.display())]
    Disk { doing: &'static str, path: PathBuf, source: io::Error },
    #[error("the file was changed while it was read")]
    Unstable,
    #[error(
        "another process has {} open for writing; it is used as soon as that process has closed it",
        path.display()
    )]
    OpenForWriting { path: PathBuf },
    #[error("the work was given up")]
    GivenUp,
}

impl FetchError {
    /// Whether the same request may well succeed soon.
    pub(super) fn is_passing(&self) -> bool {
        match self {
            Self::Request { .. } | Self::Truncated { .. } | Self::Changed | Self::WrongRange { .. } => true,
            Self::Status { status } => *status >= 500 || matches!(*status, 408 | 425 | 429),
            _ => false,
        }
    }

    /// Whether it is about what is in a file, and not about getting at it.
    pub(super) fn is_of_contents(&self) -> bool {
        matches!(self, Self::Structure { .. } | Self::VolumeId { .. } | Self::Digest { .. })
    }

    /// Whether the bytes that came before may be the beginning of the image.
    pub(super) fn leaves_part(&self) -> bool {
        matches!(
            self,
            Self::Request { .. }
                | Self::Status { .. }
                | Self::Redirect { .. }
                | Self::Truncated { .. }
                | Self::GivenUp
        )
    }
}

/// An error with all that caused it, in one line.
pub(super) fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    // No chain of this program has as many; one of a library that goes round would have no end.
    for _ in 0..16 {
        let Some(error) = cause else { break };
        let said = error.to_string();
        if !text.ends_with(&said) {
            // A String takes everything.
            let _ = write!(text, ": {said}");
        }
        cause = error.source();
    }
    text
}
