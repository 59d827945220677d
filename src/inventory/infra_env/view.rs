//! From a record to what clients see.

use super::model::InfraEnv;
use super::record::{ImageSource, InfraEnvRecord};
use super::urls;
use crate::inventory::Settings;
use crate::inventory::time::Millis;

impl InfraEnvRecord {
    /// What clients see.
    #[must_use]
    pub fn view(&self, settings: &Settings) -> InfraEnv {
        let image = self.image.clone();
        InfraEnv {
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
            static_network_config: image.static_network_text(),
            kernel_arguments: image.kernel_arguments_text(),
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
        }
    }
}

impl ImageSource {
    fn static_network_text(&self) -> String {
        if self.static_network_config.is_empty() {
            return String::new();
        }
        serde_json::to_string(&self.static_network_config).unwrap_or_default()
    }

    fn kernel_arguments_text(&self) -> Option<String> {
        let text = || serde_json::to_string(&self.kernel_arguments).unwrap_or_default();
        (!self.kernel_arguments.is_empty()).then(text)
    }
}
