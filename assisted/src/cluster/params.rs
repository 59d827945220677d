//! The request bodies of the operations on clusters.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::parts::{
    ClusterNetwork, DiskEncryption, HighAvailabilityMode, IgnitionEndpoint, LoadBalancer, Network,
    NetworkType, NodeRoles, OlmOperator, OperatorBundle, Platform, Vip,
};
use crate::architecture::ReleaseArchitecture;
use crate::id::ClusterId;
use crate::secret::Secret;
use crate::subnet::Subnet;
use crate::wire::empty_as_none;

/// Parameters of a new cluster.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = cluster_create_params))]
pub struct ClusterCreateParams {
    /// Name of the cluster.
    #[cfg_attr(feature = "openapi", schema(min_length = 1, max_length = 54))]
    pub name: String,
    /// OpenShift version to install: a minor version such as `4.14`, or a full version.
    pub openshift_version: String,
    /// Pull secret: the registry credentials, as JSON in a string.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub pull_secret: Secret,
    /// Pull spec of the release image to install. Overrides `openshift_version`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ocp_release_image: Option<String>,
    /// CPU architecture of the hosts.
    #[serde(default, deserialize_with = "empty_as_none", skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<crate::architecture::ClusterArchitecture>))]
    pub cpu_architecture: Option<ReleaseArchitecture>,
    /// Whether the control plane is highly available.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub high_availability_mode: Option<HighAvailabilityMode>,
    /// Number of control plane nodes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub control_plane_count: Option<i64>,
    /// Base domain of the cluster.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base_dns_domain: Option<String>,
    /// Cluster network (addresses of pods). Ignored if `cluster_networks` is set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cluster_network_cidr: Option<Subnet>,
    /// Prefix length of the subnet that each node gets.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(minimum = 1, maximum = 128))]
    pub cluster_network_host_prefix: Option<i64>,
    /// Service network. Ignored if `service_networks` is set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub service_network_cidr: Option<Subnet>,
    /// Cluster networks (addresses of pods).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cluster_networks: Option<Vec<ClusterNetwork>>,
    /// Service networks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub service_networks: Option<Vec<Network>>,
    /// Machine networks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub machine_networks: Option<Vec<Network>>,
    /// Virtual IP addresses of the cluster's API.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub api_vips: Option<Vec<Vip>>,
    /// Virtual IP addresses of the cluster's ingress.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ingress_vips: Option<Vec<Vip>>,
    /// Whether a DHCP server assigns the virtual IP addresses.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vip_dhcp_allocation: Option<bool>,
    /// Network plugin for pods.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network_type: Option<NetworkType>,
    /// Platform of the cluster.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub platform: Option<Platform>,
    /// Whether the user manages the networking of the cluster.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user_managed_networking: Option<bool>,
    /// Node roles with hyperthreading enabled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hyperthreading: Option<NodeRoles>,
    /// Whether workloads can run on control plane nodes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schedulable_masters: Option<bool>,
    /// Disk encryption.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disk_encryption: Option<DiskEncryption>,
    /// Endpoint from which hosts that join the cluster fetch their Ignition config.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ignition_endpoint: Option<IgnitionEndpoint>,
    /// Load balancer of the cluster.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub load_balancer: Option<LoadBalancer>,
    /// Operators to install.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub olm_operators: Option<Vec<OlmOperator>>,
    /// Operator bundles to install.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub operator_bundles: Option<Vec<OperatorBundle>>,
    /// Tags, separated by commas.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tags: Option<String>,
    /// Public SSH keys that can log in, one per line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ssh_public_key: Option<String>,
    /// Proxy for `http:` URLs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub http_proxy: Option<String>,
    /// Proxy for `https:` URLs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub https_proxy: Option<String>,
    /// Hosts and networks to reach without a proxy, separated by commas.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub no_proxy: Option<String>,
    /// Additional time servers, separated by commas.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub additional_ntp_source: Option<String>,
    /// Time servers that replace all others, separated by commas.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ntp_sources: Option<String>,
}

/// Changes to a cluster. Absent and null fields stay unchanged.
///
/// The Assisted Service refuses `id`, `openshift_version`, `ocp_release_image`, `cpu_architecture` and
/// `high_availability_mode`.
///
/// Kindling accepts these immutable fields with their current value. It also accepts the body of a GET response, which
/// this type does not read: Kindling ignores fields that only the service sets.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(
    feature = "openapi",
    derive(utoipa::ToSchema),
    schema(
        as = v2_cluster_update_params,
        description = "Changes to a cluster. Absent and null fields stay unchanged.\n\n\
            The body of a GET response is accepted: fields that only the service sets are ignored, and immutable \
            fields must\nhave their current value."
    )
)]
pub struct ClusterUpdateParams {
    /// Id. Immutable: if set, it must be the current value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<ClusterId>,
    /// OpenShift version. Immutable: if set, it must be the current value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub openshift_version: Option<String>,
    /// Pull spec of the release image. Immutable: if set, it must be the current value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ocp_release_image: Option<String>,
    /// CPU architecture of the hosts. Immutable: if set, it must be the current value.
    #[serde(default, deserialize_with = "empty_as_none", skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<crate::architecture::ClusterArchitecture>))]
    pub cpu_architecture: Option<ReleaseArchitecture>,
    /// Whether the control plane is highly available. Immutable: if set, it must be the current value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub high_availability_mode: Option<HighAvailabilityMode>,
    /// Name of the cluster.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(min_length = 1, max_length = 54))]
    pub name: Option<String>,
    /// Pull secret: the registry credentials, as JSON in a string. Unchanged if empty.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>))]
    pub pull_secret: Option<Secret>,
    /// Number of control plane nodes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub control_plane_count: Option<i64>,
    /// Base domain of the cluster. Empty: removes it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base_dns_domain: Option<String>,
    /// DNS name of the cluster's API, if it does not follow from the base domain.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub api_vip_dns_name: Option<String>,
    /// First cluster network. Ignored if `cluster_networks` is set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cluster_network_cidr: Option<Subnet>,
    /// Prefix length of the subnet that each node gets.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(minimum = 1, maximum = 128))]
    pub cluster_network_host_prefix: Option<i64>,
    /// First service network. Ignored if `service_networks` is set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub service_network_cidr: Option<Subnet>,
    /// First machine network. Ignored if `machine_networks` is set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub machine_network_cidr: Option<Subnet>,
    /// Cluster networks (addresses of pods). Replaces all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cluster_networks: Option<Vec<ClusterNetwork>>,
    /// Service networks. Replaces all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub service_networks: Option<Vec<Network>>,
    /// Machine networks. Replaces all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub machine_networks: Option<Vec<Network>>,
    /// Virtual IP addresses of the cluster's API. Replaces all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub api_vips: Option<Vec<Vip>>,
    /// Virtual IP addresses of the cluster's ingress. Replaces all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ingress_vips: Option<Vec<Vip>>,
    /// Whether a DHCP server assigns the virtual IP addresses.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vip_dhcp_allocation: Option<bool>,
    /// Network plugin for pods.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network_type: Option<NetworkType>,
    /// Platform of the cluster.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub platform: Option<Platform>,
    /// Whether the user manages the networking of the cluster.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user_managed_networking: Option<bool>,
    /// Node roles with hyperthreading enabled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hyperthreading: Option<NodeRoles>,
    /// Whether workloads can run on control plane nodes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schedulable_masters: Option<bool>,
    /// Disk encryption.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disk_encryption: Option<DiskEncryption>,
    /// Endpoint from which hosts that join the cluster fetch their Ignition config.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ignition_endpoint: Option<IgnitionEndpoint>,
    /// Load balancer of the cluster.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub load_balancer: Option<LoadBalancer>,
    /// Operators to install. Replaces all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub olm_operators: Option<Vec<OlmOperator>>,
    /// Operator bundles to install. Replaces all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub operator_bundles: Option<Vec<OperatorBundle>>,
    /// Tags, separated by commas. Empty: removes all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tags: Option<String>,
    /// Public SSH keys that can log in, one per line. Empty: removes all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ssh_public_key: Option<String>,
    /// Proxy for `http:` URLs. Empty: removes it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub http_proxy: Option<String>,
    /// Proxy for `https:` URLs. Empty: removes it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub https_proxy: Option<String>,
    /// Hosts and networks to reach without a proxy, separated by commas. Empty: removes all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub no_proxy: Option<String>,
    /// Additional time servers, separated by commas. Empty: removes all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub additional_ntp_source: Option<String>,
    /// Time servers that replace all others, separated by commas. Empty: removes all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ntp_sources: Option<String>,
}

/// Parameters of an existing cluster to which hosts are added.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = import_cluster_params))]
pub struct ClusterImportParams {
    /// Name of the cluster, if `api_vip_dnsname` does not contain it.
    pub name: String,
    /// DNS name of the cluster's API.
    pub api_vip_dnsname: String,
    /// Id that the cluster itself uses (`ClusterVersion`).
    pub openshift_cluster_id: Uuid,
    /// OpenShift version.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub openshift_version: Option<String>,
}

/// Parameters of a cluster whose installation needs no connection to this service.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = disconnected_cluster_create_params))]
pub struct DisconnectedClusterParams {
    /// Name of the cluster.
    #[cfg_attr(feature = "openapi", schema(min_length = 1, max_length = 54))]
    pub name: String,
    /// OpenShift version.
    #[cfg_attr(feature = "openapi", schema(min_length = 1))]
    pub openshift_version: String,
}

impl ClusterCreateParams {
    /// Returns parameters with these required values. The service chooses everything else.
    ///
    /// # Examples
    ///
    /// ```
    /// use assisted::Secret;
    /// use assisted::cluster::ClusterCreateParams;
    ///
    /// let params = ClusterCreateParams {
    ///     base_dns_domain: Some("example.com".to_owned()),
    ///     ..ClusterCreateParams::new("edge", "4.18", Secret::new("{}"))
    /// };
    /// ```
    pub fn new(name: impl Into<String>, openshift_version: impl Into<String>, pull_secret: Secret) -> Self {
        Self {
            name: name.into(),
            openshift_version: openshift_version.into(),
            pull_secret,
            ocp_release_image: None,
            cpu_architecture: None,
            high_availability_mode: None,
            control_plane_count: None,
            base_dns_domain: None,
            cluster_network_cidr: None,
            cluster_network_host_prefix: None,
            service_network_cidr: None,
            cluster_networks: None,
            service_networks: None,
            machine_networks: None,
            api_vips: None,
            ingress_vips: None,
            vip_dhcp_allocation: None,
            network_type: None,
            platform: None,
            user_managed_networking: None,
            hyperthreading: None,
            schedulable_masters: None,
            disk_encryption: None,
            ignition_endpoint: None,
            load_balancer: None,
            olm_operators: None,
            operator_bundles: None,
            tags: None,
            ssh_public_key: None,
            http_proxy: None,
            https_proxy: None,
            no_proxy: None,
            additional_ntp_source: None,
            ntp_sources: None,
        }
    }
}
