//! Logs come in.

use axum::extract::multipart::{Multipart, MultipartError};
use axum::http::StatusCode;
use bytes::Bytes;
use futures_util::{Stream, StreamExt};

use super::{MOST_LOGS, delete, path_of_controller, path_of_host};
use crate::api_error::ApiError;
use crate::inventory::Inventory;
use crate::inventory::auth::LogsSource;
use crate::inventory::event::{Event, Severity};
use crate::inventory::files::{Cause, FileError, FilePath, MOST_BUFFERED};
use crate::inventory::host;
use crate::inventory::id::{ClusterId, HostId, InfraEnvId};
use crate::inventory::request::{Query, RequestId, Room};
use crate::inventory::store::{Change, Stored};
use crate::inventory::time::{Micros, Millis};

/// Whose logs come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sender {
    /// Those of a host.
    Host(HostId, Option<InfraEnvId>),
    /// Those of the cluster's controller.
    Controller,
}

impl Sender {
    /// What a query says.
    pub(super) fn read(query: &Query, source: &LogsSource) -> Result<Self, ApiError> {
        const KINDS: [(&str, bool); 2] = [("host", true), ("controller", false)];
        let of_host = query.choice("logs_type", &KINDS)?.ok_or_else(|| Query::missing("logs_type"))?;
        match (of_host, source.host) {
            (false, _) => Ok(Self::Controller),
            (true, Some(host)) => Ok(Self::Host(host, source.infra_env)),
            (true, None) => Err(ApiError::bad("host_id is required for the logs of a host")),
        }
    }
}

/// Logs that come.
#[derive(Clone, Copy, Debug)]
pub(super) struct Upload {
    pub(super) cluster: ClusterId,
    pub(super) sender: Sender,
    pub(super) request: RequestId,
}

impl Upload {
    /// Keeps them in place of those that came before.
    pub(super) async fn keep(self, inventory: &Inventory, body: Multipart) -> Result<(), ApiError> {
        inventory.stored_cluster(self.cluster).await?;
        let (path, noted) = match self.sender {
            Sender::Controller => {
                let path = path_of_controller(self.cluster)?;
                write(inventory, &path, body).await?;
                (path, self.note_controller(inventory).await)
            }
            Sender::Host(id, infra_env) => {
                let host = host::find_in_cluster(inventory, self.cluster, id, infra_env).await?;
                let path = path_of_host(self.cluster, host.infra_env_id, id)?;
                write(inventory, &path, body).await?;
                (path, self.note_host(inventory, id, host.infra_env_id).await)
            }
        };
        let is_gone =
            |refusal: &ApiError| matches!(refusal.status(), StatusCode::NOT_FOUND | StatusCode::CONFLICT);
        if noted.as_ref().is_err_and(is_gone) {
            // Whose logs they are went while they came, and what was kept of it before.
            delete(inventory, path).await;
        }
        noted
    }

    async fn note_host(
        self,
        inventory: &Inventory,
        id: HostId,
        infra_env: InfraEnvId,
    ) -> Result<(), ApiError> {
        inventory.stored_cluster(self.cluster).await?;
        host::note_logs(inventory, self.cluster, (infra_env, id), self.request).await
    }

    async fn note_controller(self, inventory: &Inventory) -> Result<(), ApiError> {
        inventory
            .records()
            .change(|| async {
                let mut change = Change::new();
                let Stored { record: mut cluster, generation, .. } =
                    inventory.stored_cluster(self.cluster).await?;
                cluster.controller_logs_collected_at = Millis::now();
                cluster.updated_at = Micros::now();
                change.replace(&cluster, generation);
                let message = format!("Uploaded logs for the cluster {}", self.cluster);
                let event = Event::now("cluster_logs_uploaded", Severity::Info, message);
                change.tell(event.of_cluster(Some(self.cluster)).in_answer_to(self.request.0));
                Ok((change, ()))
            })
            .await
    }
}

/// Writes the file of a form as it comes.
async fn write(inventory: &Inventory, path: &FilePath, mut form: Multipart) -> Result<(), ApiError> {
    while let Some(field) = form.next_field().await.map_err(|error| unreadable(&error))? {
        if field.name() != Some("upfile") {
            continue;
        }
        let content = with_room(inventory.uploads().room(), field);
        return match inventory.files().put(path, content, MOST_LOGS).await {
            Ok(_) => Ok(()),
            Err(FileError::TooLong { most, .. }) => Err(ApiError::new(
                StatusCode::PAYLOAD_TOO_LARGE,
                format!("logs may have {most} bytes, and these have more"),
            )),
            Err(FileError::BrokenOff { source, .. }) => Err(refused(source)),
            Err(error) => Err(error.into()),
        };
    }
    Err(ApiError::malformed("upfile in formData is required"))
}

/// A file as it comes, as long as there is room for what is in memory of it.
fn with_room<E: Into<Cause>>(
    mut room: Room,
    content: impl Stream<Item = Result<Bytes, E>> + Send,
) -> impl Stream<Item = Result<Bytes, Cause>> + Send {
    let mut received = 0_usize;
    content.map(move |bytes| {
        let bytes = bytes.map_err(Into::into)?;
        received = received.saturating_add(bytes.len());
        room.hold(received.min(MOST_BUFFERED))?;
        Ok(bytes)
    })
}

/// Why a file did not come to its end.
fn refused(cause: Cause) -> ApiError {
    match cause.downcast::<ApiError>() {
        Ok(refusal) => *refusal,
        Err(cause) => match cause.downcast_ref::<MultipartError>() {
            Some(error) => unreadable(error),
            None => ApiError::bad(format!("the logs broke off: {cause}")),
        },
    }
}

fn unreadable(error: &MultipartError) -> ApiError {
    if error.status().is_server_error() {
        // What it could not read is the body, which the client did not send to its end.
        return ApiError::malformed(format!("the logs broke off: {}", error.body_text()));
    }
    ApiError::at_gate(error.status(), error.body_text())
}

#[cfg(test)]
mod tests {
    use std::io;

    use futures_util::{TryStreamExt, stream};

    use super::*;
    use crate::inventory::request::LargeBodies;

    /// The first that goes wrong with so many MiB of logs, where there is room for so much.
    async fn fault(room: usize, mebibytes: usize) -> Option<ApiError> {
        let pieces = (0..mebibytes).map(|_| Ok::<_, io::Error>(Bytes::from_static(&[0; 1 << 20])));
        let content = with_room(LargeBodies::with_room(room).room(), stream::iter(pieces));
        content.try_for_each(|_| async { Ok(()) }).await.err().map(refused)
    }

    #[tokio::test]
    async fn logs_that_come_slowly_do_not_take_all_memory() {
        let refusal = fault(MOST_BUFFERED / 2, 100).await.unwrap();
        assert_eq!(refusal.status(), StatusCode::SERVICE_UNAVAILABLE);
        assert_eq!(fault(MOST_BUFFERED / 2, 12).await, None);
        assert_eq!(fault(MOST_BUFFERED, 100).await, None, "what was written takes no room");
    }

    #[tokio::test]
    async fn logs_that_break_off_are_no_lack_of_room() {
        let pieces = [Ok(Bytes::from_static(b"x")), Err(io::Error::other("gone"))];
        let content = with_room(LargeBodies::default().room(), stream::iter(pieces));
        let cause = content.try_for_each(|_| async { Ok(()) }).await.unwrap_err();
        assert_eq!(refused(cause).reason(), "the logs broke off: gone");
    }
}
