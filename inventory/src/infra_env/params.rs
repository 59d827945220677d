//! Parameters of new and changed infra-envs.

pub use assisted::infra_env::KernelArgumentOperation;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::catalogue::{CpuArchitecture, ImageType};
use crate::id::{ClusterId, InfraEnvId};

/// Proxies for hosts. An absent proxy stays unchanged; an empty one is removed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = proxy)]
pub struct Proxy {
    /// Proxy for `http:` URLs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub http_proxy: Option<String>,
    /// Proxy for `https:` URLs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub https_proxy: Option<String>,
    /// Destinations that are reached without a proxy: names, addresses and networks, separated by commas, or `*`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub no_proxy: Option<String>,
}

/// Static network of one host.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = host_static_network_config)]
pub struct HostStaticNetwork {
    /// MAC addresses of the interfaces in `network_yaml`.
    #[serde(default)]
    #[schema(required = false)]
    pub mac_interface_map: Vec<MacInterface>,
    /// The nmstate document.
    #[serde(default)]
    #[schema(required = false)]
    pub network_yaml: String,
}

/// MAC address of one interface.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = mac_interface_map_item)]
pub struct MacInterface {
    /// Name of the interface in the nmstate document.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schema(required = false)]
    pub logical_nic_name: String,
    /// MAC address of the interface.
    #[schema(pattern = r"^([0-9A-Fa-f]{2}[:]){5}([0-9A-Fa-f]{2})$")]
    pub mac_address: String,
}

/// A change to the kernel arguments.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = kernel_argument)]
pub struct KernelArgument {
    /// Operation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operation: Option<KernelArgumentOperation>,
    /// The kernel argument. If empty, the change has no effect.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schema(required = false, pattern = r#"^(?:(?:[^ \t\n\r"]+)|(?:"[^"]*"))+$"#)]
    pub value: String,
}

/// Parameters of a new infra-env.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = infra_env_create_params)]
pub struct InfraEnvCreateParams {
    /// Name of the infra-env.
    pub name: String,
    /// Pull secret: the registry credentials, as JSON in a string.
    pub pull_secret: String,
    /// Proxies for the hosts.
    pub proxy: Option<Proxy>,
    /// Additional time servers, separated by commas.
    pub additional_ntp_sources: Option<String>,
    /// Time servers that replace all others, separated by commas.
    pub ntp_sources: Option<String>,
    /// Public SSH keys that can log in, one per line.
    pub ssh_authorized_key: Option<String>,
    /// Static networks of the hosts.
    pub static_network_config: Option<Vec<HostStaticNetwork>>,
    /// IP address of the rendezvous host of a disconnected cluster.
    pub rendezvous_ip: Option<String>,
    /// Type of the image.
    pub image_type: Option<ImageType>,
    /// User-supplied override of the discovery Ignition config, as JSON in a string.
    pub ignition_config_override: Option<String>,
    /// Cluster to which the hosts are bound.
    pub cluster_id: Option<ClusterId>,
    /// OpenShift version whose base image the hosts boot. Absent: the newest.
    pub openshift_version: Option<String>,
    /// CPU architecture of the hosts.
    #[schema(value_type = Option<assisted::architecture::InfraEnvArchitecture>)]
    pub cpu_architecture: Option<CpuArchitecture>,
    /// Changes to the kernel arguments.
    pub kernel_arguments: Option<Vec<KernelArgument>>,
    /// Additional certificates to trust, in PEM format.
    #[schema(max_length = 65535)]
    pub additional_trust_bundle: Option<String>,
    /// Seconds that a host waits before it checks its network.
    #[schema(minimum = 0, maximum = 4_294_967_295_u32)]
    pub network_discovery_delay_seconds: Option<i64>,
}

/// Changes to an infra-env. Absent and null fields stay unchanged.
///
/// The body of a GET response is accepted: `type` is read as `image_type`, lists can be JSON in a string, and fields
/// that only the service sets are ignored.
#[derive(Clone, Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = infra_env_update_params)]
pub struct InfraEnvUpdateParams {
    /// Id. Immutable: if set, it must be the current value.
    pub id: Option<InfraEnvId>,
    /// Name. Immutable: if set, it must be the current value.
    pub name: Option<String>,
    /// Cluster. Immutable: if set, it must be the current value.
    pub cluster_id: Option<ClusterId>,
    /// CPU architecture of the hosts. Immutable: if set, it must be the current value.
    #[schema(value_type = Option<assisted::architecture::InfraEnvArchitecture>)]
    pub cpu_architecture: Option<CpuArchitecture>,
    /// Proxies for the hosts.
    pub proxy: Option<Proxy>,
    /// Additional time servers, separated by commas. Empty: removes all.
    pub additional_ntp_sources: Option<String>,
    /// Time servers that replace all others, separated by commas. Empty: removes all.
    pub ntp_sources: Option<String>,
    /// Public SSH keys that can log in, one per line. Empty: removes all.
    pub ssh_authorized_key: Option<String>,
    /// Pull secret: the registry credentials, as JSON in a string. Unchanged if empty.
    pub pull_secret: Option<String>,
    /// Static networks of the hosts. Replaces all.
    pub static_network_config: Option<Vec<HostStaticNetwork>>,
    /// IP address of the rendezvous host of a disconnected cluster. Empty: removes it.
    pub rendezvous_ip: Option<String>,
    /// Type of the image. Unchanged if empty.
    pub image_type: Option<ImageType>,
    /// User-supplied override of the discovery Ignition config, as JSON in a string. Empty: removes it.
    pub ignition_config_override: Option<String>,
    /// Changes to the kernel arguments. Replaces all.
    pub kernel_arguments: Option<Vec<KernelArgument>>,
    /// Additional certificates to trust, in PEM format. Empty: removes all.
    #[schema(max_length = 65535)]
    pub additional_trust_bundle: Option<String>,
    /// OpenShift version whose base image the hosts boot. Unchanged if empty.
    pub openshift_version: Option<String>,
    /// Seconds that a host waits before it checks its network.
    #[schema(minimum = 0, maximum = 4_294_967_295_u32)]
    pub network_discovery_delay_seconds: Option<i64>,
}
