//! Logs of hosts and of the controllers of clusters: sent as files, fetched alone or together.

mod download;
mod routes;
mod upload;

use super::Refusal;
use super::files::{FileError, FilePath};
use super::id::{ClusterId, HostId, InfraEnvId};

pub(crate) use routes::routes;

/// The most that logs may have, in bytes.
const MOST_LOGS: u64 = 262_144_000;

/// Where the logs of a host are kept.
fn path_of_host(cluster: ClusterId, infra_env: InfraEnvId, host: HostId) -> Result<FilePath, Refusal> {
    let (cluster, infra_env, host) = (cluster.to_string(), infra_env.to_string(), host.to_string());
    Ok(FilePath::of(["clusters", &cluster, "logs", "hosts", &infra_env, &host])?)
}

/// Where the logs of a cluster's controller are kept.
fn path_of_controller(cluster: ClusterId) -> Result<FilePath, Refusal> {
    Ok(FilePath::of(["clusters", &cluster.to_string(), "logs", "controller"])?)
}

impl From<FileError> for Refusal {
    fn from(error: FileError) -> Self {
        tracing::error!(error = &error as &dyn std::error::Error, "files cannot be kept");
        Self::internal("files cannot be kept or read; the log of the service says why")
    }
}
