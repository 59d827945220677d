//! What clients see of errors of the file storage.

use crate::error::Error;
use crate::files::FileError;

impl From<FileError> for Error {
    fn from(error: FileError) -> Self {
        tracing::error!(error = &error as &dyn std::error::Error, "file storage failed");
        if error.is_full() {
            return Self::insufficient_storage("uploaded files");
        }
        if error.is_outage() {
            let reason = "the storage of uploaded files does not answer; try again";
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
    use crate::BucketFailure;
    use crate::error::ErrorKind;
    use crate::files::FilePath;

    #[test]
    fn storage_that_does_not_answer_is_unavailable_and_a_missing_bucket_is_not() {
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
