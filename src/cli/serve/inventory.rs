//! The settings of the inventory as options.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result};
use clap::Args;
use ignition::discovery::HttpUrl;

use super::value::{id, image_type, network_v4, network_v6, origin, switch, version};
use crate::cli::auth::read_text;
use crate::cli::duration;
use crate::http::Listener;
use crate::images::ImageType;
use crate::inventory::id::InfraEnvId;
use crate::inventory::{ClusterNetworks, HostLimits, Settings};

/// The largest file of certificates that is read: as many as fit into an Ignition config.
const MAX_CERTIFICATES: u64 = 256 << 10;

#[derive(Debug, Args)]
#[command(next_help_heading = "Addresses")]
pub(super) struct Addresses {
    /// Where machines reach the API, without its path; without it the first address to listen on, one with TLS before others
    #[arg(long, env = "SERVICE_BASE_URL", value_name = "URL")]
    service_base_url: Option<String>,
    /// Where machines reach images; as the API without it
    #[arg(long, env = "IMAGE_SERVICE_BASE_URL", value_name = "URL")]
    image_service_base_url: Option<String>,
    /// Origins whose pages may call the API, with commas between them; * stands for any part of one
    #[arg(
        long,
        env = "ALLOWED_DOMAINS",
        value_name = "ORIGINS",
        value_delimiter = ',',
        value_parser = origin
    )]
    allowed_domains: Vec<String>,
}

impl Addresses {
    /// Settings for a service with these listeners.
    pub(super) fn settings(&self, listeners: &[Listener]) -> Result<Settings> {
        let (own, is_known) = own_url(listeners);
        if self.service_base_url.is_none() && !is_known {
            tracing::warn!("SERVICE_BASE_URL is not set: machines will not find this service");
        }
        let service = self.service_base_url.as_deref().unwrap_or(&own);
        let images = self.image_service_base_url.as_deref().unwrap_or(service);
        let mut settings = Settings::new(
            HttpUrl::parse("SERVICE_BASE_URL", service)?,
            HttpUrl::parse("IMAGE_SERVICE_BASE_URL", images)?,
        );
        settings.allowed_origins = self.allowed_origins();
        Ok(settings)
    }

    /// The origins whose pages may call.
    pub(super) fn allowed_origins(&self) -> Vec<String> {
        self.allowed_domains.iter().filter(|text| !text.is_empty()).cloned().collect()
    }

    /// Where machines reach images of a service of images alone with these listeners.
    pub(super) fn images_url(&self, listeners: &[Listener]) -> Result<HttpUrl> {
        let (own, is_known) = own_url(listeners);
        if self.image_service_base_url.is_none() && !is_known {
            tracing::warn!("IMAGE_SERVICE_BASE_URL is not set: minimal images will not find this service");
        }
        let url = self.image_service_base_url.as_deref().unwrap_or(&own);
        Ok(HttpUrl::parse("IMAGE_SERVICE_BASE_URL", url)?)
    }
}

/// The URL of a service with these listeners, and whether machines find it there.
fn own_url(listeners: &[Listener]) -> (String, bool) {
    // Those with TLS come first: where there are both, the others have no images.
    let own = listeners.iter().find(|listener| listener.url().is_some());
    let is_known = own.and_then(Listener::ip).is_some_and(|address| !address.is_unspecified());
    (own.and_then(Listener::url).unwrap_or_else(|| "http://localhost".to_owned()), is_known)
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Infra-envs")]
pub(super) struct InfraEnvs {
    /// The kind of image of infra-envs that ask for none: full-iso or minimal-iso
    #[arg(
        long,
        env = "ISO_IMAGE_TYPE",
        value_name = "TYPE",
        default_value = "full-iso",
        value_parser = image_type
    )]
    iso_image_type: ImageType,
    /// Time server of infra-envs that name none
    #[arg(long, env = "NTP_DEFAULT_SERVER", value_name = "HOST")]
    ntp_default_server: Option<String>,
    /// Registries that need no credentials in a pull secret, with commas between them
    #[arg(
        long,
        env = "PUBLIC_CONTAINER_REGISTRIES",
        value_name = "REGISTRIES",
        value_delimiter = ',',
        default_value = "quay.io,registry.ci.openshift.org"
    )]
    public_container_registries: Vec<String>,
    /// How long machines wait, in seconds, before they look at their network
    #[arg(long, env = "NETWORK_DISCOVERY_DELAY_SECONDS", value_name = "SECONDS", default_value_t = 0)]
    network_discovery_delay_seconds: u32,
    /// The first version of OpenShift whose machines set their network up with nmstate
    #[arg(
        long,
        env = "MIN_VERSION_FOR_NMSTATE_SERVICE",
        value_name = "VERSION",
        default_value = "4.18",
        value_parser = version
    )]
    min_version_for_nmstate_service: String,
    /// The id of the next infra-env that is made, where there is only one
    #[arg(long, env = "INFRA_ENV_ID", value_name = "ID", value_parser = id::<InfraEnvId>)]
    infra_env_id: Option<InfraEnvId>,
    /// Whether bodies with keys that nobody knows are refused
    #[arg(
        long,
        env = "ENABLE_REJECT_UNKNOWN_FIELDS",
        value_name = "BOOL",
        default_value = "true",
        value_parser = switch
    )]
    enable_reject_unknown_fields: bool,
}

impl InfraEnvs {
    pub(super) fn apply(&self, settings: &mut Settings) {
        settings.default_image_type = self.iso_image_type;
        settings.default_ntp_source = self.ntp_default_server.clone().unwrap_or_default();
        let registries = self.public_container_registries.iter().map(|text| text.trim().to_owned());
        settings.public_registries = registries.filter(|text| !text.is_empty()).collect();
        settings.discovery_delay_seconds = self.network_discovery_delay_seconds;
        settings.first_nmstate_version.clone_from(&self.min_version_for_nmstate_service);
        settings.infra_env_id = self.infra_env_id;
        settings.reject_unknown_fields = self.enable_reject_unknown_fields;
    }
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Clusters")]
pub(super) struct Clusters {
    /// Network of pods
    #[arg(long, env = "CLUSTER_NETWORK_CIDR", value_name = "CIDR", default_value = "10.128.0.0/14", value_parser = network_v4)]
    cluster_network_cidr: String,
    /// Length of the prefix of each host's part of it
    #[arg(long, env = "CLUSTER_NETWORK_HOST_PREFIX", value_name = "BITS", default_value_t = 23, value_parser = clap::value_parser!(u8).range(1..=32))]
    cluster_network_host_prefix: u8,
    /// Network of services
    #[arg(long, env = "SERVICE_NETWORK_CIDR", value_name = "CIDR", default_value = "172.30.0.0/16", value_parser = network_v4)]
    service_network_cidr: String,
    /// Network of pods, version 6
    #[arg(long, env = "CLUSTER_NETWORK_CIDR_IPV6", value_name = "CIDR", default_value = "fd01::/48", value_parser = network_v6)]
    cluster_network_cidr_ipv6: String,
    /// Length of the prefix of each host's part of it
    #[arg(long, env = "CLUSTER_NETWORK_HOST_PREFIX_IPV6", value_name = "BITS", default_value_t = 64, value_parser = clap::value_parser!(u8).range(1..=128))]
    cluster_network_host_prefix_ipv6: u8,
    /// Network of services, version 6
    #[arg(long, env = "SERVICE_NETWORK_CIDR_IPV6", value_name = "CIDR", default_value = "fd02::/112", value_parser = network_v6)]
    service_network_cidr_ipv6: String,
}

impl Clusters {
    pub(super) fn apply(&self, settings: &mut Settings) {
        settings.cluster_networks = ClusterNetworks {
            cluster_cidr: self.cluster_network_cidr.clone(),
            host_prefix: self.cluster_network_host_prefix,
            service_cidr: self.service_network_cidr.clone(),
        };
        settings.cluster_networks_v6 = ClusterNetworks {
            cluster_cidr: self.cluster_network_cidr_ipv6.clone(),
            host_prefix: self.cluster_network_host_prefix_ipv6,
            service_cidr: self.service_network_cidr_ipv6.clone(),
        };
    }
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Agents")]
pub(super) struct Agents {
    /// Image of the agent [default: the latest of the Assisted Installer]
    #[arg(long, env = "AGENT_DOCKER_IMAGE", value_name = "IMAGE")]
    agent_docker_image: Option<String>,
    /// Image of the installer [default: the latest of the Assisted Installer]
    #[arg(long, env = "INSTALLER_IMAGE", value_name = "IMAGE")]
    installer_image: Option<String>,
    /// Image of the controller [default: the latest of the Assisted Installer]
    #[arg(long, env = "CONTROLLER_IMAGE", value_name = "IMAGE")]
    controller_image: Option<String>,
    /// How this service calls its version [default: kindling and its version]
    #[arg(long, env = "SELF_VERSION", value_name = "TEXT")]
    self_version: Option<String>,
    /// How the release of all images is called
    #[arg(long, env = "RELEASE_TAG", value_name = "TEXT")]
    release_tag: Option<String>,
    /// File with the certificates, in PEM, by which the agent knows this service
    #[arg(long, env = "SERVICE_CA_CERT_PATH", value_name = "FILE")]
    service_ca_cert_path: Option<PathBuf>,
    /// Whether the agent trusts whoever answers in the place of this service
    #[arg(
        long,
        env = "SKIP_CERT_VERIFICATION",
        value_name = "BOOL",
        default_value = "false",
        value_parser = switch
    )]
    skip_cert_verification: bool,
    /// How long a machine may be silent before it counts as disconnected
    #[arg(
        long,
        env = "HOST_MAX_DISCONNECTION_TIME",
        value_name = "DURATION",
        default_value = "3m",
        value_parser = duration::parse
    )]
    host_max_disconnection_time: Duration,
    /// Whether an agent that comes from another image is told to take the one of this service
    #[arg(
        long,
        env = "ENABLE_UPGRADE_AGENT",
        value_name = "BOOL",
        default_value = "true",
        value_parser = switch
    )]
    enable_upgrade_agent: bool,
    /// Most hosts that an infra-env may have
    #[arg(
        long,
        env = "KINDLING_MAX_INFRA_ENV_HOSTS",
        value_name = "COUNT",
        default_value_t = HostLimits::default().hosts,
        value_parser = clap::value_parser!(u64).range(1..=1_000_000)
    )]
    max_infra_env_hosts: u64,
    /// Largest report of an agent, in bytes. A host may keep twice as much from all of its reports together
    #[arg(
        long,
        env = "KINDLING_MAX_REPORT_BYTES",
        value_name = "BYTES",
        default_value_t = 1 << 20,
        value_parser = clap::value_parser!(u32).range(64 << 10..=8 << 20)
    )]
    max_report_bytes: u32,
    /// Most bytes that all hosts of an infra-env may keep
    #[arg(
        long,
        env = "KINDLING_MAX_INFRA_ENV_BYTES",
        value_name = "BYTES",
        default_value_t = HostLimits::default().bytes,
        value_parser = clap::value_parser!(u64).range(1 << 20..)
    )]
    max_infra_env_bytes: u64,
}

impl Agents {
    pub(super) fn apply(&self, settings: &mut Settings) -> Result<()> {
        let set = |setting: &mut String, given: &Option<String>| {
            if let Some(given) = given {
                setting.clone_from(given);
            }
        };
        set(&mut settings.agent_image, &self.agent_docker_image);
        set(&mut settings.installer_image, &self.installer_image);
        set(&mut settings.controller_image, &self.controller_image);
        set(&mut settings.self_version, &self.self_version);
        set(&mut settings.release_tag, &self.release_tag);
        if let Some(path) = &self.service_ca_cert_path {
            let text = read_text(path, MAX_CERTIFICATES).context("SERVICE_CA_CERT_PATH")?;
            settings.service_ca_certificates = Some(text);
        }
        settings.skip_certificate_verification = self.skip_cert_verification;
        settings.most_silence = self.host_max_disconnection_time;
        settings.upgrade_agents = self.enable_upgrade_agent;
        settings.host_limits = HostLimits {
            hosts: self.max_infra_env_hosts,
            bytes_per_report: usize::try_from(self.max_report_bytes)?,
            bytes: self.max_infra_env_bytes,
        };
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Command {
        #[command(flatten)]
        agents: Agents,
    }

    #[test]
    fn options_have_the_default_limits_of_the_inventory() {
        let url = |name| HttpUrl::parse(name, "http://localhost").unwrap();
        let mut settings = Settings::new(url("service"), url("images"));
        settings.host_limits = HostLimits { hosts: 0, bytes_per_report: 0, bytes: 0 };
        Command::try_parse_from(["test"]).unwrap().agents.apply(&mut settings).unwrap();
        assert_eq!(settings.host_limits, HostLimits::default());
        for option in ["--max-infra-env-hosts=0", "--max-report-bytes=65535", "--max-infra-env-bytes=1"] {
            Command::try_parse_from(["test", option]).unwrap_err();
        }
    }
}
