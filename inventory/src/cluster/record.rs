//! The stored record of a cluster.

use chrono::{DateTime, Utc};
use rules::cluster::state::{ClusterOrigin, ClusterTransition};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::parts::{
    ClusterKind, ClusterNetwork, ClusterStatus, DiskEncryption, HighAvailabilityMode, IgnitionEndpoint,
    LoadBalancerType, NetworkType, NodeRoles, OlmOperator, OperatorBundle, Platform, Vip,
};
use super::subnet::Subnet;
use crate::Secret;
use crate::catalogue::{ReleaseArchitecture, Version};
use crate::error::Error;
use crate::id::ClusterId;
use crate::store::{Columns, Kind, Record};
use crate::time::{Micros, Millis};

/// The owner of every cluster, because callers have no user names.
const OWNER: &str = "admin";
const EMAIL_DOMAIN: &str = "Unknown";

/// The stored record of a cluster, including deleted clusters.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClusterRecord {
    /// Id of the cluster, chosen by the service.
    pub id: ClusterId,
    /// Whether the cluster is installed by this service, imported, or disconnected.
    pub kind: ClusterKind,
    /// User name of the owner.
    pub user_name: String,
    /// Domain of the owner's email address.
    pub email_domain: String,
    status: ClusterStatus,
    status_info: String,
    status_updated_at: Millis,
    /// OpenShift version. May be empty if this service does not install the cluster.
    pub openshift_version: String,
    /// Pull spec of the release image, such as `quay.io/openshift-release-dev/ocp-release:4.18.1-x86_64`.
    pub ocp_release_image: String,
    /// CPU architecture of the hosts. `None` if unknown, stored as an empty string.
    #[serde(with = "text")]
    pub cpu_architecture: Option<ReleaseArchitecture>,
    /// Number of control plane nodes, or 0 if unknown.
    pub control_plane_count: i64,
    /// Id that the installed cluster reports in its `ClusterVersion` resource.
    pub openshift_cluster_id: Option<Uuid>,
    /// Whether the cluster was imported after an installation without this service.
    pub imported: bool,
    /// State of the controller's log upload. Empty before the first report.
    #[serde(default)]
    pub logs_info: String,
    /// Time when the controller began to collect logs.
    #[serde(default)]
    pub controller_logs_started_at: Millis,
    /// Time of the last upload of the controller's logs.
    #[serde(default)]
    pub controller_logs_collected_at: Millis,
    /// The settings that the user has requested.
    pub spec: ClusterSpec,
    /// Time when the cluster was registered or imported.
    pub created_at: Micros,
    /// Time of the last change to the record.
    pub updated_at: Micros,
    /// Time when the cluster was deleted. `None` if it is not deleted.
    pub deleted_at: Option<Micros>,
}

/// The settings of a cluster that its user can choose.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClusterSpec {
    /// Name of the cluster, which need not be unique.
    pub name: String,
    /// Base domain of the cluster's DNS names.
    pub base_dns_domain: String,
    /// DNS name of the API. `None` if it is derived from the name and the base domain.
    pub api_vip_dns_name: Option<String>,
    /// Infrastructure platform, if known.
    pub platform: Option<Platform>,
    /// Whether the user manages the cluster's networking, for example the load balancer.
    pub user_managed_networking: bool,
    /// Whether a DHCP server assigns the VIPs.
    pub vip_dhcp_allocation: bool,
    /// Network plugin for pods.
    pub network_type: Option<NetworkType>,
    /// Cluster networks, which contain the addresses of pods. Stored without the id of the cluster.
    pub cluster_networks: Vec<ClusterNetwork>,
    /// Service networks, which contain the addresses of Kubernetes services.
    pub service_networks: Vec<Subnet>,
    /// Machine networks, which contain the addresses of hosts.
    pub machine_networks: Vec<Subnet>,
    /// VIPs of the API. Stored without the id of the cluster.
    pub api_vips: Vec<Vip>,
    /// VIPs of the ingress. Stored without the id of the cluster.
    pub ingress_vips: Vec<Vip>,
    /// Node roles with hyperthreading enabled.
    pub hyperthreading: Option<NodeRoles>,
    /// Whether workloads can run on control plane nodes.
    pub schedulable_masters: bool,
    /// Encryption of the installation disks.
    pub disk_encryption: DiskEncryption,
    /// Endpoint where hosts that join the cluster fetch their Ignition config.
    pub ignition_endpoint: IgnitionEndpoint,
    /// Type of the load balancer, if known.
    pub load_balancer: Option<LoadBalancerType>,
    /// Operators to install in addition to the built-in ones.
    pub olm_operators: Vec<OlmOperator>,
    /// Operator bundles that the user has selected.
    pub operator_bundles: Vec<OperatorBundle>,
    /// Tags, separated by commas.
    pub tags: String,
    /// Public SSH keys that can log in to the nodes.
    pub ssh_public_key: String,
    /// Proxy URL for `http:` requests. Empty for no proxy.
    pub http_proxy: String,
    /// Proxy URL for `https:` requests. Empty for no proxy.
    pub https_proxy: String,
    /// Hosts and networks reached without the proxy, separated by commas.
    pub no_proxy: String,
    /// Additional time servers, separated by commas.
    pub additional_ntp_source: String,
    /// Time servers that replace all others, separated by commas.
    pub ntp_sources: String,
    /// Registry credentials, in the JSON format of a pull secret.
    pub pull_secret: Secret,
}

impl ClusterSpec {
    pub(crate) fn proxies(&self) -> [&str; 3] {
        [&self.http_proxy, &self.https_proxy, &self.no_proxy]
    }
}

impl ClusterRecord {
    /// Returns the first record of a cluster, with the initial status for its origin.
    pub(super) fn new(
        kind: ClusterKind,
        origin: ClusterOrigin,
        spec: ClusterSpec,
        now: DateTime<Utc>,
    ) -> Self {
        let (millis, micros) = (Millis::new(now), Micros::new(now));
        let mut cluster = Self {
            id: ClusterId::fresh(),
            kind,
            user_name: OWNER.to_owned(),
            email_domain: EMAIL_DOMAIN.to_owned(),
            status: ClusterStatus::Insufficient,
            status_info: String::new(),
            status_updated_at: millis,
            openshift_version: String::new(),
            ocp_release_image: String::new(),
            cpu_architecture: None,
            control_plane_count: 0,
            openshift_cluster_id: None,
            imported: false,
            logs_info: String::new(),
            controller_logs_started_at: Millis::default(),
            controller_logs_collected_at: Millis::default(),
            spec,
            created_at: micros,
            updated_at: micros,
            deleted_at: None,
        };
        cluster.apply(&ClusterTransition::first(origin, now));
        cluster
    }

    /// Returns the current status of the cluster.
    #[must_use]
    pub fn status(&self) -> ClusterStatus {
        self.status
    }

    /// Returns the reason for the status, as a text for users.
    #[must_use]
    pub fn status_info(&self) -> &str {
        &self.status_info
    }

    /// Returns the time when the status last changed.
    #[must_use]
    pub fn status_updated_at(&self) -> Millis {
        self.status_updated_at
    }

    /// Applies a status transition. Returns the previous status if the status has changed.
    pub(crate) fn apply(&mut self, transition: &ClusterTransition) -> Option<ClusterStatus> {
        if let Some(info) = transition.info() {
            info.clone_into(&mut self.status_info);
        }
        let status = transition.status().filter(|status| *status != self.status)?;
        self.status_updated_at = Millis::new(transition.at());
        Some(std::mem::replace(&mut self.status, status))
    }

    /// Returns `true` if the cluster is deleted but still stored.
    #[must_use]
    pub fn is_deleted(&self) -> bool {
        self.deleted_at.is_some()
    }

    /// Returns the version of the cluster's release, or `None` if the record contains no version.
    ///
    /// # Errors
    ///
    /// Returns an error if the stored text is not a version. Otherwise the cluster would be checked as if it had no
    /// version.
    pub(crate) fn parsed_version(&self) -> Result<Option<Version>, Error> {
        if self.openshift_version.is_empty() {
            return Ok(None);
        }
        let version = Version::parse(&self.openshift_version);
        version.map(Some).ok_or_else(|| {
            let (id, version) = (self.id, &self.openshift_version);
            Error::broken(format_args!("cluster {id} has the invalid OpenShift version {version:?}"))
        })
    }

    /// Returns the availability mode of the control plane, or `None` if the number of control plane nodes is unknown.
    #[must_use]
    pub(crate) fn high_availability_mode(&self) -> Option<HighAvailabilityMode> {
        match self.control_plane_count {
            0 => None,
            1 => Some(HighAvailabilityMode::None),
            _ => Some(HighAvailabilityMode::Full),
        }
    }
}

/// Serializes an optional architecture as a string. `None` is an empty string.
mod text {
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use crate::catalogue::ReleaseArchitecture;

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
        let architecture = ReleaseArchitecture::from_name(&text);
        if architecture.is_none() && !text.is_empty() {
            return Err(D::Error::custom(format_args!("{text:?} is not a CPU architecture")));
        }
        Ok(architecture)
    }
}

impl Record for ClusterRecord {
    const KIND: Kind = Kind::Cluster;

    fn id(&self) -> Uuid {
        self.id.0
    }

    fn columns(&self) -> Columns {
        Columns {
            deleted: self.deleted_at.is_some(),
            status: self.status.as_str().to_owned(),
            ..Columns::default()
        }
    }
}
