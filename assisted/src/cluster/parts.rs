//! Parts of a cluster that occur in requests and in responses.
//!
//! The enums of these parts are extensible, so that a client can read a list of clusters even if one cluster has an
//! unknown value. A service must refuse unknown values in requests.

use serde::{Deserialize, Serialize};

use crate::extensible::Extensible;
use crate::id::ClusterId;
use crate::string_enum::string_enum;
use crate::subnet::Subnet;
use crate::wire::lenient;

/// The kind of a cluster.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = cluster_kind))]
pub enum ClusterKind {
    /// A cluster to be installed.
    #[default]
    Cluster,
    /// An existing cluster to which hosts are added.
    AddHostsCluster,
    /// A cluster whose installation needs no connection to this service.
    DisconnectedCluster,
}

string_enum! {
    /// The status of a cluster.
    #[derive(Default)]
    ClusterStatus as cluster_status {
        /// The cluster does not meet the requirements.
        #[default]
        Insufficient = "insufficient",
        /// Ready to be installed.
        Ready = "ready",
        /// The installation failed.
        Error = "error",
        /// The installation is being prepared.
        PreparingForInstallation = "preparing-for-installation",
        /// The installation waits for input of a user.
        PendingForInput = "pending-for-input",
        /// The hosts are being installed.
        Installing = "installing",
        /// The hosts are installed, and the operators start.
        Finalizing = "finalizing",
        /// The cluster is installed.
        Installed = "installed",
        /// Hosts are being added to the existing cluster.
        AddingHosts = "adding-hosts",
        /// The installation was cancelled.
        Cancelled = "cancelled",
        /// A user must act before a host's installation continues.
        InstallingPendingUserAction = "installing-pending-user-action",
        /// This service does not monitor the cluster.
        Unmonitored = "unmonitored",
    }

    /// The platform of a cluster.
    PlatformType as platform_type {
        /// Bare metal.
        Baremetal = "baremetal",
        /// Nutanix.
        Nutanix = "nutanix",
        /// vSphere.
        Vsphere = "vsphere",
        /// No platform integration.
        None = "none",
        /// A platform with its own cloud controller manager.
        External = "external",
    }
}

/// Availability of the control plane.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = high_availability_mode))]
pub enum HighAvailabilityMode {
    /// Several control plane nodes.
    Full,
    /// A single node.
    None,
}

/// Cloud controller manager of an external platform.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum CloudControllerManager {
    /// No cloud controller manager.
    #[serde(rename = "")]
    Absent,
    /// The platform's own cloud controller manager.
    External,
}

/// Settings of an external platform.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(remote = "Self", deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = platform_external))]
pub struct ExternalPlatform {
    /// Name of the platform.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(min_length = 1))]
    pub platform_name: Option<String>,
    /// Cloud controller manager.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<CloudControllerManager>))]
    pub cloud_controller_manager: Option<Extensible<CloudControllerManager>>,
}

/// Platform of a cluster, with settings.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = platform))]
pub struct Platform {
    /// Type of the platform.
    #[serde(rename = "type")]
    pub platform_type: PlatformType,
    /// Settings of an external platform.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub external: Option<ExternalPlatform>,
}

impl Platform {
    /// Returns a platform without settings.
    #[must_use]
    pub fn from_type(platform_type: PlatformType) -> Self {
        Self { platform_type, external: None }
    }
}

/// Platform of a cluster, if known.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = known_platform))]
pub struct KnownPlatform {
    /// Type of the platform.
    #[serde(rename = "type", default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<PlatformType>))]
    pub platform_type: Option<Extensible<PlatformType>>,
    /// Settings of an external platform.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub external: Option<ExternalPlatform>,
}

impl From<Option<Platform>> for KnownPlatform {
    fn from(platform: Option<Platform>) -> Self {
        let Some(Platform { platform_type, external }) = platform else { return Self::default() };
        Self { platform_type: Some(platform_type.into()), external }
    }
}

/// Network plugin for the pods of a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = network_type))]
#[allow(missing_docs, reason = "names of products")]
pub enum NetworkType {
    OpenShiftSDN,
    OVNKubernetes,
    CiscoACI,
    Cilium,
    Calico,
    None,
}

/// Set of nodes of a cluster, by role.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = node_roles))]
#[allow(missing_docs, reason = "names of roles")]
pub enum NodeRoles {
    #[default]
    None,
    Masters,
    Arbiters,
    Workers,
    #[serde(rename = "masters,arbiters")]
    MastersAndArbiters,
    #[serde(rename = "masters,workers")]
    MastersAndWorkers,
    #[serde(rename = "arbiters,workers")]
    ArbitersAndWorkers,
    #[serde(rename = "masters,arbiters,workers")]
    MastersArbitersAndWorkers,
    All,
}

/// Source of a disk's encryption key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = disk_encryption_mode))]
pub enum DiskEncryptionMode {
    /// The TPM 2.0 of the host.
    Tpmv2,
    /// A Tang server.
    Tang,
}

/// Disk encryption.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(remote = "Self", deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = disk_encryption))]
pub struct DiskEncryption {
    /// Roles of the nodes whose disks are encrypted. Absent: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<NodeRoles>))]
    pub enable_on: Option<Extensible<NodeRoles>>,
    /// Source of the keys. Absent: TPM 2.0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<DiskEncryptionMode>))]
    pub mode: Option<Extensible<DiskEncryptionMode>>,
    /// Tang servers: a list of objects with `url` and `thumbprint`, as JSON in a string.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tang_servers: Option<String>,
}

/// Endpoint from which hosts that join a cluster fetch their Ignition config.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(remote = "Self", deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = cluster_ignition_endpoint))]
pub struct IgnitionEndpoint {
    /// URL of the endpoint.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// CA certificate of the endpoint: PEM, in base64.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ca_certificate: Option<String>,
}

/// Type of a cluster's load balancer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = load_balancer_type))]
pub enum LoadBalancerType {
    /// The cluster manages the load balancer.
    #[default]
    ClusterManaged,
    /// The user manages the load balancer.
    UserManaged,
}

/// Load balancer of a cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(remote = "Self", deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = load_balancer))]
pub struct LoadBalancer {
    /// Type of the load balancer.
    #[serde(rename = "type", default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<LoadBalancerType>))]
    pub balancer_type: Option<Extensible<LoadBalancerType>>,
}

/// A cluster network: addresses of pods.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(remote = "Self", deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = cluster_network))]
pub struct ClusterNetwork {
    /// Id of the cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster_id: Option<ClusterId>,
    /// Network in CIDR notation.
    pub cidr: Subnet,
    /// Prefix length of the subnet that each node gets.
    #[cfg_attr(feature = "openapi", schema(minimum = 1, maximum = 128))]
    pub host_prefix: i64,
}

/// A service network or a machine network.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(remote = "Self", deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = network))]
pub struct Network {
    /// Id of the cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster_id: Option<ClusterId>,
    /// Network in CIDR notation.
    pub cidr: Subnet,
}

/// Result of checking that a virtual IP address is free.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = vip_verification))]
pub enum VipVerification {
    /// Not checked.
    #[default]
    Unverified,
    /// The address is in use.
    Failed,
    /// The address is free.
    Succeeded,
}

/// A virtual IP address of a cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(remote = "Self", deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = vip))]
pub struct Vip {
    /// Id of the cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster_id: Option<ClusterId>,
    /// IP address. Empty: not set.
    #[serde(default)]
    #[cfg_attr(
        feature = "openapi",
        schema(
            required = false,
            pattern = r"^(?:(?:(?:[0-9]{1,3}\.){3}[0-9]{1,3})|(?:(?:[0-9a-fA-F]*:[0-9a-fA-F]*){2,}))?$"
        )
    )]
    pub ip: String,
    /// Result of checking that the address is free.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = VipVerification, required = false))]
    pub verification: Option<Extensible<VipVerification>>,
}

/// An operator to install in a cluster.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = operator_create_params))]
pub struct OlmOperator {
    /// Name of the operator.
    #[cfg_attr(feature = "openapi", schema(min_length = 1))]
    pub name: String,
    /// Properties of the operator, in its own format.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[cfg_attr(feature = "openapi", schema(required = false))]
    pub properties: String,
}

/// A bundle of operators.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(remote = "Self", deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = bundle_create_params))]
pub struct OperatorBundle {
    /// Id of the bundle.
    #[cfg_attr(feature = "openapi", schema(min_length = 1))]
    pub id: String,
    /// Optional operators of the bundle to install.
    #[serde(default, deserialize_with = "crate::wire::null_as_default")]
    #[cfg_attr(feature = "openapi", schema(required = false))]
    pub optional_operators: Vec<String>,
}

lenient!(
    ExternalPlatform,
    DiskEncryption,
    IgnitionEndpoint,
    LoadBalancer,
    ClusterNetwork,
    Network,
    Vip,
    OperatorBundle,
);

#[cfg(feature = "openapi")]
mod schema {
    use std::borrow::Cow;

    use utoipa::openapi::RefOr;
    use utoipa::openapi::schema::{ObjectBuilder, Schema, Type};
    use utoipa::{PartialSchema, ToSchema};

    use super::CloudControllerManager;

    impl PartialSchema for CloudControllerManager {
        fn schema() -> RefOr<Schema> {
            ObjectBuilder::new().schema_type(Type::String).enum_values(Some(["", "External"])).build().into()
        }
    }

    impl ToSchema for CloudControllerManager {
        fn name() -> Cow<'static, str> {
            "cloud_controller_manager".into()
        }
    }
}
