//! The seam to the inventory: what an image is made of, and who may have it.

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

/// What a caller shows to have an image.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Access {
    /// Nothing.
    #[default]
    Nothing,
    /// A token of the service, in the path or in the query.
    ApiKey(Secret),
    /// A token for one image.
    ImageToken(Secret),
    /// What a person shows.
    Authorization(Secret),
}

/// An infra-env as it is now.
#[derive(Clone, Debug)]
pub struct Current {
    /// Two that are equal stand for the same image, byte for byte, on the same base.
    pub revision: Arc<str>,
    /// When the image changed last.
    pub changed_at: DateTime<Utc>,
    /// What [`is_current`](ImageInputs::is_current) tells from: of how many changes the inventory knew.
    pub seen: u64,
    /// The version of its live image and the processor, where they came with the rest.
    pub live_image: Option<(String, CpuArchitecture)>,
    /// What it is made from.
    pub origin: Origin,
}

/// Where the inputs of an image come from.
#[derive(Clone, Debug)]
pub enum Origin {
    /// The inventory here.
    Record(Arc<InfraEnvRecord>),
    /// Another service, which has rendered them.
    Rendered(Arc<RenderedConfig>),
}

/// What knows of infra-envs: the inventory here, or another service.
#[async_trait]
pub trait ImageInputs: fmt::Debug + Send + Sync {
    /// An infra-env as it is now, for a caller who may have its images. This is asked for every request, so it has to be
    /// cheap for what was asked for before.
    async fn current(&self, id: InfraEnvId, artifact: Artifact, access: &Access)
    -> Result<Current, ApiError>;

    /// Whether what was said of an infra-env a moment ago is still so, as far as that is known without asking anybody.
    fn is_current(&self, current: &Current) -> bool;

    /// What goes into an image; with an address, only the network of the machine that has it. This is asked once for each
    /// revision.
    async fn rendered(
        &self,
        current: &Current,
        artifact: Artifact,
        machine: Option<MacAddr>,
    ) -> Result<RenderedConfig, ApiError>;

    /// The live image of an infra-env: its version, and the processor. This is asked where they did not come with the rest.
    async fn live_image(
        &self,
        id: InfraEnvId,
        access: &Access,
    ) -> Result<(String, CpuArchitecture), ApiError>;

    /// The script with which iPXE boots a machine, for a caller who may have the images.
    async fn ipxe_script(&self, id: InfraEnvId, access: &Access) -> Result<String, ApiError>;
}
