//! Image inputs from the inventory of this process.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use ignition::network::MacAddr;

use super::artifact::Artifact;
use super::inputs::{Currency, ImageCredentials, ImageInputs, InfraEnvSnapshot, SnapshotState, SourceStatus};
use super::source_error::SourceError;
use discovery::RenderedConfig;
use inventory::Inventory;
use inventory::api::ApiError;
use inventory::id::InfraEnvId;
use inventory::service::infra_envs::{DatabaseStatus, IpxeScript, ServedInfraEnv};
use inventory::store::{ChangeKind, FeedCache, Key, Kind, RecordChange};
use uuid::Uuid;

/// Image inputs from the inventory of this process.
#[derive(Clone, Debug)]
pub struct EmbeddedInputs {
    inventory: Inventory,
    /// The removal listeners. The feed has only weak references to them, so they are kept here.
    listeners: Arc<Mutex<Vec<Arc<dyn FeedCache>>>>,
}

impl EmbeddedInputs {
    /// Creates a source from an inventory.
    #[must_use]
    pub fn new(inventory: Inventory) -> Self {
        Self { inventory, listeners: Arc::default() }
    }

    /// Returns the infra-env in a snapshot of this source.
    fn served(state: &SnapshotState) -> Result<&ServedInfraEnv, SourceError> {
        state.downcast_ref().ok_or_else(|| SourceError::internal("infra-env belongs to another inventory"))
    }
}

#[async_trait]
impl ImageInputs for EmbeddedInputs {
    async fn current_snapshot(
        &self,
        id: Uuid,
        artifact: Artifact,
        access: &ImageCredentials,
    ) -> Result<InfraEnvSnapshot, SourceError> {
        let id = InfraEnvId(id);
        if artifact == Artifact::DisconnectedIso {
            return Err(SourceError::not_found(
                "disconnected.iso is not supported; use full.iso or minimal.iso",
            ));
        }
        let (url_token, user_token) = match access {
            ImageCredentials::ApiKey(token) => (Some(token), None),
            ImageCredentials::Authorization(token) => (None, Some(token)),
            ImageCredentials::Nothing | ImageCredentials::ImageToken(_) => (None, None),
        };
        let served = self.inventory.served_infra_env(id, url_token, user_token).await?;
        let record = served.record();
        let created_at = record.created_at.0.ok_or_else(|| missing_time_error(id, "created_at"))?;
        let changed_at =
            record.image_changed_at.0.ok_or_else(|| missing_time_error(id, "image_changed_at"))?;
        // The generation alone is not sufficient. If an infra-env is deleted and created again with the same id, it
        // starts at the same generation.
        let revision = format!("{}-{}", created_at.timestamp_micros(), record.image_generation);
        let (version, architecture) = (record.image.os_image.clone(), record.cpu_architecture);
        Ok(InfraEnvSnapshot::new(revision, changed_at, served).with_live_image(version, architecture))
    }

    fn currency(&self, state: &SnapshotState) -> Currency {
        match Self::served(state) {
            Ok(served) if self.inventory.is_current(served) => Currency::Current,
            Ok(served) if !self.inventory.is_removed(served) => Currency::Changed,
            _ => Currency::Outdated,
        }
    }

    async fn render_config(
        &self,
        current: &InfraEnvSnapshot,
        artifact: Artifact,
        machine: Option<MacAddr>,
    ) -> Result<RenderedConfig, SourceError> {
        let record = Arc::clone(Self::served(&current.state)?.record());
        Ok(self.inventory.render(record, artifact.discovery_image(), machine).await?)
    }

    async fn ipxe_script(&self, id: Uuid, access: &ImageCredentials) -> Result<Option<String>, SourceError> {
        let current = self.current_snapshot(id, Artifact::Initrd, access).await?;
        let record = Self::served(&current.state)?.record();
        let script = self.inventory.ipxe_script_of(record, IpxeScript::DiscoveryImageAlways)?;
        Ok(Some(String::from_utf8_lossy(&script.contents).into_owned()))
    }

    fn on_removal(&self, removed: Box<dyn Fn(Uuid) + Send + Sync>) {
        let listener: Arc<dyn FeedCache> = Arc::new(RemovalListener(removed));
        self.inventory.records().store().feed().add_cache(&listener);
        self.listeners.lock().unwrap_or_else(PoisonError::into_inner).push(listener);
    }

    async fn source_status(&self) -> SourceStatus {
        let DatabaseStatus { is_reachable, serves_known_images, .. } = self.inventory.database_status();
        SourceStatus { is_reachable, serves_known_images }
    }
}

/// A listener that calls a function for each removed infra-env. It can miss a removal if events are lost.
struct RemovalListener(Box<dyn Fn(Uuid) + Send + Sync>);

impl fmt::Debug for RemovalListener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RemovalListener").finish_non_exhaustive()
    }
}

impl FeedCache for RemovalListener {
    fn cached(&self) -> Vec<(Key, i64)> {
        Vec::new()
    }

    fn drop_changed(&self, change: &RecordChange) {
        if (change.kind, change.key.kind) == (ChangeKind::Removed, Kind::InfraEnv) {
            (self.0)(change.key.id);
        }
    }

    fn drop_all(&self) {}
}

/// Returns the error for a record that lacks a time. The identity of its images depends on that time.
fn missing_time_error(id: InfraEnvId, field: &'static str) -> SourceError {
    ApiError::broken(format_args!("infra-env {id} has no {field}")).into()
}

#[cfg(test)]
mod tests {
    use ignition::discovery::HttpUrl;
    use tempfile::TempDir;

    use super::*;
    use inventory::auth::Policy;
    use inventory::catalogue::{Catalogue, CpuArchitecture};
    use inventory::files::FileStore;
    use inventory::infra_env::{ImageSource, InfraEnvRecord};
    use inventory::store::{Change, SqlStore};
    use inventory::time::Micros;
    use inventory::{Secret, Settings};

    fn record() -> InfraEnvRecord {
        InfraEnvRecord {
            id: InfraEnvId::fresh(),
            name: "demo".to_owned(),
            user_name: String::new(),
            email_domain: String::new(),
            cluster_id: None,
            cpu_architecture: CpuArchitecture::X86_64,
            image: ImageSource::default(),
            image_generation: 1,
            image_changed_at: Micros::now(),
            signing_key: Secret::default(),
            url_token: Secret::default(),
            token_key: None,
            owner: None,
            created_at: Micros::now(),
            updated_at: Micros::now(),
        }
    }

    /// Stores a record, and returns the snapshot of the infra-env.
    async fn snapshot(record: &InfraEnvRecord) -> Result<InfraEnvSnapshot, SourceError> {
        let directory = TempDir::new().unwrap();
        let store = SqlStore::open_file(&directory.path().join("test.db")).await.unwrap();
        let files = FileStore::in_directory(&directory.path().join("files")).unwrap();
        let url = HttpUrl::parse("url", "http://127.0.0.1").unwrap();
        let settings = Settings::new(url.clone(), url);
        let inventory = Inventory::new(Arc::new(store), files, Catalogue::default(), settings, Policy::Open);
        let insert = |_| async {
            let mut change = Change::new();
            change.insert(record)?;
            Ok((change, ()))
        };
        inventory.records().change(insert).await.unwrap();
        EmbeddedInputs::new(inventory)
            .current_snapshot(record.id.0, Artifact::FullIso, &ImageCredentials::Nothing)
            .await
    }

    #[tokio::test]
    async fn record_without_a_time_of_its_image_has_no_snapshot() {
        let valid = record();
        let stored = snapshot(&valid).await.unwrap();
        assert_eq!(Some(stored.changed_at), valid.image_changed_at.0);
        for damaged in [
            InfraEnvRecord { created_at: Micros(None), ..valid.clone() },
            InfraEnvRecord { image_changed_at: Micros(None), ..valid },
        ] {
            let error = snapshot(&damaged).await.unwrap_err();
            assert_eq!(error.status().as_u16(), 500);
            assert_eq!(error.reason(), "internal error while processing the request; see the service's log");
        }
    }
}
