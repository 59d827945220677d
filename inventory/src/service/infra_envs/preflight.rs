//! Checks the networks and the config of an infra-env before a host boots the image.

use futures_util::future::BoxFuture;
use ignition::config::Config;
use ignition::discovery::{DiscoveryImage, service_url};
use ignition::network::check::{self, NetworkFinding};
use ignition::network::{Cancel, HostError};
use ignition::report::ConfigFinding;

use super::check::config_error;
use crate::error::Error;
use crate::id::InfraEnvId;
use crate::infra_env::{InfraEnvRecord, static_network};
use crate::{AddressFinding, Inventory, in_background};
use discovery::DiscoveryError;

/// All findings in the static networks, the config and the URLs of an infra-env.
#[derive(Clone, Debug)]
pub struct PreflightFindings {
    /// Id of the checked infra-env.
    pub infra_env: InfraEnvId,
    /// Generation of the checked image.
    pub image_generation: u64,
    /// Findings in the static network configurations of hosts.
    pub network: Vec<NetworkFinding>,
    /// Findings in the Ignition config.
    pub config: Vec<ConfigFinding>,
    /// URLs in the image that hosts cannot reach.
    pub addresses: Vec<AddressFinding>,
}

impl Inventory {
    /// Checks the networks and the config of an infra-env.
    ///
    /// # Errors
    ///
    /// Returns an error if the infra-env does not exist, or if no config can be generated at all.
    pub fn preflight(&self, id: InfraEnvId) -> BoxFuture<'_, Result<PreflightFindings, Error>> {
        Box::pin(async move {
            let record = self.infra_env(id).await?;
            let inventory = self.clone();
            in_background(move |cancel| inventory.run_preflight(&record, cancel)).await
        })
    }

    fn run_preflight(&self, record: &InfraEnvRecord, cancel: &Cancel) -> Result<PreflightFindings, Error> {
        let inputs = record.inputs(self.settings())?;
        let hosts = static_network::hosts(&record.image.static_network_config);
        let network = check::check_hosts_cancellable(&hosts, self.keyfiles(), cancel);
        let network =
            network.ok_or(HostError::Cancelled).map_err(DiscoveryError::from).map_err(config_error)?;
        let networks = inputs.networks_until(self.keyfiles(), cancel).map_err(config_error)?;
        let composed = inputs.config(DiscoveryImage::Full, &networks).map_err(config_error)?;
        Ok(PreflightFindings {
            infra_env: record.id,
            image_generation: record.image_generation,
            network: network.findings().to_vec(),
            config: composed.warnings.findings().to_vec(),
            addresses: self.address_findings_in(&composed.config)?,
        })
    }

    /// Returns the findings about the URLs in the image with this config. A user's override may replace the URL of the
    /// service.
    fn address_findings_in(&self, config: &Config) -> Result<Vec<AddressFinding>, Error> {
        let json = config.to_json().map_err(|error| Error::internal(error.to_string()))?;
        let service = service_url(json.as_bytes());
        Ok(AddressFinding::about(service.as_ref(), self.settings()))
    }
}
