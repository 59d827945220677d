//! Parameters of operations on clusters.

pub(crate) use assisted::cluster::{ClusterImportParams, DisconnectedClusterParams};
use serde::Deserialize;
use utoipa::ToSchema;

use super::parts::{
    ClusterNetwork, DiskEncryption, HighAvailabilityMode, IgnitionEndpoint, LoadBalancer, Network,
    NetworkType, NodeRoles, OlmOperator, OperatorBundle, Platform, Vip,
};
use super::subnet::Subnet;
use crate::catalogue::ReleaseArchitecture;
use crate::id::ClusterId;

/// Parameters of a new cluster.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = cluster_create_params)]
pub(crate) struct ClusterCreateParams {
    /// Name of the cluster.
    #[schema(min_length = 1, max_length = 54)]
    pub name: String,
    /// OpenShift version to install: a minor version such as `4.14`, or a full version.
    pub openshift_version: String,
    /// Pull secret: the registry credentials, as JSON in a string.
    pub pull_secret: String,
    /// Pull spec of the release image to install. Overrides `openshift_version`.
    pub ocp_release_image: Option<String>,
    /// CPU architecture of the hosts.
    #[schema(value_type = Option<assisted::architecture::ClusterArchitecture>)]
    pub cpu_architecture: Option<ReleaseArchitecture>,
    /// Whether the control plane is highly available.
    pub high_availability_mode: Option<HighAvailabilityMode>,
    /// Number of control plane nodes.
    pub control_plane_count: Option<i64>,
    /// Base domain of the cluster.
    pub base_dns_domain: Option<String>,
    /// Cluster network (addresses of pods). Ignored if `cluster_networks` is set.
    pub cluster_network_cidr: Option<Subnet>,
    /// Prefix length of the subnet that each node gets.
    #[schema(minimum = 1, maximum = 128)]
    pub cluster_network_host_prefix: Option<i64>,
    /// Service network. Ignored if `service_networks` is set.
    pub service_network_cidr: Option<Subnet>,
    /// Cluster networks (addresses of pods).
    pub cluster_networks: Option<Vec<ClusterNetwork>>,
    /// Service networks.
    pub service_networks: Option<Vec<Network>>,
    /// Machine networks.
    pub machine_networks: Option<Vec<Network>>,
    /// Virtual IP addresses of the cluster's API.
    pub api_vips: Option<Vec<Vip>>,
    /// Virtual IP addresses of the cluster's ingress.
    pub ingress_vips: Option<Vec<Vip>>,
    /// Whether a DHCP server assigns the virtual IP addresses.
    pub vip_dhcp_allocation: Option<bool>,
    /// Network plugin for pods.
    pub network_type: Option<NetworkType>,
    /// Platform of the cluster.
    pub platform: Option<Platform>,
    /// Whether the user manages the networking of the cluster.
    pub user_managed_networking: Option<bool>,
    /// Node roles with hyperthreading enabled.
    pub hyperthreading: Option<NodeRoles>,
    /// Whether workloads can run on control plane nodes.
    pub schedulable_masters: Option<bool>,
    /// Disk encryption.
    pub disk_encryption: Option<DiskEncryption>,
    /// Endpoint from which hosts that join the cluster fetch their Ignition config.
    pub ignition_endpoint: Option<IgnitionEndpoint>,
    /// Load balancer of the cluster.
    pub load_balancer: Option<LoadBalancer>,
    /// Operators to install.
    pub olm_operators: Option<Vec<OlmOperator>>,
    /// Operator bundles to install.
    pub operator_bundles: Option<Vec<OperatorBundle>>,
    /// Tags, separated by commas.
    pub tags: Option<String>,
    /// Public SSH keys that can log in, one per line.
    pub ssh_public_key: Option<String>,
    /// Proxy for `http:` URLs.
    pub http_proxy: Option<String>,
    /// Proxy for `https:` URLs.
    pub https_proxy: Option<String>,
    /// Hosts and networks that are reached without a proxy, separated by commas.
    pub no_proxy: Option<String>,
    /// Additional time servers, separated by commas.
    pub additional_ntp_source: Option<String>,
    /// Time servers that replace all others, separated by commas.
    pub ntp_sources: Option<String>,
}

/// Changes to a cluster. Absent and null fields stay unchanged.
///
/// The body of a GET response is accepted: fields that only the service sets are ignored, and immutable fields must
/// have their current value.
#[derive(Clone, Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = v2_cluster_update_params)]
pub(crate) struct ClusterUpdateParams {
    /// Id. Immutable: if set, it must be the current value.
    pub id: Option<ClusterId>,
    /// OpenShift version. Immutable: if set, it must be the current value.
    pub openshift_version: Option<String>,
    /// Pull spec of the release image. Immutable: if set, it must be the current value.
    pub ocp_release_image: Option<String>,
    /// CPU architecture of the hosts. Immutable: if set, it must be the current value.
    #[schema(value_type = Option<assisted::architecture::ClusterArchitecture>)]
    pub cpu_architecture: Option<ReleaseArchitecture>,
    /// Whether the control plane is highly available. Immutable: if set, it must be the current value.
    pub high_availability_mode: Option<HighAvailabilityMode>,
    /// Name of the cluster.
    #[schema(min_length = 1, max_length = 54)]
    pub name: Option<String>,
    /// Pull secret: the registry credentials, as JSON in a string. Unchanged if empty.
    pub pull_secret: Option<String>,
    /// Number of control plane nodes.
    pub control_plane_count: Option<i64>,
    /// Base domain of the cluster. Empty: removes it.
    pub base_dns_domain: Option<String>,
    /// DNS name of the cluster's API, if it does not follow from the base domain.
    pub api_vip_dns_name: Option<String>,
    /// First cluster network. Ignored if `cluster_networks` is set.
    pub cluster_network_cidr: Option<Subnet>,
    /// Prefix length of the subnet that each node gets.
    #[schema(minimum = 1, maximum = 128)]
    pub cluster_network_host_prefix: Option<i64>,
    /// First service network. Ignored if `service_networks` is set.
    pub service_network_cidr: Option<Subnet>,
    /// First machine network. Ignored if `machine_networks` is set.
    pub machine_network_cidr: Option<Subnet>,
    /// Cluster networks (addresses of pods). Replaces all.
    pub cluster_networks: Option<Vec<ClusterNetwork>>,
    /// Service networks. Replaces all.
    pub service_networks: Option<Vec<Network>>,
    /// Machine networks. Replaces all.
    pub machine_networks: Option<Vec<Network>>,
    /// Virtual IP addresses of the cluster's API. Replaces all.
    pub api_vips: Option<Vec<Vip>>,
    /// Virtual IP addresses of the cluster's ingress. Replaces all.
    pub ingress_vips: Option<Vec<Vip>>,
    /// Whether a DHCP server assigns the virtual IP addresses.
    pub vip_dhcp_allocation: Option<bool>,
    /// Network plugin for pods.
    pub network_type: Option<NetworkType>,
    /// Platform of the cluster.
    pub platform: Option<Platform>,
    /// Whether the user manages the networking of the cluster.
    pub user_managed_networking: Option<bool>,
    /// Node roles with hyperthreading enabled.
    pub hyperthreading: Option<NodeRoles>,
    /// Whether workloads can run on control plane nodes.
    pub schedulable_masters: Option<bool>,
    /// Disk encryption.
    pub disk_encryption: Option<DiskEncryption>,
    /// Endpoint from which hosts that join the cluster fetch their Ignition config.
    pub ignition_endpoint: Option<IgnitionEndpoint>,
    /// Load balancer of the cluster.
    pub load_balancer: Option<LoadBalancer>,
    /// Operators to install. Replaces all.
    pub olm_operators: Option<Vec<OlmOperator>>,
    /// Operator bundles to install. Replaces all.
    pub operator_bundles: Option<Vec<OperatorBundle>>,
    /// Tags, separated by commas. Empty: removes all.
    pub tags: Option<String>,
    /// Public SSH keys that can log in, one per line. Empty: removes all.
    pub ssh_public_key: Option<String>,
    /// Proxy for `http:` URLs. Empty: removes it.
    pub http_proxy: Option<String>,
    /// Proxy for `https:` URLs. Empty: removes it.
    pub https_proxy: Option<String>,
    /// Hosts and networks that are reached without a proxy, separated by commas. Empty: removes all.
    pub no_proxy: Option<String>,
    /// Additional time servers, separated by commas. Empty: removes all.
    pub additional_ntp_source: Option<String>,
    /// Time servers that replace all others, separated by commas. Empty: removes all.
    pub ntp_sources: Option<String>,
}
