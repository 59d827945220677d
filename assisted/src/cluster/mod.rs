//! The cluster resource, its parts, and the request bodies of its operations.

mod monitored;
mod params;
mod parts;
mod progress;

pub use monitored::{CompletionParams, MonitoredOperator, OperatorReport, OperatorStatus};
pub use params::{ClusterCreateParams, ClusterImportParams, ClusterUpdateParams, DisconnectedClusterParams};
pub use parts::{
    CloudControllerManager, ClusterKind, ClusterNetwork, ClusterStatus, DiskEncryption, DiskEncryptionMode,
    ExternalPlatform, HighAvailabilityMode, IgnitionEndpoint, KnownPlatform, LoadBalancer, LoadBalancerType,
    Network, NetworkType, NodeRoles, OlmOperator, OperatorBundle, Platform, PlatformType, Vip,
    VipVerification,
};
pub use progress::{
    ClusterProgress, ClusterProgressParams, FinalizingStage, LastInstallationPreparation, PreparationStatus,
};

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::architecture::{ImageType, ReleaseArchitecture};
use crate::extensible::Extensible;
use crate::host::{Host, LogsState};
use crate::id::{ClusterId, HostId};
use crate::secret::Secret;
use crate::subnet::Subnet;
use crate::time::{Micros, Millis};
use crate::wire::{is_default, null_as_default};

/// A cluster, as the service returns it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = cluster))]
pub struct Cluster {
    /// Kind of the cluster.
    #[cfg_attr(feature = "openapi", schema(value_type = ClusterKind))]
    pub kind: Extensible<ClusterKind>,
    /// Id of the cluster.
    pub id: ClusterId,
    /// Path of the resource.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(required = true))]
    pub href: String,
    /// Name. Not unique.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// Status of the cluster.
    #[cfg_attr(feature = "openapi", schema(value_type = ClusterStatus))]
    pub status: Extensible<ClusterStatus>,
    /// Reason for the status, as text.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(required = true))]
    pub status_info: String,
    /// Time of the last change of the status.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(required = true))]
    pub status_updated_at: Millis,
    /// User name of the owner.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub user_name: String,
    /// Organization of the owner.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[cfg_attr(feature = "openapi", schema(ignore))]
    pub org_id: String,
    /// Domain of the owner's email address.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub email_domain: String,
    /// OpenShift version.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub openshift_version: String,
    /// Pull spec of the release image.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub ocp_release_image: String,
    /// Id that the installed cluster itself uses (`ClusterVersion`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub openshift_cluster_id: Option<Uuid>,
    /// CPU architecture of the hosts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>))]
    pub cpu_architecture: Option<Extensible<ReleaseArchitecture>>,
    /// Base domain of the cluster.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub base_dns_domain: String,
    /// DNS name of the cluster's API, if it does not follow from the base domain.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api_vip_dns_name: Option<String>,
    /// Whether the control plane is highly available.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<HighAvailabilityMode>))]
    pub high_availability_mode: Option<Extensible<HighAvailabilityMode>>,
    /// Number of control plane nodes.
    #[serde(default, skip_serializing_if = "is_default")]
    pub control_plane_count: i64,
    /// First cluster network.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster_network_cidr: Option<Subnet>,
    /// Prefix length of the subnet that each node gets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster_network_host_prefix: Option<i64>,
    /// First service network.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service_network_cidr: Option<Subnet>,
    /// First machine network.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine_network_cidr: Option<Subnet>,
    /// Cluster networks (addresses of pods).
    #[serde(default, deserialize_with = "null_as_default")]
    #[cfg_attr(feature = "openapi", schema(required = true))]
    pub cluster_networks: Vec<ClusterNetwork>,
    /// Service networks.
    #[serde(default, deserialize_with = "null_as_default")]
    #[cfg_attr(feature = "openapi", schema(required = true))]
    pub service_networks: Vec<Network>,
    /// Machine networks.
    #[serde(default, deserialize_with = "null_as_default")]
    #[cfg_attr(feature = "openapi", schema(required = true))]
    pub machine_networks: Vec<Network>,
    /// Virtual IP addresses of the cluster's API.
    #[serde(default, deserialize_with = "null_as_default")]
    #[cfg_attr(feature = "openapi", schema(required = true))]
    pub api_vips: Vec<Vip>,
    /// Virtual IP addresses of the cluster's ingress.
    #[serde(default, deserialize_with = "null_as_default")]
    #[cfg_attr(feature = "openapi", schema(required = true))]
    pub ingress_vips: Vec<Vip>,
    /// Networks that the hosts have addresses in.
    #[serde(default, deserialize_with = "null_as_default")]
    #[cfg_attr(feature = "openapi", schema(required = true))]
    pub host_networks: Vec<HostNetwork>,
    /// Hosts of the cluster.
    #[serde(default, deserialize_with = "null_as_default")]
    #[cfg_attr(feature = "openapi", schema(value_type = Vec<Object>, required = true))]
    pub hosts: Vec<Host>,
    /// Number of hosts that are ready to be installed.
    #[serde(default, skip_serializing_if = "is_default")]
    pub ready_host_count: i64,
    /// Number of hosts enabled for installation.
    #[serde(default, skip_serializing_if = "is_default")]
    pub enabled_host_count: i64,
    /// Number of hosts.
    #[serde(default, skip_serializing_if = "is_default")]
    pub total_host_count: i64,
    /// Platform of the cluster.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(required = true))]
    pub platform: KnownPlatform,
    /// Public SSH keys that can log in, one per line.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub ssh_public_key: String,
    /// Proxy for `http:` URLs.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub http_proxy: String,
    /// Proxy for `https:` URLs.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub https_proxy: String,
    /// Hosts and networks to reach without a proxy, separated by commas.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub no_proxy: String,
    /// Additional time servers, separated by commas.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub additional_ntp_source: String,
    /// Time servers that replace all others, separated by commas.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub ntp_sources: String,
    /// Whether a pull secret is set. The service never returns the secret.
    #[serde(default, skip_serializing_if = "is_default")]
    pub pull_secret_set: bool,
    /// Whether a DHCP server assigns the virtual IP addresses.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(required = true))]
    pub vip_dhcp_allocation: bool,
    /// Whether the user manages the networking of the cluster.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(required = true))]
    pub user_managed_networking: bool,
    /// Whether workloads can run on control plane nodes.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(required = true))]
    pub schedulable_masters: bool,
    /// Whether workloads run on control plane nodes because there are too few workers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(ignore))]
    pub schedulable_masters_forced_true: Option<bool>,
    /// Whether the cluster was imported: installed without this service.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = bool, required = false))]
    pub imported: Option<bool>,
    /// Whether stages that take too long are reported, without failing the installation.
    #[serde(default, skip_serializing_if = "is_default")]
    #[cfg_attr(feature = "openapi", schema(ignore))]
    pub org_soft_timeouts_enabled: bool,
    /// Network plugin for pods.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<NetworkType>))]
    pub network_type: Option<Extensible<NetworkType>>,
    /// Node roles with hyperthreading enabled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<NodeRoles>))]
    pub hyperthreading: Option<Extensible<NodeRoles>>,
    /// Disk encryption.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(required = true))]
    pub disk_encryption: DiskEncryption,
    /// Endpoint from which hosts that join the cluster fetch their Ignition config.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(required = true))]
    pub ignition_endpoint: IgnitionEndpoint,
    /// Load balancer of the cluster.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(required = true))]
    pub load_balancer: LoadBalancer,
    /// Operators of the cluster.
    #[serde(default, deserialize_with = "null_as_default")]
    #[cfg_attr(feature = "openapi", schema(required = true))]
    pub monitored_operators: Vec<MonitoredOperator>,
    /// Operator bundles to install.
    #[serde(default, deserialize_with = "null_as_default")]
    #[cfg_attr(feature = "openapi", schema(required = true))]
    pub operator_bundles: Vec<OperatorBundle>,
    /// Progress of the installation.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(required = true))]
    pub progress: ClusterProgress,
    /// Result of the last attempt to prepare the installation.
    #[serde(rename = "last-installation-preparation", default)]
    #[cfg_attr(feature = "openapi", schema(required = true))]
    pub last_installation_preparation: LastInstallationPreparation,
    /// Results of the cluster's validations, as JSON in a string. Always `{}`: the service does not validate clusters.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[cfg_attr(feature = "openapi", schema(required = true))]
    pub validations_info: String,
    /// For each network, the largest group of hosts that can all reach each other, as JSON in a string.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[cfg_attr(feature = "openapi", schema(ignore))]
    pub connectivity_majority_groups: String,
    /// IP addresses that several machines use, as JSON in a string.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[cfg_attr(feature = "openapi", schema(ignore))]
    pub ip_collisions: String,
    /// Features that the cluster uses, as JSON in a string.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[cfg_attr(feature = "openapi", schema(ignore))]
    pub feature_usage: String,
    /// User-supplied override of the install config, as JSON in a string.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[cfg_attr(feature = "openapi", schema(ignore))]
    pub install_config_overrides: String,
    /// Ids of host validations that do not block an installation, as JSON in a string.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[cfg_attr(feature = "openapi", schema(ignore))]
    pub ignored_host_validations: String,
    /// Ids of cluster validations that do not block an installation, as JSON in a string.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[cfg_attr(feature = "openapi", schema(ignore))]
    pub ignored_cluster_validations: String,
    /// Id of the cluster's subscription.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(ignore))]
    pub ams_subscription_id: Option<Uuid>,
    /// Tags, separated by commas.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub tags: String,
    /// Discovery image of older API versions. Always unset.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(required = true))]
    pub image_info: ImageInfo,
    /// State of the controller's log upload.
    #[serde(default, skip_serializing_if = "is_default")]
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub logs_info: Extensible<LogsState>,
    /// Time when the controller's logs were uploaded.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(required = true))]
    pub controller_logs_collected_at: Millis,
    /// Time when the controller started to collect logs.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(required = true))]
    pub controller_logs_started_at: Millis,
    /// Time when the installation started.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(required = true))]
    pub install_started_at: Millis,
    /// Time when the installation completed.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(required = true))]
    pub install_completed_at: Millis,
    /// Creation time.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(required = true))]
    pub created_at: Micros,
    /// Time of the last change.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(required = true))]
    pub updated_at: Micros,
    /// Deletion time.
    #[serde(default)]
    pub deleted_at: Option<Micros>,
}

/// Discovery image of a cluster, from older API versions.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = image_info))]
pub struct ImageInfo {
    /// Public SSH keys that can log in.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[cfg_attr(feature = "openapi", schema(ignore))]
    pub ssh_public_key: String,
    /// Size of the image.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(ignore))]
    pub size_bytes: Option<i64>,
    /// URL of the image.
    #[serde(default, skip_serializing_if = "Secret::is_empty")]
    #[cfg_attr(feature = "openapi", schema(ignore))]
    pub download_url: Secret,
    /// Version of the program that made the image.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[cfg_attr(feature = "openapi", schema(ignore))]
    pub generator_version: String,
    /// Always unset.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(required = true))]
    pub created_at: Micros,
    /// Always unset.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(required = true))]
    pub expires_at: Millis,
    /// Static networks of the hosts, as JSON in a string.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[cfg_attr(feature = "openapi", schema(ignore))]
    pub static_network_config: String,
    /// Type of the image.
    #[serde(rename = "type", default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(ignore))]
    pub image_type: Option<Extensible<ImageType>>,
}

/// A network that hosts of a cluster have addresses in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = host_network))]
pub struct HostNetwork {
    /// Network in CIDR notation.
    pub cidr: String,
    /// Hosts with an address in the network.
    #[serde(default, deserialize_with = "null_as_default")]
    #[cfg_attr(feature = "openapi", schema(required = true))]
    pub host_ids: Vec<HostId>,
}

/// Defaults of new clusters.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = cluster_default_config))]
pub struct ClusterDefaults {
    /// Cluster network (addresses of pods).
    pub cluster_network_cidr: Subnet,
    /// Prefix length of the subnet that each node gets.
    pub cluster_network_host_prefix: i64,
    /// Service network.
    pub service_network_cidr: Subnet,
    /// Hours without a change after which a cluster can be deleted.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(required = true))]
    pub inactive_deletion_hours: i64,
    /// Time server.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(required = true))]
    pub ntp_source: String,
    /// Cluster networks (addresses of pods).
    #[serde(default, deserialize_with = "null_as_default")]
    #[cfg_attr(feature = "openapi", schema(required = true))]
    pub cluster_networks_ipv4: Vec<ClusterNetwork>,
    /// Cluster networks of a dual-stack cluster.
    #[serde(default, deserialize_with = "null_as_default")]
    #[cfg_attr(feature = "openapi", schema(required = true))]
    pub cluster_networks_dualstack: Vec<ClusterNetwork>,
    /// Service networks.
    #[serde(default, deserialize_with = "null_as_default")]
    #[cfg_attr(feature = "openapi", schema(required = true))]
    pub service_networks_ipv4: Vec<Network>,
    /// Service networks of a dual-stack cluster.
    #[serde(default, deserialize_with = "null_as_default")]
    #[cfg_attr(feature = "openapi", schema(required = true))]
    pub service_networks_dualstack: Vec<Network>,
    /// Host names that are not allowed.
    #[serde(default, deserialize_with = "null_as_default")]
    #[cfg_attr(feature = "openapi", schema(required = true))]
    pub forbidden_hostnames: Vec<String>,
}
