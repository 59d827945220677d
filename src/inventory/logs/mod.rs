//! Logs of hosts and of the controllers of clusters: sent as files, fetched alone or together.

mod download;
mod routes;
mod upload;

use super::Inventory;
use super::files::{FileError, FilePath};
use super::host::HostRecord;
use super::id::{ClusterId, HostId, InfraEnvId};
use crate::api_error::ApiError;

pub(crate) use routes::routes;

/// The most that logs may have, in bytes.
const MOST_LOGS: u64 = 262_144_000;

/// Where the logs of a host are kept.
fn path_of_host(cluster: ClusterId, infra_env: InfraEnvId, host: HostId) -> Result<FilePath, ApiError> {
    let (cluster, infra_env, host) = (cluster.to_string(), infra_env.to_string(), host.to_string());
    Ok(FilePath::of(["clusters", &cluster, "logs", "hosts", &infra_env, &host])?)
}

/// Where the logs of a cluster's controller are kept.
fn path_of_controller(cluster: ClusterId) -> Result<FilePath, ApiError> {
    Ok(FilePath::of(["clusters", &cluster.to_string(), "logs", "controller"])?)
}

/// Deletes all files of a cluster that is gone. Says whether they are gone too.
pub(super) async fn delete_of_cluster(inventory: &Inventory, cluster: ClusterId) -> bool {
    let files = inventory.files().clone();
    until_done(async move { files.delete_folder(&FilePath::of(["clusters", &cluster.to_string()])?).await })
        .await
}

/// Deletes the logs of a host that is gone, from its cluster at least.
pub(super) async fn delete_of_host(inventory: &Inventory, cluster: Option<ClusterId>, host: &HostRecord) {
    let Some(cluster) = cluster else { return };
    if let Ok(path) = path_of_host(cluster, host.infra_env_id, host.id) {
        delete(inventory, path).await;
    }
}

async fn delete(inventory: &Inventory, path: FilePath) {
    let files = inventory.files().clone();
    until_done(async move { files.delete(&path).await }).await;
}

/// Deletes files of what is gone, also if nobody waits any more. What is left over only takes room.
async fn until_done(deletion: impl Future<Output = Result<(), FileError>> + Send + 'static) -> bool {
    let deletion = async {
        let deleted = deletion.await;
        if let Err(error) = &deleted {
            tracing::error!(error = error as &dyn std::error::Error, "files of what is gone stay");
        }
        deleted.is_ok()
    };
    tokio::spawn(deletion).await.unwrap_or_default()
}

impl From<FileError> for ApiError {
    fn from(error: FileError) -> Self {
        tracing::error!(error = &error as &dyn std::error::Error, "files cannot be kept");
        if error.is_full() {
            return Self::insufficient_storage("uploaded files");
        }
        Self::internal("files cannot be kept or read; the log of the service says why")
    }
}
