//! The interface to a source of infra-envs: the inputs of an image, and access to it.
//!
//! The inventory of this process ([`EmbeddedInputs`](super::EmbeddedInputs)) and an external inventory
//! ([`ExternalInputs`](super::ExternalInputs)) are sources. An application that owns its infra-envs implements
//! [`ImageInputs`]: two functions are enough.

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
#[non_exhaustive]
pub struct InfraEnvSnapshot {
    /// Equal revisions mean the same image, byte for byte, on the same base image.
    pub revision: Arc<str>,
    /// The time of the last change of the image.
    pub changed_at: DateTime<Utc>,
    /// The version and CPU architecture of its base image, if the snapshot has them.
    pub live_image: Option<(String, CpuArchitecture)>,
    /// A value of the source, for [`render_config`](ImageInputs::render_config) and
    /// [`currency`](ImageInputs::currency). The image server does not look at it.
    pub state: SnapshotState,
}

/// A value of a source of infra-envs.
pub type SnapshotState = Arc<dyn Any + Send + Sync>;

impl InfraEnvSnapshot {
    /// Creates a snapshot of the image of this revision, which last changed at `changed_at`.
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

/// What a source knows about a snapshot without waiting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Currency {
    /// The infra-env is unchanged. For half a second, ranges of its image are answered without asking the source again.
    Current,
    /// The infra-env was changed, and not removed. Its plan is kept for URLs with its revision.
    Changed,
    /// The infra-env was removed, or changed in an unknown way. Its plan is not kept.
    Outdated,
    /// Only a new snapshot can tell.
    Unknown,
}

/// A source of infra-envs.
///
/// The example `operator_images` implements it.
#[async_trait]
pub trait ImageInputs: fmt::Debug + Send + Sync {
    /// Returns the current state of an infra-env if the caller has access to its images. Every request calls this, so
    /// it must be cheap for repeated calls.
    async fn current_snapshot(
        &self,
        id: Uuid,
        artifact: Artifact,
        access: &ImageCredentials,
    ) -> Result<InfraEnvSnapshot, SourceError>;

    /// Returns the inputs of an image: with a MAC address, only the network config of the host that has it. Called once
    /// for each revision and artifact. [`Artifact::render`] does the work for checked inputs; call it on a blocking
    /// thread.
    async fn render_config(
        &self,
        current: &InfraEnvSnapshot,
        artifact: Artifact,
        machine: Option<MacAddr>,
    ) -> Result<RenderedConfig, SourceError>;

    /// Returns what is known about a snapshot with this state. Every range of an image calls this, so it must not wait.
    fn currency(&self, _state: &SnapshotState) -> Currency {
        Currency::Unknown
    }

    /// Returns the version and CPU architecture of an infra-env's base image. Called if the snapshot does not have
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

    /// Returns the iPXE script of an infra-env if the caller has access to its images. With `None`, the image server
    /// writes one for its own URLs.
    async fn ipxe_script(
        &self,
        _id: Uuid,
        _access: &ImageCredentials,
    ) -> Result<Option<String>, SourceError> {
        Ok(None)
    }

    /// Sets a function to call with the id of each infra-env that is removed, so that its plans leave the memory before
    /// others need their room. The image server calls this once.
    fn on_removal(&self, _removed: Box<dyn Fn(Uuid) + Send + Sync>) {}

    /// Returns the state of the source.
    async fn source_status(&self) -> SourceStatus {
        SourceStatus::default()
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
