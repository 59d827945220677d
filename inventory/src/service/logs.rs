//! Logs of hosts and cluster controllers: upload and download.

use super::Inventory;
use crate::error::Error;
use crate::files::{FileError, FilePath};
use crate::id::{ClusterId, HostId, InfraEnvId};

/// The most bytes of one upload.
pub(crate) const MAX_LOGS: u64 = 262_144_000;

/// Returns the path of a host's logs.
pub(crate) fn path_of_host(
    cluster: ClusterId,
    infra_env: InfraEnvId,
    host: HostId,
) -> Result<FilePath, FileError> {
    let (cluster, infra_env, host) = (cluster.to_string(), infra_env.to_string(), host.to_string());
    FilePath::from_names(["clusters", &cluster, "logs", "hosts", &infra_env, &host])
}

/// Returns the path of the logs of a cluster's controller.
pub(crate) fn path_of_controller(cluster: ClusterId) -> Result<FilePath, Error> {
    Ok(FilePath::from_names(["clusters", &cluster.to_string(), "logs", "controller"])?)
}

/// Deletes all files of a removed cluster.
///
/// # Errors
///
/// Returns an error if the storage fails.
pub(crate) async fn delete_files_of_cluster(
    inventory: &Inventory,
    cluster: ClusterId,
) -> Result<(), FileError> {
    let folder = FilePath::from_names(["clusters", &cluster.to_string()])?;
    inventory.files().delete_folder(&folder).await
}

/// Deletes a host's logs of a cluster.
///
/// # Errors
///
/// Returns an error if the storage fails.
pub(crate) async fn delete_logs_of_host(
    inventory: &Inventory,
    cluster: ClusterId,
    (infra_env, host): (InfraEnvId, HostId),
) -> Result<(), FileError> {
    inventory.files().delete(&path_of_host(cluster, infra_env, host)?).await
}

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
