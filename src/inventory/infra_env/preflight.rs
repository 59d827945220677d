//! What is known of an infra-env's images before any machine boots one.

use ignition::discovery::ImageType as DiscoveryImage;
use ignition::network::check::{self, Finding};
use ignition::network::{Cancel, HostError};
use ignition::report;
use serde::Serialize;
use utoipa::ToSchema;

use super::record::InfraEnvRecord;
use super::rules::refused;
use super::static_network;
use crate::api_error::ApiError;
use crate::discovery::DiscoveryError;
use crate::inventory::id::InfraEnvId;
use crate::inventory::{Inventory, in_background};

/// All findings in the networks and in the config of an infra-env.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = preflight)]
pub struct Preflight {
    /// The infra-env.
    pub infra_env_id: InfraEnvId,
    /// Which generation of its image was looked at.
    pub image_generation: u64,
    /// Findings in the networks of machines: severity, rule, host, interface, path, line and message.
    #[schema(value_type = Vec<Object>)]
    pub network: Vec<Finding>,
    /// Findings in the override of the Ignition config: severity, pointer, line and message.
    #[schema(value_type = Vec<Object>)]
    pub ignition: Vec<report::Finding>,
}

impl Inventory {
    /// Looks through the networks and the config of an infra-env.
    ///
    /// # Errors
    ///
    /// When there is no such infra-env, or its config cannot be made at all.
    pub async fn preflight(&self, id: InfraEnvId) -> Result<Preflight, ApiError> {
        let record = self.stored_infra_env(id).await?.record;
        let inventory = self.clone();
        in_background(move |cancel| inventory.look_through(&record, cancel)).await
    }

    fn look_through(&self, record: &InfraEnvRecord, cancel: &Cancel) -> Result<Preflight, ApiError> {
        let inputs = record.inputs(self.settings())?;
        let hosts = static_network::hosts(&record.image.static_network_config);
        let network = check::check_until(&hosts, self.keyfiles(), cancel);
        let network = network.ok_or(HostError::Cancelled).map_err(DiscoveryError::from).map_err(refused)?;
        let networks = inputs.networks_until(self.keyfiles(), cancel).map_err(refused)?;
        let composed = inputs.config(DiscoveryImage::Full, &networks).map_err(refused)?;
        Ok(Preflight {
            infra_env_id: record.id,
            image_generation: record.image_generation,
            network: network.findings().to_vec(),
            ignition: composed.warnings.findings().to_vec(),
        })
    }
}
