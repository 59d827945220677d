//! What an operator sets.

use std::time::Duration;

use ignition::discovery::HttpUrl;
use ignition::network::Generation;

use super::id::InfraEnvId;
use crate::images::ImageType;

/// The settings of the inventory.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Where machines and iPXE reach the API, without the path of the API.
    pub service_base_url: HttpUrl,
    /// Where they reach images.
    pub image_service_base_url: HttpUrl,
    /// Whether bodies with keys that nobody knows are refused.
    pub reject_unknown_fields: bool,
    /// The kind of image of an infra-env that asks for none.
    pub default_image_type: ImageType,
    /// The time server of infra-envs that name none; may be empty.
    pub default_ntp_source: String,
    /// Registries that need no credentials.
    pub public_registries: Vec<String>,
    /// The image of the agent.
    pub agent_image: String,
    /// The image of the installer.
    pub installer_image: String,
    /// The image of the controller.
    pub controller_image: String,
    /// How this service calls its version.
    pub self_version: String,
    /// How the release of all images is called; may be empty.
    pub release_tag: String,
    /// How long machines wait, in seconds, before they look at their network.
    pub discovery_delay_seconds: u32,
    /// The first version whose machines set their network up with nmstate.
    pub first_nmstate_version: String,
    /// Certificates, in PEM, by which the agent knows this service; it has them from the system without.
    pub service_ca_certificates: Option<String>,
    /// Whether the agent trusts whoever answers in the place of this service.
    pub skip_certificate_verification: bool,
    /// How long a machine may be silent before it counts as disconnected.
    pub most_silence: Duration,
    /// How long clusters and hosts are kept that were deleted.
    pub kept_after_deletion: Duration,
    /// The networks of version 4 of clusters that name none.
    pub cluster_networks: ClusterNetworks,
    /// The networks of version 6 of clusters that name none.
    pub cluster_networks_v6: ClusterNetworks,
    /// The id of the infra-env where there is only one.
    pub infra_env_id: Option<InfraEnvId>,
    /// The origins whose pages may call the API; `*` for any part of one.
    pub allowed_origins: Vec<String>,
    /// The hosts that requests for the API and the page may name under the policy `none`.
    pub allowed_hosts: AllowedHosts,
    /// Whether a machine whose agent comes from another image is told to take [`Self::agent_image`].
    pub upgrade_agents: bool,
    /// How much is kept of the hosts of one infra-env.
    pub host_limits: HostLimits,
}

/// How much is kept of the hosts of one infra-env. Any holder of its token can register hosts and send reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostLimits {
    /// Hosts of an infra-env, without deleted ones.
    pub hosts: u64,
    /// Bytes of one report of an agent. All reports of one host together may have [twice](Self::bytes_per_host) as many.
    pub bytes_per_report: usize,
    /// Bytes of all host records of an infra-env, most of which are reports.
    pub bytes: u64,
}

impl HostLimits {
    /// Bytes of all that the agent of one host reported.
    #[must_use]
    pub fn bytes_per_host(&self) -> usize {
        self.bytes_per_report.saturating_mul(2)
    }
}

impl Default for HostLimits {
    /// A real inventory report has about 50 KiB. The total has room for 64 KiB from each host.
    fn default() -> Self {
        Self { hosts: 20_000, bytes_per_report: 1 << 20, bytes: 20_000 * (64 << 10) }
    }
}

/// The hosts that a request may name. A host may have a `*` for any text. The hosts of the base URLs are always among them, and so
/// are the names and addresses of loopback.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AllowedHosts {
    /// Any host: the program that this service is part of checks it.
    Any,
    /// No others than these, for a service on loopback alone.
    Loopback(Vec<String>),
    /// Any IP address.
    Addresses,
    /// No others than these.
    Listed(Vec<String>),
}

/// The networks inside a cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterNetworks {
    /// The one of its pods.
    pub cluster_cidr: String,
    /// The length of the prefix of the part that each of its hosts has.
    pub host_prefix: u8,
    /// The one of its services.
    pub service_cidr: String,
}

impl ClusterNetworks {
    fn new(cluster_cidr: &str, host_prefix: u8, service_cidr: &str) -> Self {
        let (cluster_cidr, service_cidr) = (cluster_cidr.to_owned(), service_cidr.to_owned());
        Self { cluster_cidr, host_prefix, service_cidr }
    }
}

impl Settings {
    /// The path of the API.
    pub const API: &'static str = "/api/assisted-install";
    /// The image of the agent where nobody names another.
    pub const AGENT_IMAGE: &'static str = "quay.io/edge-infrastructure/assisted-installer-agent:latest";

    /// Settings that have only what they must have.
    #[must_use]
    pub fn new(service_base_url: HttpUrl, image_service_base_url: HttpUrl) -> Self {
        const IMAGES: &str = "quay.io/edge-infrastructure";
        Self {
            service_base_url,
            image_service_base_url,
            reject_unknown_fields: true,
            default_image_type: ImageType::Full,
            default_ntp_source: String::new(),
            public_registries: Vec::new(),
            agent_image: Self::AGENT_IMAGE.to_owned(),
            installer_image: format!("{IMAGES}/assisted-installer:latest"),
            controller_image: format!("{IMAGES}/assisted-installer-controller:latest"),
            self_version: concat!("kindling-", env!("CARGO_PKG_VERSION")).to_owned(),
            release_tag: String::new(),
            discovery_delay_seconds: 0,
            first_nmstate_version: "4.18".to_owned(),
            service_ca_certificates: None,
            skip_certificate_verification: false,
            most_silence: Duration::from_secs(3 * 60),
            kept_after_deletion: Duration::from_secs(72 * 60 * 60),
            cluster_networks: ClusterNetworks::new("10.128.0.0/14", 23, "172.30.0.0/16"),
            cluster_networks_v6: ClusterNetworks::new("fd01::/48", 64, "fd02::/112"),
            infra_env_id: None,
            allowed_origins: Vec::new(),
            allowed_hosts: AllowedHosts::Loopback(Vec::new()),
            upgrade_agents: true,
            host_limits: HostLimits::default(),
        }
    }

    /// How the network of machines that boot a version is set up.
    #[must_use]
    pub fn generation(&self, version: &str) -> Generation {
        let first = &self.first_nmstate_version;
        Generation::for_version_with_first(version, first).unwrap_or_else(|| Generation::for_version(version))
    }
}
