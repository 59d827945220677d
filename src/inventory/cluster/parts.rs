//! The parts of clusters: clients send and see them, and they are kept as they are.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{ObjectBuilder, Schema, Type};
use utoipa::{PartialSchema, ToSchema};

use super::network::Subnet;
use crate::inventory::id::{ClusterId, HostId};
use crate::inventory::time::Millis;

/// The kind of a cluster.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[schema(as = cluster_kind)]
pub enum ClusterKind {
    /// One that is to be installed.
    #[default]
    Cluster,
    /// One that is there and gets more hosts.
    AddHostsCluster,
    /// One that is installed where this service cannot see it.
    DisconnectedCluster,
}

/// How far a cluster is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
#[schema(as = cluster_status)]
pub enum ClusterStatus {
    /// Something is missing before it can be installed.
    #[default]
    Insufficient,
    /// It can be installed.
    Ready,
    /// Its installation failed.
    Error,
    /// Its installation begins.
    PreparingForInstallation,
    /// Somebody has to say something before it can be installed.
    PendingForInput,
    /// Its hosts are being installed.
    Installing,
    /// Its hosts are installed, and what runs on them starts.
    Finalizing,
    /// It is installed.
    Installed,
    /// It is there and gets more hosts.
    AddingHosts,
    /// Its installation was given up.
    Cancelled,
    /// Somebody has to do something before its installation goes on.
    InstallingPendingUserAction,
    /// This service does not see it.
    Unmonitored,
}

/// Whether a cluster outlives one of its machines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[schema(as = high_availability_mode)]
pub enum HighAvailabilityMode {
    /// It does.
    Full,
    /// It is one machine.
    None,
}

/// What a cluster stands on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
#[schema(as = platform_type)]
pub enum PlatformType {
    /// Machines.
    Baremetal,
    /// Virtual machines of Nutanix.
    Nutanix,
    /// Virtual machines of vSphere.
    Vsphere,
    /// Anything: the cluster does not know it.
    None,
    /// Something that brings its own part of the cluster.
    External,
}

impl PlatformType {
    /// As the API writes it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Baremetal => "baremetal",
            Self::Nutanix => "nutanix",
            Self::Vsphere => "vsphere",
            Self::None => "none",
            Self::External => "external",
        }
    }
}

/// Who manages the nodes of an external platform.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum CloudControllerManager {
    /// Nobody.
    #[serde(rename = "")]
    Nobody,
    /// A controller of the platform's.
    External,
}

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

/// A platform that brings its own part of the cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = platform_external)]
pub struct ExternalPlatform {
    /// Its name.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(min_length = 1)]
    pub platform_name: Option<String>,
    /// Who manages its nodes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cloud_controller_manager: Option<CloudControllerManager>,
}

/// What a cluster stands on, and more of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = platform)]
pub struct Platform {
    /// What it is.
    #[serde(rename = "type")]
    pub platform_type: PlatformType,
    /// More of an external one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub external: Option<ExternalPlatform>,
}

impl Platform {
    /// One of which no more is known.
    #[must_use]
    pub fn of(platform_type: PlatformType) -> Self {
        Self { platform_type, external: None }
    }
}

/// What a cluster stands on, as far as it is known.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = known_platform)]
pub struct KnownPlatform {
    /// What it is.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub platform_type: Option<PlatformType>,
    /// More of an external one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub external: Option<ExternalPlatform>,
}

impl From<Option<Platform>> for KnownPlatform {
    fn from(platform: Option<Platform>) -> Self {
        let Some(Platform { platform_type, external }) = platform else { return Self::default() };
        Self { platform_type: Some(platform_type), external }
    }
}

/// What connects the pods of a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[schema(as = network_type)]
#[allow(missing_docs, reason = "names of products")]
pub enum NetworkType {
    OpenShiftSDN,
    OVNKubernetes,
    CiscoACI,
    Cilium,
    Calico,
    None,
}

/// Some of the nodes of a cluster, by their roles.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
#[schema(as = node_roles)]
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

/// Where the key of a disk comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
#[schema(as = disk_encryption_mode)]
pub enum DiskEncryptionMode {
    /// From a chip of the machine.
    Tpmv2,
    /// From a server.
    Tang,
}

/// The encryption of disks.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = disk_encryption)]
pub struct DiskEncryption {
    /// Whose disks; nobody's if it is absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enable_on: Option<NodeRoles>,
    /// Where keys come from; from a chip if it is absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mode: Option<DiskEncryptionMode>,
    /// The servers of keys: a list of `url` and `thumbprint`, as JSON in a string.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tang_servers: Option<String>,
}

/// Where machines that join a cluster get their configuration.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = cluster_ignition_endpoint)]
pub struct IgnitionEndpoint {
    /// Its URL.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// The certificate that it is known by: PEM, in base64.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ca_certificate: Option<String>,
}

/// Who balances the load of a cluster.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
#[schema(as = load_balancer_type)]
pub enum LoadBalancerType {
    /// The cluster itself.
    #[default]
    ClusterManaged,
    /// Somebody else.
    UserManaged,
}

/// What balances the load of a cluster.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = load_balancer)]
pub struct LoadBalancer {
    /// Who does.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub balancer_type: Option<LoadBalancerType>,
}

/// A network of pods.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = cluster_network)]
pub struct ClusterNetwork {
    /// The cluster.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cluster_id: Option<ClusterId>,
    /// The network.
    pub cidr: Subnet,
    /// How many bits of it name a node.
    #[schema(minimum = 1, maximum = 128)]
    pub host_prefix: i64,
}

/// A network of services, or of machines.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = network)]
pub struct Network {
    /// The cluster.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cluster_id: Option<ClusterId>,
    /// The network.
    pub cidr: Subnet,
}

/// Whether somebody has seen that an address is free.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
#[schema(as = vip_verification)]
pub enum VipVerification {
    /// Nobody has looked.
    #[default]
    Unverified,
    /// It is not.
    Failed,
    /// It is.
    Succeeded,
}

/// An address of a cluster that moves between its machines.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = vip)]
pub struct Vip {
    /// The cluster.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cluster_id: Option<ClusterId>,
    /// The address; an empty one is none.
    #[serde(default)]
    #[schema(
        required = false,
        pattern = r"^(?:(?:(?:[0-9]{1,3}\.){3}[0-9]{1,3})|(?:(?:[0-9a-fA-F]*:[0-9a-fA-F]*){2,}))?$"
    )]
    pub ip: String,
    /// Whether somebody has seen that it is free.
    #[serde(default)]
    #[schema(required = false)]
    pub verification: VipVerification,
}

/// An operator that a cluster shall have.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = operator_create_params)]
pub struct OlmOperator {
    /// Its name.
    #[schema(min_length = 1)]
    pub name: String,
    /// How it shall be, in a form of its own.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schema(required = false)]
    pub properties: String,
}

/// Operators that belong together.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = bundle_create_params)]
pub struct OperatorBundle {
    /// Which ones.
    #[schema(min_length = 1)]
    pub id: String,
    /// Those of them that need not be, and shall.
    #[serde(default)]
    #[schema(required = false)]
    pub optional_operators: Vec<String>,
}

/// An operator of a cluster.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = monitored_operator)]
pub struct MonitoredOperator {
    /// The cluster.
    pub cluster_id: ClusterId,
    /// Its name.
    pub name: String,
    /// Where it comes from: always `olm`.
    pub operator_type: &'static str,
    /// How it shall be, in a form of its own.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub properties: String,
    /// When its status changed.
    pub status_updated_at: Millis,
    /// The bundles that it is of.
    pub bundles: Vec<String>,
    /// The bundles that brought it.
    pub source_bundles: Vec<String>,
}

/// A network that hosts of a cluster are in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = host_network)]
pub struct HostNetwork {
    /// The network.
    pub cidr: String,
    /// The hosts.
    pub host_ids: Vec<HostId>,
}
