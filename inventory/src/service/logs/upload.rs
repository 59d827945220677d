//! Uploads of logs by hosts and by the controllers of clusters.

use bytes::Bytes;
use futures_util::Stream;

use super::path::{path_of_controller, path_of_host};
use crate::Inventory;
use crate::error::{Error, ErrorKind};
use crate::files::{Cause, FileError, FilePath};
use crate::id::{ClusterId, HostId, HostKey, InfraEnvId};
use crate::request_id::RequestId;

/// Maximum length of an uploaded file, in bytes.
pub(crate) const MAX_LOGS: u64 = 262_144_000;

/// The sender of uploaded logs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LogsSender {
    /// A host, with its infra-env if the request contains it.
    Host(HostId, Option<InfraEnvId>),
    Controller,
}

/// An accepted upload of logs. The cluster and the host exist.
#[derive(Debug)]
pub(crate) struct LogsUpload<'a> {
    inventory: &'a Inventory,
    cluster: ClusterId,
    /// `None` if the cluster's controller sends the logs.
    host: Option<HostKey>,
    path: FilePath,
    request: RequestId,
}

impl Inventory {
    /// Prepares to accept an upload of logs.
    ///
    /// # Errors
    ///
    /// Returns an error if the cluster does not exist, or if the host is not in the cluster.
    pub(crate) async fn start_logs_upload(
        &self,
        cluster: ClusterId,
        sender: LogsSender,
        request: RequestId,
    ) -> Result<LogsUpload<'_>, Error> {
        self.cluster(cluster).await?;
        let (host, path) = match sender {
            LogsSender::Controller => (None, path_of_controller(cluster)?),
            LogsSender::Host(host_id, infra_env) => {
                let infra_env_id = self.host_in_cluster(cluster, host_id, infra_env).await?.infra_env_id;
                let path = path_of_host(cluster, infra_env_id, host_id)?;
                (Some(HostKey { infra_env_id, host_id }), path)
            }
        };
        Ok(LogsUpload { inventory: self, cluster, host, path, request })
    }
}

impl LogsUpload<'_> {
    /// Stores the uploaded logs, and replaces earlier ones.
    ///
    /// # Errors
    ///
    /// Returns an error if the content is too long or incomplete, if the cluster or host was removed during the upload,
    /// or if the database or the file storage fails.
    pub(crate) async fn store<E: Into<Cause>>(
        self,
        content: impl Stream<Item = Result<Bytes, E>> + Send,
    ) -> Result<(), Error> {
        self.write(content).await?;
        let noted = match self.host {
            Some(host) => self.note_host(host).await,
            None => self.inventory.record_controller_logs(self.cluster, Some(self.request)).await,
        };
        let is_gone = |refusal: &Error| matches!(refusal.kind(), ErrorKind::NotFound | ErrorKind::Conflict);
        if noted.as_ref().is_err_and(is_gone) {
            // The host has left the cluster, or the cluster was deleted, during the upload. The job that deletes the
            // files may already have run, so this file must be deleted here.
            delete(self.inventory, self.path).await;
        }
        noted
    }

    async fn write<E: Into<Cause>>(
        &self,
        content: impl Stream<Item = Result<Bytes, E>> + Send,
    ) -> Result<(), Error> {
        match self.inventory.files().put(&self.path, content, MAX_LOGS).await {
            Ok(_) => Ok(()),
            Err(FileError::TooLong { most, .. }) => {
                Err(Error::too_large(format!("logs are too large (limit {most} bytes)")))
            }
            Err(FileError::BrokenOff { source, .. }) => Err(interrupted_upload_error(source)),
            Err(error) => Err(error.into()),
        }
    }

    async fn note_host(&self, host: HostKey) -> Result<(), Error> {
        self.inventory.cluster(self.cluster).await?;
        self.inventory.record_log_upload(self.cluster, host, Some(self.request)).await
    }
}

/// Converts the cause of an incomplete upload into an error for the client.
fn interrupted_upload_error(cause: Cause) -> Error {
    match cause.downcast::<Error>() {
        Ok(error) => *error,
        Err(cause) => Error::invalid(format!("the upload of logs was interrupted: {cause}")),
    }
}

/// Deletes a file, even if the client disconnects meanwhile. If the deletion fails, the file only occupies space.
async fn delete(inventory: &Inventory, path: FilePath) {
    let files = inventory.files().clone();
    let deletion = tokio::spawn(async move { files.delete(&path).await });
    if let Ok(Err(error)) = deletion.await {
        let error = &error as &dyn std::error::Error;
        tracing::error!(error, "could not delete logs whose host or cluster was removed");
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    #[test]
    fn incomplete_upload_reports_its_cause() {
        let error = interrupted_upload_error(io::Error::other("gone").into());
        assert_eq!(error.reason(), "the upload of logs was interrupted: gone");
        let error = interrupted_upload_error(Error::unavailable("no memory").into());
        assert_eq!((error.kind(), error.reason()), (ErrorKind::Unavailable, "no memory"));
    }
}
