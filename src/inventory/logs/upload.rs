//! Logs come in.

use axum::extract::multipart::{Multipart, MultipartError};
use axum::http::StatusCode;

use super::{MOST_LOGS, delete, path_of_controller, path_of_host};
use crate::inventory::event::{Event, Severity};
use crate::inventory::files::{FileError, FilePath};
use crate::inventory::host;
use crate::inventory::id::{ClusterId, HostId, InfraEnvId};
use crate::inventory::request::{Query, RequestId};
use crate::inventory::store::{Change, Stored};
use crate::inventory::time::{Micros, Millis};
use crate::inventory::{Inventory, Refusal};

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
    pub(super) fn read(query: &Query) -> Result<Self, Refusal> {
        const KINDS: [(&str, bool); 2] = [("host", true), ("controller", false)];
        let of_host = query.choice("logs_type", &KINDS)?.ok_or_else(|| Query::missing("logs_type"))?;
        let (host, infra_env) = (query.id("host_id")?, query.id("infra_env_id")?);
        match (of_host, host) {
            (false, _) => Ok(Self::Controller),
            (true, Some(host)) => Ok(Self::Host(host, infra_env)),
            (true, None) => Err(Refusal::bad("host_id is required for the logs of a host")),
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
    pub(super) async fn keep(self, inventory: &Inventory, body: Multipart) -> Result<(), Refusal> {
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
        if noted.as_ref().is_err_and(|refusal| refusal.status() == StatusCode::NOT_FOUND) {
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
    ) -> Result<(), Refusal> {
        inventory.stored_cluster(self.cluster).await?;
        host::note_logs(inventory, infra_env, id, self.request).await
    }

    async fn note_controller(self, inventory: &Inventory) -> Result<(), Refusal> {
        inventory
            .records()
            .change(|| async {
                let mut change = Change::new();
                let Stored { record: mut cluster, generation } =
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
async fn write(inventory: &Inventory, path: &FilePath, mut form: Multipart) -> Result<(), Refusal> {
    while let Some(field) = form.next_field().await.map_err(|error| unreadable(&error))? {
        if field.name() != Some("upfile") {
            continue;
        }
        return match inventory.files().put(path, field, MOST_LOGS).await {
            Ok(_) => Ok(()),
            Err(FileError::TooLong { most, .. }) => Err(Refusal::new(
                StatusCode::PAYLOAD_TOO_LARGE,
                format!("logs may have {most} bytes, and these have more"),
            )),
            Err(FileError::BrokenOff { source, .. }) => match source.downcast_ref::<MultipartError>() {
                Some(error) => Err(unreadable(error)),
                None => Err(Refusal::bad(format!("the logs broke off: {source}"))),
            },
            Err(error) => Err(error.into()),
        };
    }
    Err(Refusal::malformed("upfile in formData is required"))
}

fn unreadable(error: &MultipartError) -> Refusal {
    if error.status().is_server_error() {
        // What it could not read is the body, which the client did not send to its end.
        return Refusal::malformed(format!("the logs broke off: {}", error.body_text()));
    }
    Refusal::at_gate(error.status(), error.body_text())
}
