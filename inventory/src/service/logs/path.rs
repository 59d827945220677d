//! The paths of clusters' files in the file storage.

use crate::error::Error;
use crate::files::{FileError, FilePath};
use crate::id::{ClusterId, HostId, InfraEnvId};

/// Returns the folder that contains all files of a cluster.
pub(crate) fn folder_of_cluster(cluster: ClusterId) -> Result<FilePath, FileError> {
    FilePath::from_names(["clusters", &cluster.to_string()])
}

/// Returns the path of the logs that a host has uploaded for a cluster.
pub(crate) fn path_of_host(
    cluster: ClusterId,
    infra_env: InfraEnvId,
    host: HostId,
) -> Result<FilePath, FileError> {
    let (cluster, infra_env, host) = (cluster.to_string(), infra_env.to_string(), host.to_string());
    FilePath::from_names(["clusters", &cluster, "logs", "hosts", &infra_env, &host])
}

/// Returns the path of the logs that a cluster's controller has uploaded.
pub(crate) fn path_of_controller(cluster: ClusterId) -> Result<FilePath, Error> {
    Ok(FilePath::from_names(["clusters", &cluster.to_string(), "logs", "controller"])?)
}
