//! Admission webhooks: they deny faulty objects when a user applies them.
//!
//! `rules` implements the rules of the Assisted Installer's webhooks. `faults` finds faults that a reconciliation would
//! report later. A fault that the object already had before a change does not block the change.
//!
//! All replicas review requests. Only the leader creates the certificates and writes the configurations.

pub(crate) mod rules;

mod certificates;
mod configuration;
mod faults;
mod review;
mod reviewer;
mod server;
mod settings;

use std::error::Error;
use std::path::Path;
use std::sync::Arc;

use inventory::{Clock, Inventory};
use k8s_openapi::api::core::v1::Secret;
use kube::{Api, Client};
use tokio::task::JoinSet;
use tokio::time::sleep;

pub use certificates::SECRET;
pub use settings::{WebhookCertificate, WebhookEndpoint, WebhookSettings, WebhookTls};

use crate::errors::RequestError;
use crate::mapping::InfraEnvCaches;
use crate::settings::Settings;
use crate::writer::Writer;
use certificates::{CertificateState, RotationError, ServedCertificate, follow_files, follow_secret};
use configuration::Configurations;
use faults::FaultCheck;
use reviewer::Reviewer;

/// The webhooks of this replica.
pub(crate) struct Webhooks {
    client: Client,
    inventory: Inventory,
    namespace: String,
    settings: WebhookSettings,
    configurations: Configurations,
}

/// The reason why the leader could not create the certificates or write the configurations.
#[derive(Debug, thiserror::Error)]
enum PublishError {
    #[error(transparent)]
    Request(#[from] RequestError),
    #[error(transparent)]
    Rotation(#[from] RotationError),
    #[error("cannot read {path}")]
    File { path: String, source: std::io::Error },
}

impl Webhooks {
    pub(crate) fn new(
        client: Client,
        inventory: Inventory,
        operator: &Settings,
        settings: WebhookSettings,
    ) -> Self {
        let configurations = Configurations {
            endpoint: settings.endpoint.clone(),
            name_suffix: settings.name_suffix.clone(),
            namespaces: operator.namespaces.clone(),
        };
        Self { client, inventory, namespace: operator.lease_namespace.clone(), settings, configurations }
    }

    /// Starts the HTTPS server, and the task that reloads its certificate.
    pub(crate) fn start(&self, tasks: &mut JoinSet<()>, caches: &InfraEnvCaches) {
        let served = ServedCertificate::new(Arc::clone(&self.settings.tls.provider));
        match &self.settings.certificate {
            WebhookCertificate::Managed => tasks.spawn(follow_secret(served.clone(), self.secrets())),
            WebhookCertificate::Files { certificate, key, .. } => {
                tasks.spawn(follow_files(served.clone(), certificate.clone(), key.clone()))
            }
        };
        match served.acceptor(&self.settings.tls.versions) {
            Ok(tls) => {
                let check = FaultCheck::new(self.inventory.clone(), caches.clone());
                tasks.spawn(server::serve(self.settings.listener.clone(), tls, Reviewer::new(check)));
            }
            Err(error) => tracing::error!(error = &error as &dyn Error, "cannot serve webhooks"),
        }
    }

    /// Keeps the certificates and the configurations current while this replica is the leader. Never returns.
    pub(crate) async fn lead(&self, writer: &Writer) {
        let mut is_failing = false;
        loop {
            match self.publish(writer).await {
                Ok(()) => is_failing = false,
                Err(error) => {
                    let error = &error as &dyn Error;
                    if std::mem::replace(&mut is_failing, true) {
                        tracing::debug!(error, "could not publish the webhooks, will retry");
                    } else {
                        tracing::warn!(error, "could not publish the webhooks, will retry");
                    }
                }
            }
            sleep(self.settings.interval).await;
        }
    }

    async fn publish(&self, writer: &Writer) -> Result<(), PublishError> {
        match &self.settings.certificate {
            WebhookCertificate::Managed => self.publish_managed(writer, self.inventory.clock()).await,
            WebhookCertificate::Files { authorities, .. } => {
                let bundle = match authorities {
                    Some(path) => Some(read(path).await?),
                    None => None,
                };
                Ok(self.configurations.ensure(&self.client, writer, bundle.as_deref()).await?)
            }
        }
    }

    /// Publishes the stored authorities first, and then renews what is due. A new authority must not sign before the
    /// API servers trust it.
    async fn publish_managed(&self, writer: &Writer, clock: &dyn Clock) -> Result<(), PublishError> {
        let (secrets, names) = (self.secrets(), self.settings.endpoint.names());
        let (stored, version) = certificates::read(writer, &secrets).await?;
        if let Some(stored) = &stored {
            self.publish_bundle(writer, stored).await?;
        }
        let Some(renewed) = CertificateState::renewed(stored.as_ref(), clock.now(), &names)? else {
            return Ok(());
        };
        certificates::write(writer, &secrets, (&renewed, version.as_ref())).await?;
        self.publish_bundle(writer, &renewed).await?;
        tracing::info!("certificates of the webhooks renewed");
        Ok(())
    }

    async fn publish_bundle(&self, writer: &Writer, state: &CertificateState) -> Result<(), RequestError> {
        self.configurations.ensure(&self.client, writer, Some(&state.bundle())).await
    }

    fn secrets(&self) -> Api<Secret> {
        Api::namespaced(self.client.clone(), &self.namespace)
    }
}

async fn read(path: &Path) -> Result<String, PublishError> {
    let text = tokio::fs::read_to_string(path).await;
    text.map_err(|source| PublishError::File { path: path.display().to_string(), source })
}
