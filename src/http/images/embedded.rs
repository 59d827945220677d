//! The inventory of the same process.

use std::sync::Arc;

use async_trait::async_trait;
use ignition::network::MacAddr;

use super::artifact::Artifact;
use super::inputs::{Access, Current, ImageInputs, Origin};
use crate::api_error::ApiError;
use crate::discovery::RenderedConfig;
use crate::images::CpuArchitecture;
use crate::inventory::Inventory;
use crate::inventory::id::InfraEnvId;
use crate::inventory::infra_env::IpxeScript;

/// Image inputs from the inventory of this process.
#[derive(Clone, Debug)]
pub struct Embedded(Inventory);

impl Embedded {
    /// Creates image inputs from an inventory.
    #[must_use]
    pub fn new(inventory: Inventory) -> Self {
        Self(inventory)
    }
}

#[async_trait]
impl ImageInputs for Embedded {
    async fn current(
        &self,
        id: InfraEnvId,
        artifact: Artifact,
        access: &Access,
    ) -> Result<Current, ApiError> {
        if artifact == Artifact::DisconnectedIso {
            return Err(ApiError::not_found(
                "configs of disconnected images are not made here; full.iso and minimal.iso are",
            ));
        }
        let (url_token, user_token) = match access {
            Access::ApiKey(token) => (Some(token), None),
            Access::Authorization(token) => (None, Some(token)),
            Access::Nothing | Access::ImageToken(_) => (None, None),
        };
        let seen = self.0.records().changes();
        let record = self.0.served_infra_env(id, url_token, user_token).await?;
        let created_at = record.created_at.0.unwrap_or_default().timestamp_micros();
        Ok(Current {
            // An infra-env that was deleted and created again with the same id restarts at the same generation.
            revision: format!("{created_at}-{}", record.image_generation).into(),
            changed_at: record.image_changed_at.0.unwrap_or_default(),
            seen,
            live_image: Some((record.image.os_image.clone(), record.cpu_architecture)),
            origin: Origin::Record(record),
        })
    }

    fn is_current(&self, current: &Current) -> bool {
        self.0.records().changes() == current.seen
    }

    async fn rendered(
        &self,
        current: &Current,
        artifact: Artifact,
        machine: Option<MacAddr>,
    ) -> Result<RenderedConfig, ApiError> {
        let Origin::Record(record) = &current.origin else { return Err(foreign()) };
        self.0.render(Arc::clone(record), artifact.config(), machine).await
    }

    async fn live_image(
        &self,
        id: InfraEnvId,
        access: &Access,
    ) -> Result<(String, CpuArchitecture), ApiError> {
        let current = self.current(id, Artifact::FullIso, access).await?;
        current.live_image.ok_or_else(foreign)
    }

    async fn ipxe_script(&self, id: InfraEnvId, _access: &Access) -> Result<String, ApiError> {
        let script = self.0.ipxe_script(id, IpxeScript::DiscoveryImageAlways, None).await?;
        Ok(String::from_utf8_lossy(&script.contents).into_owned())
    }
}

/// Returns the error for a snapshot of another inventory.
fn foreign() -> ApiError {
    ApiError::internal("the infra-env is of another inventory")
}
