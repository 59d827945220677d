//! The interface to the inventory: the inputs of an image, and access to it.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use ignition::network::MacAddr;

use super::artifact::Artifact;
use crate::api_error::ApiError;
use crate::discovery::RenderedConfig;
use crate::images::CpuArchitecture;
use crate::inventory::Secret;
use crate::inventory::id::InfraEnvId;
use crate::inventory::infra_env::InfraEnvRecord;

/// The credentials of a request for an image.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Access {
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
pub struct Current {
    /// Equal revisions mean the same image, byte for byte, on the same base image.
    pub revision: Arc<str>,
    /// The time of the last change of the image.
    pub changed_at: DateTime<Utc>,
    /// The change counter of the inventory before the snapshot was taken. [`is_current`](ImageInputs::is_current)
    /// compares it.
    pub seen: u64,
    /// The version and CPU architecture of its base image, if the snapshot has them.
    pub live_image: Option<(String, CpuArchitecture)>,
    /// The source of the inputs.
    pub origin: Origin,
}

/// The source of the inputs of an image.
#[derive(Clone, Debug)]
pub enum Origin {
    /// A record of the inventory of this process.
    Record(Arc<InfraEnvRecord>),
    /// Inputs that another service has rendered.
    Rendered(Arc<RenderedConfig>),
}

/// A source of infra-envs: the inventory of this process, or another service.
#[async_trait]
pub trait ImageInputs: fmt::Debug + Send + Sync {
    /// Returns the current state of an infra-env if the caller has access to its images. Every request calls this, so
    /// it must be cheap for repeated calls.
    async fn current(&self, id: InfraEnvId, artifact: Artifact, access: &Access)
    -> Result<Current, ApiError>;

    /// Reports whether a snapshot is known to be still current, without asking another service.
    fn is_current(&self, current: &Current) -> bool;

    /// Returns the inputs of an image: with a MAC address, only the network config of the host that has it. Called once
    /// for each revision.
    async fn rendered(
        &self,
        current: &Current,
        artifact: Artifact,
        machine: Option<MacAddr>,
    ) -> Result<RenderedConfig, ApiError>;

    /// Returns the version and CPU architecture of an infra-env's base image. Called if the snapshot does not have
    /// them.
    async fn live_image(
        &self,
        id: InfraEnvId,
        access: &Access,
    ) -> Result<(String, CpuArchitecture), ApiError>;

    /// Returns the iPXE script of an infra-env if the caller has access to its images.
    async fn ipxe_script(&self, id: InfraEnvId, access: &Access) -> Result<String, ApiError>;
}
