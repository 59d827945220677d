//! The errors of the file storage, and their classification as an outage or a full disk.

use std::error::Error;
use std::io::{self, ErrorKind};
use std::path::PathBuf;

use super::path::FilePath;
use crate::bucket::BucketFailure;
use crate::tar::LongName;

/// The underlying error of a file error.
pub type Cause = Box<dyn Error + Send + Sync>;

/// The reason why a file operation failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FileError {
    /// A name is not valid in a path.
    #[error("{name:?} is not allowed in the path of a file")]
    Name {
        /// The invalid name, or the path if it is empty or too long.
        name: String,
    },
    /// The name of a file is too long for an archive.
    #[error(transparent)]
    Archive(#[from] LongName),
    /// The location is neither a directory nor a bucket.
    #[error("unsupported file storage `{scheme}:`; use a directory or `s3://BUCKET/PREFIX`")]
    UnknownScheme {
        /// The scheme of the location.
        scheme: String,
    },
    /// The directory cannot be used.
    #[error("cannot use directory {} for files", path.display())]
    Directory {
        /// Path of the directory.
        path: PathBuf,
        /// Error of the operating system.
        source: std::io::Error,
    },
    /// The location cannot be used.
    #[error("cannot store files at {place}")]
    Open {
        /// The location, unless it may contain credentials.
        place: String,
        /// Why the location cannot be used.
        source: Cause,
    },
    /// A file is too long.
    #[error("{path} is longer than {most} bytes")]
    TooLong {
        /// Path of the file.
        path: FilePath,
        /// Maximum length of the file, in bytes.
        most: u64,
    },
    /// The sender of a file stopped before the end.
    #[error("the upload of {path} was interrupted after {received} bytes")]
    BrokenOff {
        /// Path of the file.
        path: FilePath,
        /// Number of bytes received.
        received: u64,
        /// Error of the sender.
        source: Cause,
    },
    /// The bucket does not exist.
    #[error("{path} cannot be {done}: bucket {bucket} does not exist; create it, or use another one")]
    MissingBucket {
        /// Path of the file or folder.
        path: FilePath,
        /// The failed operation, as a past participle.
        done: &'static str,
        /// Name of the bucket.
        bucket: String,
    },
    /// A folder has too many files to list.
    #[error("{folder} has more than {most} files")]
    TooMany {
        /// Path of the folder.
        folder: FilePath,
        /// Maximum number of files in a listed folder.
        most: usize,
    },
    /// An operation of the storage failed.
    #[error("{path} cannot be {done}")]
    Failed {
        /// Path of the file or folder.
        path: FilePath,
        /// The failed operation, as a past participle.
        done: &'static str,
        /// Error of the storage.
        source: Cause,
    },
}

impl FileError {
    /// Returns `true` if the storage did not respond. The same operation may succeed later.
    #[must_use]
    pub fn is_outage(&self) -> bool {
        let Self::Failed { source, .. } = self else { return false };
        matches!(source.downcast_ref(), Some(BucketFailure::Unavailable { .. }))
    }

    /// Returns `true` if the disk is full or a quota is used up.
    #[must_use]
    pub(crate) fn is_full(&self) -> bool {
        let mut cause: Option<&(dyn Error + 'static)> = Some(self);
        while let Some(error) = cause {
            let io = error.downcast_ref::<io::Error>();
            if io.is_some_and(|io| matches!(io.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded)) {
                return true;
            }
            // `io::Error::source` skips the error that it wraps.
            let inner = io.and_then(io::Error::get_ref).map(|inner| inner as &(dyn Error + 'static));
            cause = inner.or_else(|| error.source());
        }
        false
    }
}

impl From<FileError> for crate::Error {
    fn from(error: FileError) -> Self {
        tracing::error!(error = &error as &dyn std::error::Error, "file storage failed");
        if error.is_full() {
            return Self::insufficient_storage("uploaded files");
        }
        if error.is_outage() {
            let reason = "the storage of uploaded files does not respond; try again";
            return Self::unavailable(reason);
        }
        if matches!(error, FileError::MissingBucket { .. }) {
            return Self::internal("the bucket of uploaded files does not exist; see the log of the service");
        }
        Self::internal("cannot store or read files; see the log of the service")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::{Error, ErrorKind};

    #[test]
    fn outage_of_the_storage_is_unavailable_and_a_missing_bucket_is_internal() {
        let path = || FilePath::from_names(["a"]).unwrap();
        let failed =
            |source: BucketFailure| FileError::Failed { path: path(), done: "read", source: source.into() };
        let kind = |error: FileError| Error::from(error).kind();
        assert_eq!(
            kind(failed(BucketFailure::Unavailable { reason: "away".to_owned() })),
            ErrorKind::Unavailable
        );
        let refused = BucketFailure::Refused { status: 403, reason: "no".to_owned() };
        assert_eq!(kind(failed(refused)), ErrorKind::Internal);
        let missing = FileError::MissingBucket { path: path(), done: "read", bucket: "logs".to_owned() };
        let error = Error::from(missing);
        assert_eq!(error.kind(), ErrorKind::Internal);
        assert!(error.reason().contains("bucket of uploaded files does not exist"));
    }
}
