//! Where the logs of hosts and controllers are in the file storage.

use crate::error::Error;
use crate::files::{FileError, FilePath};
use crate::id::{ClusterId, HostId, InfraEnvId};

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
