//! Deletes the logs of deleted clusters and of hosts that have left a cluster.

use super::path::{folder_of_cluster, path_of_host};
use crate::Inventory;
use crate::files::FileError;
use crate::id::{ClusterId, HostKey};

/// Deletes all files of a deleted cluster.
///
/// # Errors
///
/// Returns an error if the storage fails.
pub(crate) async fn delete_files_of_cluster(
    inventory: &Inventory,
    cluster: ClusterId,
) -> Result<(), FileError> {
    inventory.files().delete_folder(&folder_of_cluster(cluster)?).await
}

/// Deletes the logs that a host has uploaded for a cluster. Keeps them if the host is in the cluster again, because the
/// next upload replaces them.
///
/// # Errors
///
/// Returns the reason if the database or the storage fails.
pub(crate) async fn delete_logs_of_host(
    inventory: &Inventory,
    cluster: ClusterId,
    key: HostKey,
) -> Result<(), String> {
    let host = key.find_any(inventory.records()).await.map_err(|error| error.to_string())?;
    if host.is_some_and(|host| host.record.deleted_at.is_none() && host.record.cluster_id == Some(cluster)) {
        return Ok(());
    }
    delete_host_file(inventory, cluster, key).await.map_err(|error| error.to_string())
}

async fn delete_host_file(inventory: &Inventory, cluster: ClusterId, key: HostKey) -> Result<(), FileError> {
    inventory.files().delete(&path_of_host(cluster, key.infra_env_id, key.host_id)?).await
}
