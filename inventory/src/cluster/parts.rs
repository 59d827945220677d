//! Parts of clusters that requests, responses and stored records have in common.

pub use assisted::cluster::{
    CloudControllerManager, ClusterKind, ClusterStatus, DiskEncryptionMode, HighAvailabilityMode,
    LoadBalancerType, NetworkType, NodeRoles, OlmOperator, PlatformType, VipVerification,
};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::subnet::Subnet;
use crate::id::ClusterId;

/// Settings of an external platform.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = platform_external)]
pub struct ExternalPlatform {
    /// Name of the platform.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(min_length = 1)]
    pub platform_name: Option<String>,
    /// Cloud controller manager.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cloud_controller_manager: Option<CloudControllerManager>,
}

/// Platform of a cluster, with settings.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = platform)]
pub struct Platform {
    /// Type of the platform.
    #[serde(rename = "type")]
    pub platform_type: PlatformType,
    /// Settings of an external platform.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub external: Option<ExternalPlatform>,
}

impl Platform {
    /// Returns a platform without settings.
    #[must_use]
    pub fn from_type(platform_type: PlatformType) -> Self {
        Self { platform_type, external: None }
    }
}

/// Disk encryption.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = disk_encryption)]
pub struct DiskEncryption {
    /// Roles of the nodes whose disks are encrypted. Absent: none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enable_on: Option<NodeRoles>,
    /// Source of the keys. Absent: TPM 2.0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mode: Option<DiskEncryptionMode>,
    /// Tang servers: a list of objects with `url` and `thumbprint`, as JSON in a string.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tang_servers: Option<String>,
}

/// Endpoint from which hosts that join a cluster fetch their Ignition config.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = cluster_ignition_endpoint)]
pub struct IgnitionEndpoint {
    /// URL of the endpoint.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// CA certificate of the endpoint: PEM, in base64.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ca_certificate: Option<String>,
}

/// Load balancer of a cluster.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = load_balancer)]
pub struct LoadBalancer {
    /// Type of the load balancer.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub balancer_type: Option<LoadBalancerType>,
}

/// A cluster network: addresses of pods.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = cluster_network)]
pub struct ClusterNetwork {
    /// Id of the cluster.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cluster_id: Option<ClusterId>,
    /// Network in CIDR notation.
    pub cidr: Subnet,
    /// Prefix length of the subnet that each node gets.
    #[schema(minimum = 1, maximum = 128)]
    pub host_prefix: i64,
}

/// A service network or a machine network.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = network)]
pub struct Network {
    /// Id of the cluster.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cluster_id: Option<ClusterId>,
    /// Network in CIDR notation.
    pub cidr: Subnet,
}

/// Returns `true` if the address was not checked. Responses omit this result, as upstream does.
fn is_unverified(verification: &VipVerification) -> bool {
    *verification == VipVerification::Unverified
}

/// A virtual IP address of a cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = vip)]
pub struct Vip {
    /// Id of the cluster.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cluster_id: Option<ClusterId>,
    /// IP address. Empty: not set.
    #[serde(default)]
    #[schema(
        required = false,
        pattern = r"^(?:(?:(?:[0-9]{1,3}\.){3}[0-9]{1,3})|(?:(?:[0-9a-fA-F]*:[0-9a-fA-F]*){2,}))?$"
    )]
    pub ip: String,
    /// Result of checking that the address is free.
    #[serde(default, skip_serializing_if = "is_unverified")]
    #[schema(required = false)]
    pub verification: VipVerification,
}

/// A bundle of operators.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = bundle_create_params)]
pub struct OperatorBundle {
    /// Id of the bundle.
    #[schema(min_length = 1)]
    pub id: String,
    /// Optional operators of the bundle to install.
    #[serde(default)]
    #[schema(required = false)]
    pub optional_operators: Vec<String>,
}
