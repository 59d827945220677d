//! The options for the inventory: defaults of infra-envs and clusters, agents, and validations.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result};
use assisted::step::StepType;
use clap::Args;
use ignition::network::NetworkGeneration;
use rules::requirements::{HardwareRequirements, InvalidRequirements};
use rules::validation::{
    ClusterValidationId, DisabledListError, DisabledValidations, HostValidationId, ValidationId,
};

use super::value::{
    parse_id, parse_image_type, parse_network_v4, parse_network_v6, parse_switch, parse_version,
};
use crate::cli::auth::read_text;
use crate::cli::duration;
use crate::inventory::catalogue::{ImageType, Version};
use crate::inventory::id::InfraEnvId;
use crate::inventory::{ClusterNetworks, HostLimits, Settings};

/// Maximum length of the certificate file. The content of this file becomes a part of Ignition configs.
const MAX_CERTIFICATES: u64 = 256 << 10;

/// Returns the default of `--min-version-for-nmstate-service`, without the patch number.
fn first_nmstate_version() -> String {
    let (major, minor) = NetworkGeneration::FIRST_NMSTATE_VERSION.minor();
    format!("{major}.{minor}")
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Infra-envs")]
pub(super) struct InfraEnvDefaultOptions {
    /// Default image type of infra-envs: full-iso or minimal-iso
    #[arg(
        long,
        env = "ISO_IMAGE_TYPE",
        value_name = "TYPE",
        default_value_t = Settings::IMAGE_TYPE,
        value_parser = parse_image_type
    )]
    iso_image_type: ImageType,
    /// Default time server of infra-envs
    #[arg(long, env = "NTP_DEFAULT_SERVER", value_name = "HOST")]
    ntp_default_server: Option<String>,
    /// Registries that need no credentials in a pull secret, separated by commas
    #[arg(
        long,
        env = "PUBLIC_CONTAINER_REGISTRIES",
        value_name = "REGISTRIES",
        value_delimiter = ',',
        default_value = Settings::PUBLIC_REGISTRIES.join(",")
    )]
    public_container_registries: Vec<String>,
    /// How long machines wait before they check their network, in seconds
    #[arg(long, env = "NETWORK_DISCOVERY_DELAY_SECONDS", value_name = "SECONDS", default_value_t = Settings::DISCOVERY_DELAY_SECONDS)]
    network_discovery_delay_seconds: u32,
    /// First OpenShift version whose machines configure their network with nmstate
    #[arg(
        long,
        env = "MIN_VERSION_FOR_NMSTATE_SERVICE",
        value_name = "VERSION",
        default_value = first_nmstate_version(),
        value_parser = parse_version
    )]
    min_version_for_nmstate_service: Version,
    /// Id of the next infra-env to be created, if there will be only one
    #[arg(long, env = "INFRA_ENV_ID", value_name = "ID", value_parser = parse_id::<InfraEnvId>)]
    infra_env_id: Option<InfraEnvId>,
    /// Reject request bodies with unknown keys
    #[arg(
        long,
        env = "ENABLE_REJECT_UNKNOWN_FIELDS",
        value_name = "BOOL",
        default_value_t = Settings::REJECT_UNKNOWN_FIELDS,
        value_parser = parse_switch
    )]
    enable_reject_unknown_fields: bool,
}

impl InfraEnvDefaultOptions {
    pub(super) fn apply_to_settings(&self, settings: &mut Settings) {
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
pub(super) struct ClusterDefaultOptions {
    /// IPv4 network of pods
    #[arg(long, env = "CLUSTER_NETWORK_CIDR", value_name = "CIDR", default_value_t = ClusterNetworks::v4().cluster_cidr, value_parser = parse_network_v4)]
    cluster_network_cidr: String,
    /// Prefix length of each host's subnet in the IPv4 network of pods
    #[arg(long, env = "CLUSTER_NETWORK_HOST_PREFIX", value_name = "BITS", default_value_t = ClusterNetworks::v4().host_prefix, value_parser = clap::value_parser!(u8).range(1..=32))]
    cluster_network_host_prefix: u8,
    /// IPv4 network of services
    #[arg(long, env = "SERVICE_NETWORK_CIDR", value_name = "CIDR", default_value_t = ClusterNetworks::v4().service_cidr, value_parser = parse_network_v4)]
    service_network_cidr: String,
    /// IPv6 network of pods
    #[arg(long, env = "CLUSTER_NETWORK_CIDR_IPV6", value_name = "CIDR", default_value_t = ClusterNetworks::v6().cluster_cidr, value_parser = parse_network_v6)]
    cluster_network_cidr_ipv6: String,
    /// Prefix length of each host's subnet in the IPv6 network of pods
    #[arg(long, env = "CLUSTER_NETWORK_HOST_PREFIX_IPV6", value_name = "BITS", default_value_t = ClusterNetworks::v6().host_prefix, value_parser = clap::value_parser!(u8).range(1..=128))]
    cluster_network_host_prefix_ipv6: u8,
    /// IPv6 network of services
    #[arg(long, env = "SERVICE_NETWORK_CIDR_IPV6", value_name = "CIDR", default_value_t = ClusterNetworks::v6().service_cidr, value_parser = parse_network_v6)]
    service_network_cidr_ipv6: String,
    /// List the cluster version operator (`cvo`) in each cluster
    #[arg(
        long,
        env = "CHECK_CLUSTER_VERSION",
        value_name = "BOOL",
        default_value_t = Settings::CHECK_CLUSTER_VERSION,
        value_parser = parse_switch
    )]
    check_cluster_version: bool,
}

impl ClusterDefaultOptions {
    pub(super) fn apply_to_settings(&self, settings: &mut Settings) {
        settings.check_cluster_version = self.check_cluster_version;
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
pub(super) struct AgentOptions {
    /// Image of the agent [default: the latest of the Assisted Installer]
    #[arg(long, env = "AGENT_DOCKER_IMAGE", value_name = "IMAGE")]
    agent_docker_image: Option<String>,
    /// Image of the installer [default: the latest of the Assisted Installer]
    #[arg(long, env = "INSTALLER_IMAGE", value_name = "IMAGE")]
    installer_image: Option<String>,
    /// Image of the controller [default: the latest of the Assisted Installer]
    #[arg(long, env = "CONTROLLER_IMAGE", value_name = "IMAGE")]
    controller_image: Option<String>,
    /// Version that this service reports [default: kindling and its version]
    #[arg(long, env = "SELF_VERSION", value_name = "TEXT")]
    self_version: Option<String>,
    /// Release tag that this service reports
    #[arg(long, env = "RELEASE_TAG", value_name = "TEXT")]
    release_tag: Option<String>,
    /// File with CA certificates, in PEM, with which the agent verifies this service
    #[arg(long, env = "SERVICE_CA_CERT_PATH", value_name = "FILE")]
    service_ca_cert_path: Option<PathBuf>,
    /// Let the agent skip TLS verification of this service (insecure)
    #[arg(
        long,
        env = "SKIP_CERT_VERIFICATION",
        value_name = "BOOL",
        default_value_t = Settings::SKIP_CERTIFICATE_VERIFICATION,
        value_parser = parse_switch
    )]
    skip_cert_verification: bool,
    /// How long a host may go without a check-in before it counts as disconnected
    #[arg(
        long,
        env = "HOST_MAX_DISCONNECTION_TIME",
        value_name = "DURATION",
        default_value = duration::format_duration(Settings::MAX_SILENCE),
        value_parser = duration::parse_duration
    )]
    host_max_disconnection_time: Duration,
    /// Interval at which to look for disconnected hosts
    #[arg(
        long,
        env = "HOST_MONITOR_INTERVAL",
        value_name = "DURATION",
        default_value = duration::format_duration(Settings::HOST_MONITOR_INTERVAL),
        value_parser = duration::parse_duration
    )]
    host_monitor_interval: Duration,
    /// Time without progress after which the monitor of hosts counts as stuck and /health fails
    #[arg(
        long,
        env = "LIVENESS_VALIDATION_TIMEOUT",
        value_name = "DURATION",
        default_value = duration::format_duration(Settings::MONITOR_TIMEOUT),
        value_parser = duration::parse_duration
    )]
    liveness_validation_timeout: Duration,
    /// Tell agents from another image to upgrade to the image of this service
    #[arg(
        long,
        env = "ENABLE_UPGRADE_AGENT",
        value_name = "BOOL",
        default_value_t = Settings::UPGRADE_AGENTS,
        value_parser = parse_switch
    )]
    enable_upgrade_agent: bool,
    /// Types of steps that agents never receive, separated by commas. Unknown types are ignored with a warning
    #[arg(long, env = "DISABLED_STEPS", value_name = "STEPS", value_delimiter = ',')]
    disabled_steps: Vec<String>,
    /// Size of an inventory report above which agents leave out parts of it, in bytes. 0: no limit
    #[arg(long, env = "AGENT_INVENTORY_MAX_SIZE", value_name = "BYTES", default_value_t = 0)]
    agent_inventory_max_size: u64,
    /// Size of a disk below which agents leave it out of their inventory report, in bytes. 0: no limit
    #[arg(long, env = "AGENT_INVENTORY_DISK_MIN_SIZE", value_name = "BYTES", default_value_t = 0)]
    agent_inventory_disk_min_size: u64,
    /// Maximum number of hosts in an infra-env
    #[arg(
        long,
        env = "KINDLING_MAX_INFRA_ENV_HOSTS",
        value_name = "COUNT",
        default_value_t = HostLimits::default().hosts,
        value_parser = clap::value_parser!(u64).range(1..=1_000_000)
    )]
    max_infra_env_hosts: u64,
    /// Maximum size of an agent's report, in bytes. The stored reports of a host may have twice this size in total
    #[arg(
        long,
        env = "KINDLING_MAX_REPORT_BYTES",
        value_name = "BYTES",
        default_value = HostLimits::default().bytes_per_report.to_string(),
        value_parser = clap::value_parser!(u32).range(64 << 10..=8 << 20)
    )]
    max_report_bytes: u32,
    /// Maximum size of the stored reports of all hosts in an infra-env, in bytes
    #[arg(
        long,
        env = "KINDLING_MAX_INFRA_ENV_BYTES",
        value_name = "BYTES",
        default_value_t = HostLimits::default().bytes,
        value_parser = clap::value_parser!(u64).range(1 << 20..)
    )]
    max_infra_env_bytes: u64,
}

impl AgentOptions {
    pub(super) fn apply_to_settings(&self, settings: &mut Settings) -> Result<()> {
        let set = |setting: &mut String, option: &Option<String>| {
            if let Some(value) = option {
                setting.clone_from(value);
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
        if self.skip_cert_verification {
            tracing::warn!(
                "SKIP_CERT_VERIFICATION (--skip-cert-verification) is set: agents do not verify this service, so an \
                 attacker on the path can read pull secrets and change installations"
            );
        }
        settings.skip_certificate_verification = self.skip_cert_verification;
        settings.max_silence = self.host_max_disconnection_time;
        settings.host_monitor_interval = self.host_monitor_interval;
        settings.monitor_timeout = self.liveness_validation_timeout;
        settings.upgrade_agents = self.enable_upgrade_agent;
        settings.disabled_steps = disabled_steps(&self.disabled_steps);
        settings.inventory_max_size = Some(self.agent_inventory_max_size).filter(|size| *size > 0);
        settings.inventory_disk_min_size = Some(self.agent_inventory_disk_min_size).filter(|size| *size > 0);
        settings.host_limits = HostLimits {
            hosts: self.max_infra_env_hosts,
            bytes_per_report: usize::try_from(self.max_report_bytes)?,
            bytes: self.max_infra_env_bytes,
        };
        Ok(())
    }
}

/// Parses a list of step types. Like the Assisted Installer, ignores unknown names and logs a warning.
fn disabled_steps(names: &[String]) -> BTreeSet<StepType> {
    let mut steps = BTreeSet::new();
    for name in names.iter().map(|name| name.trim()).filter(|name| !name.is_empty()) {
        match StepType::ALL.iter().find(|step| step.as_str() == name) {
            Some(step) => drop(steps.insert(*step)),
            None => tracing::warn!("DISABLED_STEPS (--disabled-steps) names {name:?}, which is not a step"),
        }
    }
    steps
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Validations")]
pub(super) struct ValidationOptions {
    /// Ids of host validations to switch off, separated by commas
    #[arg(long, env = "DISABLED_HOST_VALIDATIONS", value_name = "IDS", default_value = "", hide_default_value = true, value_parser = parse_disabled::<HostValidationId>)]
    disabled_host_validations: DisabledValidations,
    /// Ids of cluster validations to switch off, separated by commas
    #[arg(long, env = "DISABLED_CLUSTER_VALIDATIONS", value_name = "IDS", default_value = "", hide_default_value = true, value_parser = parse_disabled::<ClusterValidationId>)]
    disabled_cluster_validations: DisabledValidations,
    /// Hardware that hosts need, by OpenShift version and role, as JSON [default: the
    /// requirements of the Assisted Installer]
    #[arg(long, env = "HW_VALIDATOR_REQUIREMENTS", value_name = "JSON", value_parser = parse_requirements)]
    hw_validator_requirements: Option<HardwareRequirements>,
    /// Product names of data processing units, which need a smaller disk as workers, separated by commas [default:
    /// BlueField SoC]
    #[arg(long, env = "EDGE_WORKERS_PRODUCT_NAMES", value_name = "NAMES")]
    edge_workers_product_names: Option<String>,
    /// Suggest a role for each host unless the user chose one
    #[arg(
        long,
        env = "ENABLE_AUTO_ASSIGN",
        value_name = "BOOL",
        default_value_t = true,
        value_parser = parse_switch
    )]
    enable_auto_assign: bool,
}

impl ValidationOptions {
    pub(super) fn apply_to_settings(&self, settings: &mut Settings) {
        settings.validations.disabled_host = self.disabled_host_validations.clone();
        settings.validations.disabled_cluster = self.disabled_cluster_validations.clone();
        settings.auto_assign_roles = self.enable_auto_assign;
        if let Some(requirements) = &self.hw_validator_requirements {
            settings.hardware = requirements.clone();
        }
        if let Some(names) = &self.edge_workers_product_names {
            settings.hardware = settings.hardware.clone().with_edge_worker_products(names);
        }
    }
}

fn parse_disabled<Id: ValidationId>(list: &str) -> Result<DisabledValidations, DisabledListError> {
    if list.is_empty() { Ok(DisabledValidations::default()) } else { DisabledValidations::parse::<Id>(list) }
}

fn parse_requirements(json: &str) -> Result<HardwareRequirements, InvalidRequirements> {
    HardwareRequirements::parse(json)
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Command {
        #[command(flatten)]
        agents: AgentOptions,
    }

    #[test]
    fn rejects_limits_that_are_too_small() {
        for option in ["--max-infra-env-hosts=0", "--max-report-bytes=65535", "--max-infra-env-bytes=1"] {
            Command::try_parse_from(["test", option]).unwrap_err();
        }
    }
}
