//! Conversion of infra-env records into their API representation.

use assisted::infra_env::{InfraEnv, Preflight, PresignedUrl};
use futures_util::future::BoxFuture;
use serde::Serialize;
use serde_json::Value;

use crate::error::Error;
use crate::infra_env::{ImageSource, InfraEnvRecord};
use crate::json::{to_json_text, to_json_value};
use crate::service::infra_envs::PreflightFindings;
use crate::time::Millis;
use crate::{Inventory, Secret, Settings};

impl Inventory {
    /// Returns an infra-env in its API representation.
    ///
    /// # Errors
    ///
    /// Returns an error if a part of the record cannot be written as JSON, or if the database fails.
    pub fn to_api_infra_env<'a>(
        &'a self,
        record: &'a InfraEnvRecord,
    ) -> BoxFuture<'a, Result<InfraEnv, Error>> {
        Box::pin(infra_env_from_record(self, record.clone()))
    }

    /// Returns the findings of a preflight in their API representation.
    ///
    /// # Errors
    ///
    /// Returns an error if a finding cannot be written as JSON.
    pub fn to_api_preflight(&self, findings: &PreflightFindings) -> Result<Preflight, Error> {
        preflight_from_findings(findings)
    }
}

/// Returns an infra-env in its API representation.
///
/// # Errors
///
/// Returns an error if a part of the record cannot be written as JSON, or if the database fails.
pub(super) async fn infra_env_from_record(
    inventory: &Inventory,
    record: InfraEnvRecord,
) -> Result<InfraEnv, Error> {
    let download_url = inventory.shown_iso_url(&record).await?;
    let image = record.image;
    Ok(InfraEnv {
        kind: InfraEnv::KIND.into(),
        id: record.id,
        href: format!("{}/v2/infra-envs/{}", Settings::API, record.id),
        name: record.name,
        user_name: record.user_name,
        org_id: String::new(),
        email_domain: record.email_domain,
        cluster_id: record.cluster_id,
        cpu_architecture: Some(record.cpu_architecture.into()),
        size_bytes: None,
        download_url: Secret::new(download_url),
        generator_version: String::new(),
        expires_at: Millis(None),
        created_at: record.created_at,
        updated_at: record.updated_at,
        pull_secret_set: !image.pull_secret.is_empty(),
        static_network_config: static_network_text(&image)?,
        kernel_arguments: kernel_arguments_text(&image)?,
        openshift_version: image.openshift_version,
        image_type: image.image_type.into(),
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

/// Returns a URL that contains its own token and never expires.
pub(super) fn presigned(url: String) -> PresignedUrl {
    PresignedUrl { url: Secret::new(url), expires_at: Millis(None) }
}

/// Returns the findings of a preflight in their API representation.
///
/// # Errors
///
/// Returns an error if a finding cannot be written as JSON.
pub(super) fn preflight_from_findings(findings: &PreflightFindings) -> Result<Preflight, Error> {
    Ok(Preflight {
        infra_env_id: findings.infra_env,
        image_generation: findings.image_generation,
        network: findings_as_json(&findings.network)?,
        ignition: findings_as_json(&findings.config)?,
        addresses: findings_as_json(&findings.addresses)?,
    })
}

fn findings_as_json(findings: &[impl Serialize]) -> Result<Vec<Value>, Error> {
    findings.iter().map(|finding| to_json_value("a finding", finding)).collect()
}
