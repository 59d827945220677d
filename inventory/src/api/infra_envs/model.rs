//! Infra-envs in responses.

use ignition::network::check::NetworkFinding;
use ignition::report::ConfigFinding;
use serde::Serialize;
use utoipa::ToSchema;

use crate::AddressFinding;
use crate::catalogue::{CpuArchitecture, ImageType};
use crate::id::{ClusterId, InfraEnvId};
use crate::infra_env::Proxy;
use crate::time::{Micros, Millis};

/// An infra-env: the description of the discovery images that a group of hosts boots.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = infra_env)]
pub struct InfraEnv {
    /// Always `InfraEnv`.
    pub kind: &'static str,
    /// Id of the infra-env.
    pub id: InfraEnvId,
    /// Path of the resource.
    pub href: String,
    /// Name. Not unique.
    pub name: String,
    /// OpenShift version whose base image the hosts boot.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub openshift_version: String,
    /// User name of the owner.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub user_name: String,
    /// Domain of the owner's email address.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub email_domain: String,
    /// Proxies for the hosts.
    pub proxy: Proxy,
    /// Additional time servers, separated by commas.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub additional_ntp_sources: String,
    /// Time servers that replace all others, separated by commas.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub ntp_sources: String,
    /// Public SSH keys that can log in, one per line.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub ssh_authorized_key: String,
    /// Whether a pull secret is set. The service never returns the secret.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub pull_secret_set: bool,
    /// Static networks of the hosts: a list of `host_static_network_config`, as JSON in a string.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub static_network_config: String,
    /// IP address of the rendezvous host of a disconnected cluster.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rendezvous_ip: Option<String>,
    /// Type of the image at `download_url`.
    #[serde(rename = "type")]
    pub image_type: ImageType,
    /// User-supplied override of the discovery Ignition config, as JSON in a string.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub ignition_config_override: String,
    /// Cluster to which the hosts are bound.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cluster_id: Option<ClusterId>,
    /// URL of the image.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub download_url: String,
    /// Time of the last change.
    pub updated_at: Micros,
    /// Creation time.
    pub created_at: Micros,
    /// Time when `download_url` expires. The year 1 means never.
    pub expires_at: Millis,
    /// CPU architecture of the hosts.
    #[schema(value_type = String)]
    pub cpu_architecture: CpuArchitecture,
    /// Changes to the kernel arguments: a list of `kernel_argument`, as JSON in a string.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kernel_arguments: Option<String>,
    /// Additional certificates to trust, in PEM format.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub additional_trust_bundle: String,
    /// Seconds that a host waits before it checks its network.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network_discovery_delay_seconds: Option<i64>,
}

/// A URL with a token for one resource.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = presigned_url)]
pub(crate) struct PresignedUrl {
    /// The URL.
    pub url: String,
    /// Time when the URL expires. The year 1 means never.
    pub expires_at: Millis,
}

/// All findings in the static networks, in the config and in the addresses of an infra-env.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = preflight)]
pub(crate) struct Preflight {
    /// Id of the infra-env.
    pub infra_env_id: InfraEnvId,
    /// Generation of the image that was checked.
    pub image_generation: u64,
    /// Findings in the static networks: severity, rule, host, interface, path, line and message.
    #[schema(value_type = Vec<Object>)]
    pub network: Vec<NetworkFinding>,
    /// Findings in the Ignition config override: severity, pointer, line and message.
    #[schema(value_type = Vec<Object>)]
    pub ignition: Vec<ConfigFinding>,
    /// URLs in the image that machines cannot reach: severity, URL and message.
    #[schema(value_type = Vec<Object>)]
    pub addresses: Vec<AddressFinding>,
}
