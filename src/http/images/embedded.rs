//! The inventory of the same process.

use std::sync::Arc;

use async_trait::async_trait;
use ignition::network::MacAddr;

use super::artifact::Artifact;
use super::inputs::{ImageCredentials, ImageInputs, InfraEnvSnapshot, InputsOrigin, SourceStatus};
use discovery::RenderedConfig;
use inventory::Inventory;
use inventory::api::ApiError;
use inventory::catalogue::CpuArchitecture;
use inventory::id::InfraEnvId;
use inventory::service::infra_envs::{DatabaseStatus, IpxeScript, ServedInfraEnv};
use inventory::store::Store;

/// Image inputs from the inventory of this process.
#[derive(Clone, Debug)]
pub struct EmbeddedInputs(Inventory);

impl EmbeddedInputs {
    /// Creates image inputs from an inventory.
    #[must_use]
    pub fn new(inventory: Inventory) -> Self {
        Self(inventory)
    }
}

#[async_trait]
impl ImageInputs for EmbeddedInputs {
    async fn current_snapshot(
        &self,
        id: InfraEnvId,
        artifact: Artifact,
        access: &ImageCredentials,
    ) -> Result<InfraEnvSnapshot, ApiError> {
        if artifact == Artifact::DisconnectedIso {
            return Err(ApiError::not_found(
                "disconnected.iso is not supported; use full.iso or minimal.iso",
            ));
        }
        let (url_token, user_token) = match access {
            ImageCredentials::ApiKey(token) => (Some(token), None),
            ImageCredentials::Authorization(token) => (None, Some(token)),
            ImageCredentials::Nothing | ImageCredentials::ImageToken(_) => (None, None),
        };
        let served = self.0.served_infra_env(id, url_token, user_token).await?;
        let record = served.record();
        let created_at = record.created_at.0.ok_or_else(|| missing_time_error(id, "created_at"))?;
        Ok(InfraEnvSnapshot {
            // An infra-env that was deleted and created again with the same id restarts at the same generation.
            revision: format!("{}-{}", created_at.timestamp_micros(), record.image_generation).into(),
            changed_at: record
                .image_changed_at
                .0
                .ok_or_else(|| missing_time_error(id, "image_changed_at"))?,
            live_image: Some((record.image.os_image.clone(), record.cpu_architecture)),
            origin: InputsOrigin::Record(served),
        })
    }

    fn is_current(&self, served: &ServedInfraEnv) -> bool {
        self.0.is_current(served)
    }

    async fn render_config(
        &self,
        current: &InfraEnvSnapshot,
        artifact: Artifact,
        machine: Option<MacAddr>,
    ) -> Result<RenderedConfig, ApiError> {
        let InputsOrigin::Record(served) = &current.origin else { return Err(foreign_snapshot_error()) };
        Ok(self.0.render(Arc::clone(served.record()), artifact.discovery_image(), machine).await?)
    }

    async fn base_image_version(
        &self,
        id: InfraEnvId,
        access: &ImageCredentials,
    ) -> Result<(String, CpuArchitecture), ApiError> {
        let current = self.current_snapshot(id, Artifact::FullIso, access).await?;
        current.live_image.ok_or_else(foreign_snapshot_error)
    }

    async fn ipxe_script(&self, id: InfraEnvId, access: &ImageCredentials) -> Result<String, ApiError> {
        let current = self.current_snapshot(id, Artifact::Initrd, access).await?;
        let InputsOrigin::Record(served) = &current.origin else { return Err(foreign_snapshot_error()) };
        let script = self.0.ipxe_script_of(served.record(), IpxeScript::DiscoveryImageAlways)?;
        Ok(String::from_utf8_lossy(&script.contents).into_owned())
    }

    async fn source_status(&self) -> SourceStatus {
        let DatabaseStatus { is_reachable, serves_known_images, .. } = self.0.database_status();
        SourceStatus { is_reachable, serves_known_images }
    }

    fn store(&self) -> Option<&Arc<dyn Store>> {
        Some(self.0.records().store())
    }
}

/// Returns the error for a record without a time that the identity of its images depends on.
fn missing_time_error(id: InfraEnvId, field: &'static str) -> ApiError {
    ApiError::broken(format_args!("infra-env {id} has no {field}"))
}

/// Returns the error for a snapshot of another inventory.
fn foreign_snapshot_error() -> ApiError {
    ApiError::internal("infra-env belongs to another inventory")
}

#[cfg(test)]
mod tests {
    use ignition::discovery::HttpUrl;
    use tempfile::TempDir;

    use super::*;
    use inventory::auth::Policy;
    use inventory::catalogue::Catalogue;
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
            created_at: Micros::now(),
            updated_at: Micros::now(),
        }
    }

    /// Stores a record and returns the snapshot of its image.
    async fn snapshot(record: &InfraEnvRecord) -> Result<InfraEnvSnapshot, ApiError> {
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
            .current_snapshot(record.id, Artifact::FullIso, &ImageCredentials::Nothing)
            .await
    }

    #[tokio::test]
    async fn record_without_a_time_of_its_image_has_no_snapshot() {
        let valid = record();
        let found = snapshot(&valid).await.unwrap();
        assert_eq!(Some(found.changed_at), valid.image_changed_at.0);
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
