//! Uploads of logs.

use axum::extract::multipart::{Multipart, MultipartError};
use axum::http::StatusCode;
use bytes::Bytes;
use futures_util::{Stream, StreamExt};

use crate::Inventory;
use crate::api::auth::LogsSource;
use crate::api::{ApiState, Query, ReservedMemory};
use crate::error::{Error, ErrorKind};
use crate::files::{Cause, FileError, FilePath, MAX_BUFFERED};
use crate::id::{ClusterId, HostId, HostKey, InfraEnvId};
use crate::request_id::RequestId;
use crate::service::logs::{MAX_LOGS, path_of_controller, path_of_host};

/// The source of uploaded logs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LogsSender {
    /// A host, with its infra-env if that is known.
    Host(HostId, Option<InfraEnvId>),
    /// The cluster's controller.
    Controller,
}

impl LogsSender {
    /// Reads the query parameter `logs_type`.
    pub(crate) fn read(query: &Query, source: &LogsSource) -> Result<Self, Error> {
        const KINDS: [(&str, bool); 2] = [("host", true), ("controller", false)];
        let of_host = query.choice("logs_type", &KINDS)?.ok_or_else(|| Query::missing("logs_type"))?;
        match (of_host, source.host) {
            (false, _) => Ok(Self::Controller),
            (true, Some(host)) => Ok(Self::Host(host, source.infra_env)),
            (true, None) => Err(Error::invalid("host_id is required for the logs of a host")),
        }
    }
}

/// An upload of logs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Upload {
    pub(crate) cluster: ClusterId,
    pub(crate) sender: LogsSender,
    pub(crate) request: RequestId,
}

impl Upload {
    /// Stores the logs, replacing earlier ones.
    pub(crate) async fn store(self, api: &ApiState, body: Multipart) -> Result<(), Error> {
        let inventory = api.inventory();
        inventory.cluster(self.cluster).await?;
        let (path, noted) = match self.sender {
            LogsSender::Controller => {
                let path = path_of_controller(self.cluster)?;
                write(api, &path, body).await?;
                (path, inventory.record_controller_logs(self.cluster, Some(self.request)).await)
            }
            LogsSender::Host(id, infra_env) => {
                let host = inventory.host_in_cluster(self.cluster, id, infra_env).await?;
                let path = path_of_host(self.cluster, host.infra_env_id, id)?;
                write(api, &path, body).await?;
                (path, self.note_host(inventory, id, host.infra_env_id).await)
            }
        };
        let is_gone = |refusal: &Error| matches!(refusal.kind(), ErrorKind::NotFound | ErrorKind::Conflict);
        if noted.as_ref().is_err_and(is_gone) {
            // The host or cluster was removed during the upload, and its earlier files with it. Remove this one too.
            delete(inventory, path).await;
        }
        noted
    }

    async fn note_host(self, inventory: &Inventory, id: HostId, infra_env: InfraEnvId) -> Result<(), Error> {
        inventory.cluster(self.cluster).await?;
        let host = HostKey { infra_env_id: infra_env, host_id: id };
        inventory.record_log_upload(self.cluster, host, Some(self.request)).await
    }
}

/// Streams the field `upfile` of the form to a file.
async fn write(api: &ApiState, path: &FilePath, mut form: Multipart) -> Result<(), Error> {
    while let Some(field) = form.next_field().await.map_err(|error| unreadable(&error))? {
        if field.name() != Some("upfile") {
            continue;
        }
        let content = with_reserved_memory(api.uploads().empty_reservation(), field);
        return match api.inventory().files().put(path, content, MAX_LOGS).await {
            Ok(_) => Ok(()),
            Err(FileError::TooLong { most, .. }) => {
                Err(Error::too_large(format!("logs are too large (limit {most} bytes)")))
            }
            Err(FileError::BrokenOff { source, .. }) => Err(interrupted_upload_error(source)),
            Err(error) => Err(error.into()),
        };
    }
    Err(Error::malformed("upfile in formData is required"))
}

/// Reserves memory for the part of a file that is buffered while it is streamed.
fn with_reserved_memory<E: Into<Cause>>(
    mut room: ReservedMemory,
    content: impl Stream<Item = Result<Bytes, E>> + Send,
) -> impl Stream<Item = Result<Bytes, Cause>> + Send {
    let mut received = 0_usize;
    content.map(move |bytes| {
        let bytes = bytes.map_err(Into::into)?;
        received = received.saturating_add(bytes.len());
        room.extend_to(received.min(MAX_BUFFERED))?;
        Ok(bytes)
    })
}

/// Converts the cause of an incomplete upload into an API error.
fn interrupted_upload_error(cause: Cause) -> Error {
    match cause.downcast::<Error>() {
        Ok(refusal) => *refusal,
        Err(cause) => match cause.downcast_ref::<MultipartError>() {
            Some(error) => unreadable(error),
            None => Error::invalid(format!("the upload of logs was interrupted: {cause}")),
        },
    }
}

fn unreadable(error: &MultipartError) -> Error {
    if error.status().is_server_error() {
        // axum reports a failed read of the body as a server error, but the client did not send all of it.
        return Error::malformed(format!("the upload of logs was interrupted: {}", error.body_text()));
    }
    let text = error.body_text();
    if error.status() == StatusCode::PAYLOAD_TOO_LARGE {
        return Error::too_large(text).of_request();
    }
    Error::malformed(text)
}

/// Deletes a file, even if the client disconnects. A file that remains after a failure only takes up space.
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

    use futures_util::{TryStreamExt, stream};

    use super::*;
    use crate::api::LargeBodies;

    /// Returns the first error of an upload of `mebibytes` MiB with a memory limit of `room` bytes.
    async fn fault(room: usize, mebibytes: usize) -> Option<Error> {
        let pieces = (0..mebibytes).map(|_| Ok::<_, io::Error>(Bytes::from_static(&[0; 1 << 20])));
        let content =
            with_reserved_memory(LargeBodies::with_max_bytes(room).empty_reservation(), stream::iter(pieces));
        content.try_for_each(|_| async { Ok(()) }).await.err().map(interrupted_upload_error)
    }

    #[tokio::test]
    async fn slow_log_uploads_have_a_memory_limit() {
        let refusal = fault(MAX_BUFFERED / 2, 100).await.unwrap();
        assert_eq!(refusal.kind(), ErrorKind::Unavailable);
        assert_eq!(fault(MAX_BUFFERED / 2, 12).await, None);
        assert_eq!(fault(MAX_BUFFERED, 100).await, None, "what was written takes no room");
    }

    #[tokio::test]
    async fn incomplete_upload_reports_its_cause() {
        let pieces = [Ok(Bytes::from_static(b"x")), Err(io::Error::other("gone"))];
        let content = with_reserved_memory(
            LargeBodies::with_max_bytes(MAX_BUFFERED).empty_reservation(),
            stream::iter(pieces),
        );
        let cause = content.try_for_each(|_| async { Ok(()) }).await.unwrap_err();
        assert_eq!(interrupted_upload_error(cause).reason(), "the upload of logs was interrupted: gone");
    }
}
