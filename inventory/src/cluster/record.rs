//! Stored clusters.

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

/// The owner of all clusters. Callers have no names.
const OWNER: &str = "admin";
const EMAIL_DOMAIN: &str = "Unknown";

/// A stored cluster.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClusterRecord {
    /// Id.
    pub id: ClusterId,
    /// Kind of the cluster.
    pub kind: ClusterKind,
    /// User name of the owner.
    pub user_name: String,
    /// Domain of the owner's email address.
    pub email_domain: String,
    status: ClusterStatus,
    status_info: String,
    status_updated_at: Millis,
    /// Version of the release. May be empty if this service does not install the cluster.
    pub openshift_version: String,
    /// Pull spec of the release image.
    pub ocp_release_image: String,
    /// CPU architecture of the hosts, if known. The document has a string in any case.
    #[serde(with = "text")]
    pub cpu_architecture: Option<ReleaseArchitecture>,
    /// Number of control plane nodes. 0 if unknown.
    pub control_plane_count: i64,
    /// Id that the installed cluster itself uses (`ClusterVersion`).
    pub openshift_cluster_id: Option<Uuid>,
    /// Whether the cluster was imported: installed without this service.
    pub imported: bool,
    /// State of the controller's log upload.
    #[serde(default)]
    pub logs_info: String,
    /// Time when the controller started to collect logs.
    #[serde(default)]
    pub controller_logs_started_at: Millis,
    /// Time of the last upload of the controller's logs.
    #[serde(default)]
    pub controller_logs_collected_at: Millis,
    /// Requested settings.
    pub spec: ClusterSpec,
    /// Creation time.
    pub created_at: Micros,
    /// Time of the last change.
    pub updated_at: Micros,
    /// Deletion time.
    pub deleted_at: Option<Micros>,
}

/// The requested settings of a cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClusterSpec {
    /// Name. Not unique.
    pub name: String,
    /// Base domain.
    pub base_dns_domain: String,
    /// DNS name of the API, if it does not follow from the base domain.
    pub api_vip_dns_name: Option<String>,
    /// Platform, if known.
    pub platform: Option<Platform>,
    /// Whether the user manages the networking.
    pub user_managed_networking: bool,
    /// Whether a DHCP server assigns the VIPs.
    pub vip_dhcp_allocation: bool,
    /// Network plugin for pods.
    pub network_type: Option<NetworkType>,
    /// Cluster networks (addresses of pods), without the id of the cluster.
    pub cluster_networks: Vec<ClusterNetwork>,
    /// Service networks.
    pub service_networks: Vec<Subnet>,
    /// Machine networks.
    pub machine_networks: Vec<Subnet>,
    /// VIPs of the API, without the id of the cluster.
    pub api_vips: Vec<Vip>,
    /// VIPs of the ingress, without the id of the cluster.
    pub ingress_vips: Vec<Vip>,
    /// Node roles with hyperthreading enabled.
    pub hyperthreading: Option<NodeRoles>,
    /// Whether workloads can run on control plane nodes.
    pub schedulable_masters: bool,
    /// Disk encryption.
    pub disk_encryption: DiskEncryption,
    /// Endpoint from which hosts that join the cluster fetch their Ignition config.
    pub ignition_endpoint: IgnitionEndpoint,
    /// Type of the load balancer, if known.
    pub load_balancer: Option<LoadBalancerType>,
    /// Operators to install.
    pub olm_operators: Vec<OlmOperator>,
    /// Operator bundles to install.
    pub operator_bundles: Vec<OperatorBundle>,
    /// Tags, separated by commas.
    pub tags: String,
    /// Public SSH keys that can log in.
    pub ssh_public_key: String,
    /// Proxy for `http:` URLs.
    pub http_proxy: String,
    /// Proxy for `https:` URLs.
    pub https_proxy: String,
    /// Hosts and networks that are reached without a proxy.
    pub no_proxy: String,
    /// Additional time servers.
    pub additional_ntp_source: String,
    /// Time servers that replace all others.
    pub ntp_sources: String,
    /// Registry credentials.
    pub pull_secret: Secret,
}

impl ClusterSpec {
    /// Returns the proxy settings.
    pub(crate) fn proxies(&self) -> [&str; 3] {
        [&self.http_proxy, &self.https_proxy, &self.no_proxy]
    }
}

impl ClusterRecord {
    /// Returns a cluster that becomes known to the service.
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

    /// Returns its status.
    #[must_use]
    pub fn status(&self) -> ClusterStatus {
        self.status
    }

    /// Returns the reason for the status, as text.
    #[must_use]
    pub fn status_info(&self) -> &str {
        &self.status_info
    }

    /// Returns the time of the last change of the status.
    #[must_use]
    pub fn status_updated_at(&self) -> Millis {
        self.status_updated_at
    }

    /// Applies a transition. Returns the previous status if the status changed.
    pub(crate) fn apply(&mut self, transition: &ClusterTransition) -> Option<ClusterStatus> {
        if let Some(info) = transition.info() {
            info.clone_into(&mut self.status_info);
        }
        let status = transition.status().filter(|status| *status != self.status)?;
        self.status_updated_at = Millis::new(transition.at());
        Some(std::mem::replace(&mut self.status, status))
    }

    /// Returns `true` if the cluster is deleted but still kept.
    #[must_use]
    pub fn is_deleted(&self) -> bool {
        self.deleted_at.is_some()
    }

    /// Returns the version of the cluster's release, or `None` if the record has none.
    ///
    /// # Errors
    ///
    /// Returns an error if the text is not a version. Without this error, the cluster would be checked by the rules of
    /// no version.
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

    /// Returns whether the control plane is highly available, if the number of its nodes is known.
    #[must_use]
    pub(crate) fn high_availability_mode(&self) -> Option<HighAvailabilityMode> {
        match self.control_plane_count {
            0 => None,
            1 => Some(HighAvailabilityMode::None),
            _ => Some(HighAvailabilityMode::Full),
        }
    }
}

/// Serialization of an optional architecture. `None` is an empty string.
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
        let known = ReleaseArchitecture::from_name(&text);
        if known.is_none() && !text.is_empty() {
            return Err(D::Error::custom(format_args!("{text:?} is not a CPU architecture")));
        }
        Ok(known)
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
