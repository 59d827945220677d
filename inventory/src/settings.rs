//! Settings of the inventory, chosen by the operator.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use assisted::step::StepType;
use ignition::discovery::HttpUrl;
use ignition::network::NetworkGeneration;
use rules::assessment::EvaluationSettings;
use rules::requirements::HardwareRequirements;
use rules::steps::StepSettings;
use rules::summary::MeasurementLimits;
use rules::validation::{ClusterValidationId, HostValidationId, ValidationId as _, ValidationSettings};
use sha2::{Digest as _, Sha256};

use crate::catalogue::{ImageType, Version};
use crate::clock::{Clock, SystemClock};
use crate::id::InfraEnvId;

/// The settings of the inventory.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Base URL of the API for hosts and iPXE, without the path of the API.
    pub service_base_url: HttpUrl,
    /// Base URL of images for hosts and iPXE.
    pub image_service_base_url: HttpUrl,
    /// Whether the service refuses bodies with unknown keys.
    pub reject_unknown_fields: bool,
    /// Image type of infra-envs that set none.
    pub default_image_type: ImageType,
    /// Time server of infra-envs that set none. May be empty.
    pub default_ntp_source: String,
    /// Registries that need no credentials.
    pub public_registries: Vec<String>,
    /// Container image of the agent.
    pub agent_image: String,
    /// Container image of the installer.
    pub installer_image: String,
    /// Container image of the controller.
    pub controller_image: String,
    /// The version of this service, as shown to clients.
    pub self_version: String,
    /// The common release of all container images. May be empty.
    pub release_tag: String,
    /// Seconds that the live system waits before it looks for network interfaces.
    pub discovery_delay_seconds: u32,
    /// The first OpenShift version whose live system runs nmstate at boot.
    pub first_nmstate_version: Version,
    /// CA certificates in PEM that the agent trusts for this service. `None`: the certificates of the agent's system.
    pub service_ca_certificates: Option<String>,
    /// Whether the agent skips the verification of this service's certificate.
    pub skip_certificate_verification: bool,
    /// Time without a check-in after which a host counts as disconnected.
    pub max_silence: Duration,
    /// Pause between two passes of the monitor over the hosts.
    pub host_monitor_interval: Duration,
    /// Time without progress after which the monitor counts as stuck.
    pub monitor_timeout: Duration,
    /// Time for which deleted clusters and hosts are kept.
    pub kept_after_deletion: Duration,
    /// Time for which images of known infra-envs are served while the database is unreachable.
    pub database_outage_grace: Duration,
    /// IPv4 networks of clusters that set none.
    pub cluster_networks: ClusterNetworks,
    /// IPv6 networks of clusters that set none.
    pub cluster_networks_v6: ClusterNetworks,
    /// Fixed id of new infra-envs, so that only one can exist.
    pub infra_env_id: Option<InfraEnvId>,
    /// Origins of web pages that may call the API. `*` matches any part of an origin.
    pub allowed_origins: Vec<String>,
    /// Values of the header `Host` that requests for the API and the page may have under the policy `none`.
    pub allowed_hosts: AllowedHosts,
    /// Whether an agent from another container image must upgrade to [`Self::agent_image`].
    pub upgrade_agents: bool,
    /// Types of steps that agents never receive.
    pub disabled_steps: BTreeSet<StepType>,
    /// Maximum size of the inventory reports that agents send, in bytes. `None`: no limit.
    pub inventory_max_size: Option<u64>,
    /// Minimum size of the disks that agents report, in bytes. `None`: they report all disks.
    pub inventory_disk_min_size: Option<u64>,
    /// The minimum hardware of hosts.
    pub hardware: HardwareRequirements,
    /// The settings of validations.
    pub validations: ValidationSettings,
    /// Whether the service suggests a role for each host without a user's choice.
    pub auto_assign_roles: bool,
    /// The limits that validations apply to measured latency and packet loss.
    pub measurement_limits: MeasurementLimits,
    /// Whether each cluster has the built-in operator `cvo` in addition to `console`.
    pub check_cluster_version: bool,
    /// Limits for the hosts of one infra-env.
    pub host_limits: HostLimits,
    /// The function to call on a background thread after work that took much memory. It can return freed memory to the
    /// system. Otherwise, an allocator may keep the freed memory, and the process exceeds the memory limit for
    /// requests. Requests with large bodies are such work, and an operator may report its own.
    pub after_large_work: fn(),
    /// Rules for the URLs of base images that users add.
    pub added_image_rule: AddedImageRule,
    /// The wall clock. Tests set a clock that they control.
    pub clock: Arc<dyn Clock>,
}

/// A check of the URLs of base images that users add. Its error is the reason in the response.
#[derive(Clone)]
pub struct AddedImageRule(Arc<UrlCheck>);

type UrlCheck = dyn Fn(&str) -> Result<(), String> + Send + Sync;

impl AddedImageRule {
    /// Creates a rule from its check.
    pub fn new(check: impl Fn(&str) -> Result<(), String> + Send + Sync + 'static) -> Self {
        Self(Arc::new(check))
    }

    /// Checks an HTTP or HTTPS URL.
    pub(crate) fn check(&self, url: &str) -> Result<(), String> {
        (self.0)(url)
    }
}

impl Default for AddedImageRule {
    /// Accepts every URL.
    fn default() -> Self {
        Self::new(|_| Ok(()))
    }
}

impl fmt::Debug for AddedImageRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AddedImageRule").finish_non_exhaustive()
    }
}

/// Limits for the hosts of one infra-env. Any client with its token can register hosts and send reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostLimits {
    /// Maximum number of hosts of an infra-env. Deleted hosts do not count.
    pub hosts: u64,
    /// Maximum length of one report, in bytes. All reports of one host together may be twice as long.
    pub bytes_per_report: usize,
    /// Maximum length of all host records of an infra-env, in bytes. Most of these bytes are reports.
    pub bytes: u64,
}

impl HostLimits {
    /// Returns the maximum number of bytes of all reports of one host.
    #[must_use]
    pub(crate) fn bytes_per_host(&self) -> usize {
        self.bytes_per_report.saturating_mul(2)
    }
}

impl Default for HostLimits {
    /// Returns limits for 20,000 hosts. A real inventory report is about 50 KiB long, and the total allows 64 KiB for
    /// each host.
    fn default() -> Self {
        Self { hosts: 20_000, bytes_per_report: 1 << 20, bytes: 20_000 * (64 << 10) }
    }
}

/// The values of the header `Host` that a request may have. `*` in a value matches any text. The hosts of the base
/// URLs, and the names and addresses of loopback, are always allowed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AllowedHosts {
    /// Any host. The program that embeds this service checks the header.
    Any,
    /// Only these hosts, for a service that listens only on loopback.
    Loopback(Vec<String>),
    /// Any IP address, but no other host names.
    Addresses,
    /// Only these hosts.
    Listed(Vec<String>),
}

/// The internal networks of a cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterNetworks {
    /// Network of the pods.
    pub cluster_cidr: String,
    /// Prefix length of each host's part of the pod network.
    pub host_prefix: u8,
    /// Network of the services.
    pub service_cidr: String,
}

impl ClusterNetworks {
    /// Returns the default IPv4 networks.
    #[must_use]
    pub fn v4() -> Self {
        Self::new("10.128.0.0/14", 23, "172.30.0.0/16")
    }

    /// Returns the default IPv6 networks.
    #[must_use]
    pub fn v6() -> Self {
        Self::new("fd01::/48", 64, "fd02::/112")
    }

    fn new(cluster_cidr: &str, host_prefix: u8, service_cidr: &str) -> Self {
        let (cluster_cidr, service_cidr) = (cluster_cidr.to_owned(), service_cidr.to_owned());
        Self { cluster_cidr, host_prefix, service_cidr }
    }
}

impl Settings {
    /// The path of the API.
    pub const API: &'static str = "/api/assisted-install";
    /// The default of [`Self::agent_image`].
    pub const AGENT_IMAGE: &'static str = "quay.io/edge-infrastructure/assisted-installer-agent:latest";
    /// The default of [`Self::default_image_type`].
    pub const IMAGE_TYPE: ImageType = ImageType::Full;
    /// The default of [`Self::reject_unknown_fields`].
    pub const REJECT_UNKNOWN_FIELDS: bool = true;
    /// The default of [`Self::public_registries`].
    pub const PUBLIC_REGISTRIES: [&'static str; 2] = ["quay.io", "registry.ci.openshift.org"];
    /// The default of [`Self::discovery_delay_seconds`].
    pub const DISCOVERY_DELAY_SECONDS: u32 = 0;
    /// The default of [`Self::skip_certificate_verification`].
    pub const SKIP_CERTIFICATE_VERIFICATION: bool = false;
    /// The default of [`Self::max_silence`].
    pub const MAX_SILENCE: Duration = Duration::from_secs(3 * 60);
    /// The default of [`Self::host_monitor_interval`].
    pub const HOST_MONITOR_INTERVAL: Duration = Duration::from_secs(8);
    /// The default of [`Self::monitor_timeout`].
    pub const MONITOR_TIMEOUT: Duration = Duration::from_secs(5 * 60);
    /// The default of [`Self::kept_after_deletion`].
    pub const KEPT_AFTER_DELETION: Duration = Duration::from_secs(72 * 60 * 60);
    /// The default of [`Self::database_outage_grace`].
    pub const DATABASE_OUTAGE_GRACE: Duration = Duration::from_secs(10 * 60);
    /// The default of [`Self::upgrade_agents`].
    pub const UPGRADE_AGENTS: bool = true;
    /// The default of [`Self::check_cluster_version`].
    pub const CHECK_CLUSTER_VERSION: bool = false;

    /// Returns a digest of the validations of this release and of their settings. Assessments depend on them in
    /// addition to the facts. A host assessed on another basis is assessed again.
    #[must_use]
    pub fn assessment_basis(&self) -> String {
        let ids = (HostValidationId::ALL, ClusterValidationId::ALL);
        let settings = (&self.validations, &self.hardware, self.auto_assign_roles);
        // Another release may have different rules.
        let basis = format!("{} {ids:?} {settings:?}", env!("CARGO_PKG_VERSION"));
        let digest = Sha256::digest(basis);
        digest.iter().take(8).map(|byte| format!("{byte:02x}")).collect()
    }

    /// Returns the settings that assessments depend on.
    pub(crate) fn evaluation(&self) -> EvaluationSettings<'_> {
        EvaluationSettings { hardware: &self.hardware, validations: &self.validations }
    }

    /// Returns the settings that determine the steps of agents.
    pub(crate) fn step_settings(&self) -> StepSettings {
        StepSettings {
            agent_image: self.agent_image.clone(),
            upgrade_agents: self.upgrade_agents,
            disabled_steps: self.disabled_steps.clone(),
            inventory_max_size: self.inventory_max_size,
            disk_min_size: self.inventory_disk_min_size,
            finds_free_addresses: true,
        }
    }

    /// Creates settings with these base URLs. All other settings have their defaults.
    #[must_use]
    pub fn new(service_base_url: HttpUrl, image_service_base_url: HttpUrl) -> Self {
        const IMAGES: &str = "quay.io/edge-infrastructure";
        Self {
            service_base_url,
            image_service_base_url,
            reject_unknown_fields: Self::REJECT_UNKNOWN_FIELDS,
            default_image_type: Self::IMAGE_TYPE,
            default_ntp_source: String::new(),
            public_registries: Self::PUBLIC_REGISTRIES.map(str::to_owned).into(),
            agent_image: Self::AGENT_IMAGE.to_owned(),
            installer_image: format!("{IMAGES}/assisted-installer:latest"),
            controller_image: format!("{IMAGES}/assisted-installer-controller:latest"),
            self_version: concat!("kindling-", env!("CARGO_PKG_VERSION")).to_owned(),
            release_tag: String::new(),
            discovery_delay_seconds: Self::DISCOVERY_DELAY_SECONDS,
            first_nmstate_version: NetworkGeneration::FIRST_NMSTATE_VERSION,
            service_ca_certificates: None,
            skip_certificate_verification: Self::SKIP_CERTIFICATE_VERIFICATION,
            max_silence: Self::MAX_SILENCE,
            host_monitor_interval: Self::HOST_MONITOR_INTERVAL,
            monitor_timeout: Self::MONITOR_TIMEOUT,
            kept_after_deletion: Self::KEPT_AFTER_DELETION,
            database_outage_grace: Self::DATABASE_OUTAGE_GRACE,
            cluster_networks: ClusterNetworks::v4(),
            cluster_networks_v6: ClusterNetworks::v6(),
            infra_env_id: None,
            allowed_origins: Vec::new(),
            allowed_hosts: AllowedHosts::Loopback(Vec::new()),
            upgrade_agents: Self::UPGRADE_AGENTS,
            disabled_steps: BTreeSet::new(),
            inventory_max_size: None,
            inventory_disk_min_size: None,
            hardware: HardwareRequirements::default(),
            validations: ValidationSettings::default(),
            auto_assign_roles: true,
            measurement_limits: MeasurementLimits::default(),
            check_cluster_version: Self::CHECK_CLUSTER_VERSION,
            host_limits: HostLimits::default(),
            after_large_work: || (),
            added_image_rule: AddedImageRule::default(),
            clock: Arc::new(SystemClock),
        }
    }
}
