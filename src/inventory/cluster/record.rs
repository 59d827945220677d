//! Clusters as they are kept.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::network::Subnet;
use super::parts::{
    ClusterKind, ClusterNetwork, ClusterStatus, DiskEncryption, HighAvailabilityMode, IgnitionEndpoint,
    LoadBalancerType, NetworkType, NodeRoles, OlmOperator, OperatorBundle, Platform, Vip,
};
use crate::images::ReleaseArchitecture;
use crate::inventory::Secret;
use crate::inventory::id::ClusterId;
use crate::inventory::store::{Kind, Record};
use crate::inventory::time::{Micros, Millis};

/// A cluster with all that is known of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClusterRecord {
    /// Its id.
    pub id: ClusterId,
    /// What kind of cluster it is.
    pub kind: ClusterKind,
    /// Whose it is.
    pub user_name: String,
    /// The domain of the owner's mail address.
    pub email_domain: String,
    /// How far it is.
    pub status: ClusterStatus,
    /// The same in words.
    pub status_info: String,
    /// When it came so far.
    pub status_updated_at: Millis,
    /// The version of its release; may be empty for one that this service does not install.
    pub openshift_version: String,
    /// The pull spec of its release.
    pub ocp_release_image: String,
    /// The processor of its machines, where it is known. In the document it is always a text.
    #[serde(with = "text")]
    pub cpu_architecture: Option<ReleaseArchitecture>,
    /// How many machines control it; none if this is not known.
    pub control_plane_count: i64,
    /// How the cluster calls itself once it is installed.
    pub openshift_cluster_id: Option<Uuid>,
    /// Whether it was installed elsewhere.
    pub imported: bool,
    /// How far the logs of its controller are.
    #[serde(default)]
    pub logs_info: String,
    /// When somebody began to collect them.
    #[serde(default)]
    pub controller_logs_started_at: Millis,
    /// When they came last.
    #[serde(default)]
    pub controller_logs_collected_at: Millis,
    /// What its owner wants it to be.
    pub spec: ClusterSpec,
    /// When it was made.
    pub created_at: Micros,
    /// When it changed last.
    pub updated_at: Micros,
    /// When it was deleted.
    pub deleted_at: Option<Micros>,
}

/// What the owner of a cluster wants it to be.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClusterSpec {
    /// Its name. Others may have the same.
    pub name: String,
    /// The domain that its own is in.
    pub base_dns_domain: String,
    /// The name of its API, where this is not made from the domain.
    pub api_vip_dns_name: Option<String>,
    /// What it stands on, where this is known.
    pub platform: Option<Platform>,
    /// Whether its owner manages what connects its machines.
    pub user_managed_networking: bool,
    /// Whether its addresses come from a DHCP server.
    pub vip_dhcp_allocation: bool,
    /// What connects its pods.
    pub network_type: Option<NetworkType>,
    /// The networks of pods, without the cluster's id.
    pub cluster_networks: Vec<ClusterNetwork>,
    /// The networks of services.
    pub service_networks: Vec<Subnet>,
    /// The networks of machines.
    pub machine_networks: Vec<Subnet>,
    /// The addresses of its API, without the cluster's id.
    pub api_vips: Vec<Vip>,
    /// The addresses of what it serves, without the cluster's id.
    pub ingress_vips: Vec<Vip>,
    /// On which machines a core runs two threads.
    pub hyperthreading: Option<NodeRoles>,
    /// Whether what its users run may run on the machines that control it.
    pub schedulable_masters: bool,
    /// The encryption of disks.
    pub disk_encryption: DiskEncryption,
    /// Where machines that join it get their configuration.
    pub ignition_endpoint: IgnitionEndpoint,
    /// Who balances its load, where this is known.
    pub load_balancer: Option<LoadBalancerType>,
    /// Operators that it shall have.
    pub olm_operators: Vec<OlmOperator>,
    /// Operators that belong together and that it shall have.
    pub operator_bundles: Vec<OperatorBundle>,
    /// Words of its owner's, with commas between them.
    pub tags: String,
    /// Who may log in.
    pub ssh_public_key: String,
    /// The proxy for `http:` URLs.
    pub http_proxy: String,
    /// The proxy for `https:` URLs.
    pub https_proxy: String,
    /// What is reached without a proxy.
    pub no_proxy: String,
    /// Time servers beside others.
    pub additional_ntp_source: String,
    /// The only time servers.
    pub ntp_sources: String,
    /// Credentials of registries.
    pub pull_secret: Secret,
}

impl ClusterSpec {
    /// All that is said of proxies.
    pub(super) fn proxies(&self) -> [&str; 3] {
        [&self.http_proxy, &self.https_proxy, &self.no_proxy]
    }
}

impl ClusterRecord {
    /// Whether it outlives one of its machines, where it is known how many control it.
    #[must_use]
    pub fn high_availability_mode(&self) -> Option<HighAvailabilityMode> {
        match self.control_plane_count {
            0 => None,
            1 => Some(HighAvailabilityMode::None),
            _ => Some(HighAvailabilityMode::Full),
        }
    }
}

/// What is not known is an empty text.
mod text {
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use crate::images::ReleaseArchitecture;

    pub(super) fn serialize<S: Serializer>(
        architecture: &Option<ReleaseArchitecture>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        architecture.map_or("", ReleaseArchitecture::as_str).serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<ReleaseArchitecture>, D::Error> {
        let text = String::deserialize(deserializer)?;
        let known = ReleaseArchitecture::from_name(&text);
        if known.is_none() && !text.is_empty() {
            return Err(D::Error::custom(format_args!("{text:?} is no processor")));
        }
        Ok(known)
    }
}

impl Record for ClusterRecord {
    const KIND: Kind = Kind::Cluster;

    fn id(&self) -> Uuid {
        self.id.0
    }

    fn is_deleted(&self) -> bool {
        self.deleted_at.is_some()
    }
}
