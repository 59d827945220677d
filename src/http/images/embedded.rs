//! The inventory of the same process.

use std::sync::Arc;

use async_trait::async_trait;

use super::Artifact;
use super::inputs::{Access, Current, ImageInputs, Origin};
use crate::discovery::Rendered;
use crate::inventory::id::InfraEnvId;
use crate::inventory::{Inventory, Refusal};

/// Inputs from the inventory of this process.
#[derive(Clone, Debug)]
pub struct Embedded(Inventory);

impl Embedded {
    /// Inputs from an inventory.
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
        _artifact: Artifact,
        access: &Access,
    ) -> Result<Current, Refusal> {
        let (url_token, user_token) = match access {
            Access::ApiKey(token) => (Some(token), None),
            Access::Authorization(token) => (None, Some(token)),
            Access::Nothing | Access::ImageToken(_) => (None, None),
        };
        let record = self.0.served_infra_env(id, url_token, user_token).await?;
        Ok(Current {
            revision: format!("{}", record.image_generation).into(),
            changed_at: record.image_changed_at.0.unwrap_or_default(),
            origin: Origin::Record(record),
        })
    }

    async fn rendered(&self, current: &Current, artifact: Artifact) -> Result<Rendered, Refusal> {
        match &current.origin {
            Origin::Record(record) => self.0.render(Arc::clone(record), artifact.config()).await,
            Origin::Rendered(rendered) => Ok(Rendered::clone(rendered)),
        }
    }
}
