//! Deletion of logs.

use super::path::path_of_host;
use crate::Inventory;
use crate::files::{FileError, FilePath};
use crate::id::{ClusterId, HostId, InfraEnvId};

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
