//! Infra-envs as clients see them.

use super::model::{InfraEnv, Preflight, PresignedUrl};
use crate::Settings;
use crate::error::Error;
use crate::infra_env::{ImageSource, InfraEnvRecord, urls};
use crate::json::to_json_text;
use crate::service::infra_envs::PreflightFindings;
use crate::time::Millis;

impl InfraEnv {
    /// Returns an infra-env as clients see it.
    ///
    /// # Errors
    ///
    /// Returns an error if a part of the record cannot be written as JSON.
    pub(crate) fn from_record(record: InfraEnvRecord, settings: &Settings) -> Result<Self, Error> {
        let (download_url, image) = (urls::image(&record, settings), record.image);
        Ok(Self {
            kind: "InfraEnv",
            id: record.id,
            href: format!("{}/v2/infra-envs/{}", Settings::API, record.id),
            name: record.name,
            user_name: record.user_name,
            email_domain: record.email_domain,
            cluster_id: record.cluster_id,
            cpu_architecture: record.cpu_architecture,
            download_url,
            expires_at: Millis(None),
            created_at: record.created_at,
            updated_at: record.updated_at,
            pull_secret_set: !image.pull_secret.is_empty(),
            static_network_config: static_network_text(&image)?,
            kernel_arguments: kernel_arguments_text(&image)?,
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

fn static_network_text(image: &ImageSource) -> Result<String, Error> {
    if image.static_network_config.is_empty() {
        return Ok(String::new());
    }
    to_json_text("static_network_config", &image.static_network_config)
}

fn kernel_arguments_text(image: &ImageSource) -> Result<Option<String>, Error> {
    let text = || to_json_text("kernel_arguments", &image.kernel_arguments);
    (!image.kernel_arguments.is_empty()).then(text).transpose()
}

impl From<String> for PresignedUrl {
    fn from(url: String) -> Self {
        Self { url, expires_at: Millis(None) }
    }
}

impl From<PreflightFindings> for Preflight {
    fn from(findings: PreflightFindings) -> Self {
        Self {
            infra_env_id: findings.infra_env,
            image_generation: findings.image_generation,
            network: findings.network,
            ignition: findings.config,
            addresses: findings.addresses,
        }
    }
}
