//! Converts a record into the API's representation.

use crate::Settings;
use crate::error::Error;
use crate::infra_env::model::InfraEnv;
use crate::infra_env::record::{ImageSource, InfraEnvRecord};
use crate::infra_env::urls;
use crate::json::to_json_text;
use crate::time::Millis;

impl InfraEnvRecord {
    /// Returns the infra-env as clients see it.
    ///
    /// # Errors
    ///
    /// Returns an error if a part of the record cannot be written as JSON.
    pub(crate) fn view(&self, settings: &Settings) -> Result<InfraEnv, Error> {
        let image = self.image.clone();
        Ok(InfraEnv {
            kind: "InfraEnv",
            id: self.id,
            href: format!("{}/v2/infra-envs/{}", Settings::API, self.id),
            name: self.name.clone(),
            user_name: self.user_name.clone(),
            email_domain: self.email_domain.clone(),
            cluster_id: self.cluster_id,
            cpu_architecture: self.cpu_architecture,
            download_url: urls::image(self, settings),
            expires_at: Millis(None),
            created_at: self.created_at,
            updated_at: self.updated_at,
            pull_secret_set: !image.pull_secret.is_empty(),
            static_network_config: image.static_network_text()?,
            kernel_arguments: image.kernel_arguments_text()?,
            openshift_version: image.openshift_version,
            image_type: image.image_type,
            ssh_authorized_key: image.ssh_authorized_key,
            proxy: image.proxy,
            additional_ntp_sources: image.additional_ntp_sources,
            ntp_sources: image.ntp_sources,
            ignition_config_override: image.ignition_config_override,
            additional_trust_bundle: image.additional_trust_bundle,
            rendezvous_ip: image.rendezvous_ip,
            network_discovery_delay_seconds: image.network_discovery_delay_seconds,
        })
    }
}

impl ImageSource {
    fn static_network_text(&self) -> Result<String, Error> {
        if self.static_network_config.is_empty() {
            return Ok(String::new());
        }
        to_json_text("static_network_config", &self.static_network_config)
    }

    fn kernel_arguments_text(&self) -> Result<Option<String>, Error> {
        let text = || to_json_text("kernel_arguments", &self.kernel_arguments);
        (!self.kernel_arguments.is_empty()).then(text).transpose()
    }
}
