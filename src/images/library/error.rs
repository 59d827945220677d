//! Errors from opening the image library, and from obtaining and using its images.

use std::error::Error;
use std::fmt::Write as _;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use chrono::{DateTime, Utc};
use isogen::Digest;

use super::location::ImageLocationError;
use super::paths::ImageKey;
use inventory::catalogue::{CatalogueError, CpuArchitecture};

/// The reason why the library cannot be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LibraryError {
    /// The directory cannot be created or read.
    #[error("cannot use directory {} as image library", path.display())]
    Directory {
        /// Path of the library's directory.
        path: PathBuf,
        /// The error from the file system.
        source: io::Error,
    },
    /// The version of an image cannot be part of a file name.
    #[error("version {version:?} of a base image cannot be part of a file name")]
    Version {
        /// The invalid version from the catalogue entry.
        version: String,
    },
    /// Catalogue entries of the same image have different digests.
    #[error(
        "base image {image} has entries with different values of sha256; entries with the same version, architecture \
         and type share one file, so use the same sha256 for all of them, or correct the version of one"
    )]
    ContradictoryDigest {
        /// The file name of the image.
        image: String,
    },
    /// The OpenShift version of an image is invalid.
    #[error(transparent)]
    OpenshiftVersion(#[from] CatalogueError),
    /// The URL of an image is not supported.
    #[error("no valid source for base image {image}")]
    Location {
        /// The file name of the image.
        image: String,
        /// The reason why the URL is not supported.
        source: ImageLocationError,
    },
    /// The URL of an added image is not an HTTP or HTTPS URL.
    #[error("added base image {image} must have an http: or https: URL")]
    AddedLocation {
        /// The file name of the image.
        image: String,
    },
    /// The certificate file cannot be used.
    #[error("cannot use the certificates in {}", path.display())]
    Certificates {
        /// Path of the PEM file.
        path: PathBuf,
        /// The reason why the file cannot be used.
        source: Box<dyn Error + Send + Sync>,
    },
    /// A configured header is not valid. The value is omitted because it may be a credential.
    #[error("invalid value of request header {name:?}")]
    Header {
        /// The name of the header.
        name: String,
    },
    /// The library was opened outside of a Tokio runtime.
    #[error("image library must be opened within a Tokio runtime")]
    NoRuntime,
    /// The client of a server or bucket cannot be created.
    #[error("cannot set up downloads of base images")]
    Client {
        /// The error from the client.
        source: Box<dyn Error + Send + Sync>,
    },
}

/// The reason why an image cannot be used now.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ImageNotReady {
    /// The image is not in the catalogue and was not added, or it was removed.
    #[error("{image} is not in the catalogue")]
    Unknown {
        /// The file name that the image would have.
        image: String,
    },
    /// The image is being downloaded or checked, or is waiting for a download or check.
    #[error("base image {image} is not ready yet")]
    OnItsWay {
        /// The file name of the image.
        image: String,
    },
    /// The digest of the image differs from the digest in the requested entry.
    #[error("base image {image} has the SHA-256 digest {found}, but the requested entry has {expected}")]
    OtherDigest {
        /// The file name of the image.
        image: String,
        /// The digest in the entry.
        expected: Digest,
        /// The digest of the file.
        found: Digest,
    },
    /// The latest attempt to obtain the image failed. The library will retry.
    #[error("{reason}")]
    Failed {
        /// A message with the file name of the image, the location and the error.
        reason: String,
        /// The time of the next attempt.
        retry_at: DateTime<Utc>,
    },
}

impl ImageNotReady {
    pub(super) fn unknown(key: &ImageKey) -> Self {
        Self::Unknown { image: key.to_string() }
    }
}

/// The reason why the program `nmstatectl` of an image is not available.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NmstatectlError {
    /// The program cannot be extracted from the image.
    #[error("cannot extract nmstatectl from {image}")]
    Extract {
        /// The file name of the image.
        image: String,
        /// The error of the extraction.
        source: isogen::Error,
    },
    /// The extraction was interrupted, for example by the end of the process.
    #[error("extraction of nmstatectl from {image} was cancelled")]
    GivenUp {
        /// The file name of the image.
        image: String,
    },
}

/// The reason why an attempt to obtain an image failed.
#[derive(Debug, thiserror::Error)]
pub(super) enum FetchError {
    #[error("the request failed")]
    Request { source: Box<dyn Error + Send + Sync> },
    #[error("the server responded with status {status}")]
    Status { status: u16 },
    #[error("the bucket does not exist; create it, or correct the URL of the image")]
    MissingBucket,
    #[error("the server redirects {reason}")]
    Redirect { reason: String },
    #[error("images must not be added from {host}, which is not one of the servers that the service allows")]
    ForbiddenServer { host: String },
    #[error("the file is {len} bytes long; an added image may have {most}")]
    TooLarge { len: u64, most: u64 },
    #[error("the server sends no Content-Length, so a truncated download cannot be detected")]
    NoLength,
    #[error("the server sends the image encoded as {encoding:?}, which was not requested")]
    Encoded { encoding: String },
    #[error("the image changed on the server during the download; restarting the download")]
    Changed,
    #[error("requested bytes from offset {asked}, the server sent {found:?}; restarting the download")]
    WrongRange { asked: u64, found: String },
    #[error("the connection ended after {have} of {total} bytes")]
    Truncated { have: u64, total: u64, source: Option<Box<dyn Error + Send + Sync>> },
    #[error(
        "the server sent {received} bytes in {window:?}, at least {least} are required; the download will resume"
    )]
    TooSlow { received: u64, least: u64, window: Duration },
    #[error("the server sends more than the announced {total} bytes")]
    TooLong { total: u64 },
    #[error("the downloaded file is not an ISO image: {found}")]
    NotAnImage { found: String },
    #[error("the downloaded file is not a usable base image")]
    Structure { source: isogen::Error },
    #[error("volume identifier {volume_id:?} is not from a CoreOS live ISO")]
    VolumeId { volume_id: String },
    #[error(
        "the image is for CPU architecture {found}, expected {expected}; correct the architecture, or use another image"
    )]
    Architecture { expected: CpuArchitecture, found: CpuArchitecture },
    #[error("SHA-256 digest is {found}, but the catalogue has {expected}")]
    Digest { expected: Digest, found: Digest },
    #[error("{doing} {} failed", path.display())]
    Disk { doing: &'static str, path: PathBuf, source: io::Error },
    #[error("the file was changed while it was being read")]
    Unstable,
    #[error(
        "another process has {} open for writing; it will be used when that process closes it",
        path.display()
    )]
    OpenForWriting { path: PathBuf },
    #[error("cancelled")]
    GivenUp,
}

impl FetchError {
    /// Returns `true` if the same request may succeed soon.
    pub(super) fn is_transient(&self) -> bool {
        match self {
            Self::Request { .. }
            | Self::Truncated { .. }
            | Self::TooSlow { .. }
            | Self::Changed
            | Self::WrongRange { .. } => true,
            Self::Status { status } => *status >= 500 || matches!(*status, 408 | 425 | 429),
            _ => false,
        }
    }

    /// Returns the reason to show for an image that a user added. It contains no data from the server. Otherwise, the
    /// user could add URLs of internal services and read their responses.
    pub(super) fn public_reason(&self) -> String {
        match self {
            Self::Request { source } => {
                let mut cause: Option<&(dyn Error + 'static)> = Some(source.as_ref());
                while let Some(error) = cause {
                    if let Some(forbidden @ Self::ForbiddenServer { .. }) = error.downcast_ref() {
                        return forbidden.to_string();
                    }
                    cause = error.source();
                }
                "the server cannot be reached, or the connection broke".to_owned()
            }
            Self::Redirect { .. } => "the server redirects to an invalid or forbidden URL".to_owned(),
            Self::Encoded { .. } => "the server sends the image with a content coding".to_owned(),
            Self::WrongRange { .. } => "the server sent other bytes than requested".to_owned(),
            Self::NotAnImage { .. } => "the file is not an ISO image".to_owned(),
            Self::Structure { .. } => "the file is not a usable base image".to_owned(),
            Self::VolumeId { .. } => "the file is not a CoreOS live ISO".to_owned(),
            Self::Architecture { .. } => {
                "the image is for another CPU architecture than its entry".to_owned()
            }
            Self::Digest { .. } => "the file has another SHA-256 digest".to_owned(),
            _ => error_chain(self),
        }
    }

    /// Returns `true` if the error is about the contents of a file, and not about the access to it.
    pub(super) fn is_content_error(&self) -> bool {
        matches!(
            self,
            Self::Structure { .. } | Self::VolumeId { .. } | Self::Architecture { .. } | Self::Digest { .. }
        )
    }

    /// Returns `true` if the file is a valid image, but differs from the description in the entry. Another attempt
    /// would very probably download the same file.
    pub(super) fn is_other_image(&self) -> bool {
        matches!(self, Self::VolumeId { .. } | Self::Architecture { .. })
    }

    /// Returns `true` if the received bytes may still be the start of the image, so that the download can resume.
    pub(super) fn keeps_partial_file(&self) -> bool {
        matches!(
            self,
            Self::Request { .. }
                | Self::Status { .. }
                | Self::Redirect { .. }
                | Self::Truncated { .. }
                | Self::TooSlow { .. }
                | Self::GivenUp
        )
    }
}

/// Formats an error and its causes on one line.
pub(super) fn error_chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    // The limit guards against a cycle in the causes of an error from another crate.
    for _ in 0..16 {
        let Some(error) = cause else { break };
        let message = error.to_string();
        if !text.ends_with(&message) {
            // Writing to a `String` cannot fail.
            let _ = write!(text, ": {message}");
        }
        cause = error.source();
    }
    text
}
