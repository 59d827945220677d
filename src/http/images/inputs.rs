//! The interface to the inventory: the inputs of an image, and access to it.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use ignition::network::MacAddr;

use super::artifact::Artifact;
use discovery::RenderedConfig;
use inventory::Secret;
use inventory::api::ApiError;
use inventory::catalogue::CpuArchitecture;
use inventory::id::InfraEnvId;
use inventory::service::infra_envs::ServedInfraEnv;
use inventory::store::Store;

/// The credentials of a request for an image.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ImageCredentials {
    /// No credentials.
    #[default]
    Nothing,
    /// An `api_key` token of the service, in the path or in the query.
    ApiKey(Secret),
    /// A token for the images of one infra-env.
    ImageToken(Secret),
    /// A user's `Authorization` header.
    Authorization(Secret),
}

/// A snapshot of an infra-env.
#[derive(Clone, Debug)]
pub struct InfraEnvSnapshot {
    /// Equal revisions mean the same image, byte for byte, on the same base image.
    pub revision: Arc<str>,
    /// The time of the last change of the image.
    pub changed_at: DateTime<Utc>,
    /// The version and CPU architecture of its base image, if the snapshot has them.
    pub live_image: Option<(String, CpuArchitecture)>,
    /// The source of the inputs.
    pub origin: InputsOrigin,
}

/// The source of the inputs of an image.
#[derive(Clone, Debug)]
pub enum InputsOrigin {
    /// An infra-env of the inventory of this process.
    Record(Arc<ServedInfraEnv>),
    /// Inputs that another service has rendered.
    Rendered(Arc<RenderedConfig>),
}

/// A source of infra-envs: the inventory of this process, or another service.
#[async_trait]
pub trait ImageInputs: fmt::Debug + Send + Sync {
    /// Returns the current state of an infra-env if the caller has access to its images. Every request calls this, so
    /// it must be cheap for repeated calls.
    async fn current_snapshot(
        &self,
        id: InfraEnvId,
        artifact: Artifact,
        access: &ImageCredentials,
    ) -> Result<InfraEnvSnapshot, ApiError>;

    /// Returns `true` if an infra-env of the inventory of this process is known to be still current. Every range of an
    /// image calls this.
    fn is_current(&self, served: &ServedInfraEnv) -> bool;

    /// Returns the inputs of an image: with a MAC address, only the network config of the host that has it. Called once
    /// for each revision.
    async fn render_config(
        &self,
        current: &InfraEnvSnapshot,
        artifact: Artifact,
        machine: Option<MacAddr>,
    ) -> Result<RenderedConfig, ApiError>;

    /// Returns the version and CPU architecture of an infra-env's base image. Called if the snapshot does not have
    /// them.
    async fn base_image_version(
        &self,
        id: InfraEnvId,
        access: &ImageCredentials,
    ) -> Result<(String, CpuArchitecture), ApiError>;

    /// Returns the iPXE script of an infra-env if the caller has access to its images.
    async fn ipxe_script(&self, id: InfraEnvId, access: &ImageCredentials) -> Result<String, ApiError>;

    /// Returns the state of the source.
    async fn source_status(&self) -> SourceStatus {
        SourceStatus::default()
    }

    /// Returns the database, if this process has one.
    fn store(&self) -> Option<&Arc<dyn Store>> {
        None
    }
}

/// The state of a source of infra-envs: the database of the inventory of this process, or the other service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SourceStatus {
    /// Whether the source answers, as far as is known.
    pub is_reachable: bool,
    /// Whether images of known infra-envs are served: the source answers, or the grace period has not ended.
    pub serves_known_images: bool,
}

impl Default for SourceStatus {
    /// A source that answers.
    fn default() -> Self {
        Self { is_reachable: true, serves_known_images: true }
    }
}
