//! The interface to a source of infra-envs, which provides the inputs of images and checks access to them.
//!
//! Two sources are included: the inventory of this process ([`EmbeddedInputs`](super::EmbeddedInputs)) and an external
//! inventory ([`ExternalInputs`](super::ExternalInputs)). An application with its own infra-envs implements
//! [`ImageInputs`], which requires two functions.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use discovery::RenderedConfig;
use ignition::network::MacAddr;
use uuid::Uuid;

use super::artifact::Artifact;
use super::source_error::SourceError;
use assisted::Secret;
use assisted::architecture::CpuArchitecture;

/// The credentials in a request for an image.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ImageCredentials {
    /// The request has no credentials.
    #[default]
    Nothing,
    /// A token in the `api_key` parameter, or in the path after `byapikey`.
    ApiKey(Secret),
    /// A token for the images of one infra-env (`image_token`).
    ImageToken(Secret),
    /// The value of the `Authorization` header of a user.
    Authorization(Secret),
}

/// The state of an infra-env at one time, as far as its images depend on it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct InfraEnvSnapshot {
    /// Identifies the content of the image. Equal revisions result in identical images on the same base image.
    pub revision: Arc<str>,
    /// When the image last changed. Sent as `Last-Modified`.
    pub changed_at: DateTime<Utc>,
    /// The version and CPU architecture of the base image, if the source already has them.
    pub live_image: Option<(String, CpuArchitecture)>,
    /// Private data of the source, for [`render_config`](ImageInputs::render_config) and
    /// [`currency`](ImageInputs::currency). The image server does not read it.
    pub state: SnapshotState,
}

/// Private data of a source in its snapshots.
pub type SnapshotState = Arc<dyn Any + Send + Sync>;

impl InfraEnvSnapshot {
    /// Creates a snapshot of an image with this revision, which last changed at `changed_at`.
    #[must_use]
    pub fn new(revision: impl Into<Arc<str>>, changed_at: DateTime<Utc>, state: SnapshotState) -> Self {
        Self { revision: revision.into(), changed_at, live_image: None, state }
    }

    /// Sets the version and CPU architecture of the base image.
    #[must_use]
    pub fn with_live_image(self, version: impl Into<String>, architecture: CpuArchitecture) -> Self {
        Self { live_image: Some((version.into(), architecture)), ..self }
    }
}

/// The currency of a snapshot, as far as the source can determine it without waiting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Currency {
    /// The infra-env is unchanged. For half a second, ranges of its image are sent without another call to the source.
    Current,
    /// The infra-env has changed but still exists. The plan stays cached for URLs with its revision.
    Changed,
    /// The infra-env was removed, or an unknown change occurred. The plan is dropped.
    Outdated,
    /// The source must create a new snapshot to find out.
    Unknown,
}

/// A source of infra-envs. The example `operator_images` implements this trait.
#[async_trait]
pub trait ImageInputs: fmt::Debug + Send + Sync {
    /// Returns the current state of an infra-env if the caller has access to its images. Called for every request, so
    /// repeated calls must be fast.
    async fn current_snapshot(
        &self,
        id: Uuid,
        artifact: Artifact,
        access: &ImageCredentials,
    ) -> Result<InfraEnvSnapshot, SourceError>;

    /// Returns the inputs of an image. With a MAC address, they contain the network config of that host only. Called
    /// once for each revision and artifact. [`Artifact::render`] does this work for validated inputs; call it on a
    /// blocking thread.
    async fn render_config(
        &self,
        current: &InfraEnvSnapshot,
        artifact: Artifact,
        machine: Option<MacAddr>,
    ) -> Result<RenderedConfig, SourceError>;

    /// Compares a snapshot with the current state. Called for every range of an image, so it must not wait.
    fn currency(&self, _state: &SnapshotState) -> Currency {
        Currency::Unknown
    }

    /// Returns the version and CPU architecture of an infra-env's base image. Called if the snapshot does not contain
    /// them.
    async fn base_image_version(
        &self,
        id: Uuid,
        access: &ImageCredentials,
    ) -> Result<(String, CpuArchitecture), SourceError> {
        let current = self.current_snapshot(id, Artifact::FullIso, access).await?;
        current
            .live_image
            .ok_or_else(|| SourceError::not_found("the base image of this infra-env is not known"))
    }

    /// Returns the iPXE script of an infra-env if the caller has access to its images. If it returns `None`, the image
    /// server generates a script with its own URLs.
    async fn ipxe_script(
        &self,
        _id: Uuid,
        _access: &ImageCredentials,
    ) -> Result<Option<String>, SourceError> {
        Ok(None)
    }

    /// Sets a function to call with the id of each removed infra-env. The image server then drops the plans of this
    /// infra-env from memory. It calls `on_removal` once.
    fn on_removal(&self, _removed: Box<dyn Fn(Uuid) + Send + Sync>) {}

    /// Returns the state of the source, for health checks and metrics.
    async fn source_status(&self) -> SourceStatus {
        SourceStatus::default()
    }
}

/// The state of a source of infra-envs: of the database for the inventory of this process, or of the external service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SourceStatus {
    /// Whether the source can be reached, as far as is known.
    pub is_reachable: bool,
    /// Whether images of cached infra-envs are served. This also holds during an outage, until the grace period has
    /// ended.
    pub serves_known_images: bool,
}

impl Default for SourceStatus {
    /// Returns the state of a source that can be reached.
    fn default() -> Self {
        Self { is_reachable: true, serves_known_images: true }
    }
}
