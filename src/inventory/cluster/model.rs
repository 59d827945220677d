//! Clusters as clients see them.

use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;
use uuid::Uuid;

use super::network::Subnet;
use super::parts::{
    ClusterKind, ClusterNetwork, ClusterStatus, DiskEncryption, HighAvailabilityMode, HostNetwork,
    IgnitionEndpoint, KnownPlatform, LoadBalancer, MonitoredOperator, Network, NetworkType, NodeRoles,
    OlmOperator, OperatorBundle, Vip,
};
use super::record::ClusterRecord;
use crate::images::ReleaseArchitecture;
use crate::inventory::Settings;
use crate::inventory::id::ClusterId;
use crate::inventory::time::{Micros, Millis};

/// A cluster.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = cluster)]
pub struct Cluster {
    /// What kind of cluster it is.
    pub kind: ClusterKind,
    /// Its id.
    pub id: ClusterId,
    /// Its path.
    pub href: String,
    /// Its name. Others may have the same.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// How far it is.
    pub status: ClusterStatus,
    /// The same in words.
    pub status_info: String,
    /// When it came so far.
    pub status_updated_at: Millis,
    /// Whose it is.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub user_name: String,
    /// The domain of the owner's mail address.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub email_domain: String,
    /// The version of its release.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub openshift_version: String,
    /// The pull spec of its release.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub ocp_release_image: String,
    /// How the cluster calls itself once it is installed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub openshift_cluster_id: Option<Uuid>,
    /// The processor of its machines.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub cpu_architecture: Option<ReleaseArchitecture>,
    /// The domain that its own is in.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub base_dns_domain: String,
    /// The name of its API, where this is not made from the domain.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub api_vip_dns_name: Option<String>,
    /// Whether it outlives one of its machines.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub high_availability_mode: Option<HighAvailabilityMode>,
    /// How many machines control it.
    #[serde(skip_serializing_if = "is_zero")]
    pub control_plane_count: i64,
    /// The first network of pods.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cluster_network_cidr: Option<Subnet>,
    /// How many bits of it name a node.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cluster_network_host_prefix: Option<i64>,
    /// The first network of services.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub service_network_cidr: Option<Subnet>,
    /// The first network of machines.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub machine_network_cidr: Option<Subnet>,
    /// The networks of pods.
    pub cluster_networks: Vec<ClusterNetwork>,
    /// The networks of services.
    pub service_networks: Vec<Network>,
    /// The networks of machines.
    pub machine_networks: Vec<Network>,
    /// The addresses of its API.
    pub api_vips: Vec<Vip>,
    /// The addresses of what it serves.
    pub ingress_vips: Vec<Vip>,
    /// The networks that its hosts are in.
    pub host_networks: Vec<HostNetwork>,
    /// Its hosts.
    #[schema(value_type = Vec<Object>)]
    pub hosts: Vec<Value>,
    /// How many of its hosts can be installed.
    #[serde(skip_serializing_if = "is_zero")]
    pub ready_host_count: i64,
    /// How many of its hosts shall be installed.
    #[serde(skip_serializing_if = "is_zero")]
    pub enabled_host_count: i64,
    /// How many hosts it has.
    #[serde(skip_serializing_if = "is_zero")]
    pub total_host_count: i64,
    /// What it stands on.
    pub platform: KnownPlatform,
    /// Who may log in, one key a line.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub ssh_public_key: String,
    /// The proxy for `http:` URLs.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub http_proxy: String,
    /// The proxy for `https:` URLs.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub https_proxy: String,
    /// What is reached without a proxy.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub no_proxy: String,
    /// Time servers beside those that a machine has from elsewhere, with commas between them.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub additional_ntp_source: String,
    /// The only time servers, with commas between them.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub ntp_sources: String,
    /// Whether there is a pull secret. It is never shown.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub pull_secret_set: bool,
    /// Whether its addresses come from a DHCP server.
    pub vip_dhcp_allocation: bool,
    /// Whether its owner manages what connects its machines.
    pub user_managed_networking: bool,
    /// Whether what its users run may run on the machines that control it.
    pub schedulable_masters: bool,
    /// Whether it was installed elsewhere.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub imported: bool,
    /// What connects its pods.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network_type: Option<NetworkType>,
    /// On which machines a core runs two threads.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hyperthreading: Option<NodeRoles>,
    /// The encryption of disks.
    pub disk_encryption: DiskEncryption,
    /// Where machines that join it get their configuration.
    pub ignition_endpoint: IgnitionEndpoint,
    /// What balances its load.
    pub load_balancer: LoadBalancer,
    /// Its operators.
    pub monitored_operators: Vec<MonitoredOperator>,
    /// Operators that belong together and that it shall have.
    pub operator_bundles: Vec<OperatorBundle>,
    /// How far its installation is.
    pub progress: Progress,
    /// How the last try to begin its installation went.
    #[serde(rename = "last-installation-preparation")]
    pub last_installation_preparation: LastInstallationPreparation,
    /// Words of its owner's, with commas between them.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub tags: String,
    /// An image of older APIs. There never is one.
    pub image_info: ImageInfo,
    /// How far the logs of its controller are.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub logs_info: String,
    /// When its controller's logs came.
    pub controller_logs_collected_at: Millis,
    /// When its controller began to collect logs.
    pub controller_logs_started_at: Millis,
    /// When its installation began.
    pub install_started_at: Millis,
    /// When its installation was done.
    pub install_completed_at: Millis,
    /// When it was made.
    pub created_at: Micros,
    /// When it changed last.
    pub updated_at: Micros,
    /// When it was deleted.
    pub deleted_at: Option<Micros>,
}

/// How far an installation is. This service begins none.
#[derive(Clone, Copy, Debug, Default, Serialize, ToSchema)]
#[schema(as = cluster_progress_info)]
pub struct Progress {}

/// How a try to begin an installation went.
#[derive(Clone, Copy, Debug, Serialize, ToSchema)]
#[schema(as = last_installation_preparation)]
pub struct LastInstallationPreparation {
    /// Always `not_started`.
    pub status: &'static str,
}

/// An image of a cluster, of which newer APIs have none.
#[derive(Clone, Copy, Debug, Default, Serialize, ToSchema)]
#[schema(as = image_info)]
pub struct ImageInfo {
    /// Never.
    pub created_at: Micros,
    /// Never.
    pub expires_at: Millis,
}

fn is_zero(number: &i64) -> bool {
    *number == 0
}

/// The hosts of a cluster, as far as an answer has them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Hosts {
    /// The hosts themselves, where they are asked for.
    pub(crate) views: Vec<Value>,
    /// The networks that they are in.
    pub(crate) networks: Vec<HostNetwork>,
    /// How many there are.
    pub(crate) counts: HostCounts,
}

/// How many hosts a cluster has.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct HostCounts {
    pub(crate) ready: i64,
    pub(crate) enabled: i64,
    pub(crate) total: i64,
}

impl Cluster {
    /// A cluster as it is shown.
    pub(crate) fn of(record: ClusterRecord, hosts: Hosts) -> Self {
        let high_availability_mode = record.high_availability_mode();
        let (id, spec) = (record.id, record.spec);
        let first = spec.cluster_networks.first();
        Self {
            kind: record.kind,
            id,
            href: format!("{}/v2/clusters/{id}", Settings::API),
            status: record.status,
            status_info: record.status_info,
            status_updated_at: record.status_updated_at,
            user_name: record.user_name,
            email_domain: record.email_domain,
            openshift_version: record.openshift_version,
            ocp_release_image: record.ocp_release_image,
            openshift_cluster_id: record.openshift_cluster_id,
            cpu_architecture: record.cpu_architecture,
            api_vip_dns_name: spec.api_vip_dns_name.clone(),
            high_availability_mode,
            control_plane_count: record.control_plane_count,
            cluster_network_cidr: first.map(|network| network.cidr.clone()),
            cluster_network_host_prefix: first.map(|network| network.host_prefix),
            service_network_cidr: spec.service_networks.first().cloned(),
            machine_network_cidr: spec.machine_networks.first().cloned(),
            monitored_operators: monitored_operators(id, &spec.olm_operators),
            cluster_networks: pods_of(id, spec.cluster_networks),
            service_networks: networks_of(id, spec.service_networks),
            machine_networks: networks_of(id, spec.machine_networks),
            api_vips: vips_of(id, spec.api_vips),
            ingress_vips: vips_of(id, spec.ingress_vips),
            host_networks: hosts.networks,
            hosts: hosts.views,
            ready_host_count: hosts.counts.ready,
            enabled_host_count: hosts.counts.enabled,
            total_host_count: hosts.counts.total,
            name: spec.name,
            base_dns_domain: spec.base_dns_domain,
            platform: spec.platform.into(),
            ssh_public_key: spec.ssh_public_key,
            http_proxy: spec.http_proxy,
            https_proxy: spec.https_proxy,
            no_proxy: spec.no_proxy,
            additional_ntp_source: spec.additional_ntp_source,
            ntp_sources: spec.ntp_sources,
            pull_secret_set: !spec.pull_secret.is_empty(),
            vip_dhcp_allocation: spec.vip_dhcp_allocation,
            user_managed_networking: spec.user_managed_networking,
            schedulable_masters: spec.schedulable_masters,
            imported: record.imported,
            network_type: spec.network_type,
            hyperthreading: spec.hyperthreading,
            disk_encryption: spec.disk_encryption,
            ignition_endpoint: spec.ignition_endpoint,
            load_balancer: LoadBalancer { balancer_type: spec.load_balancer },
            operator_bundles: spec.operator_bundles,
            progress: Progress {},
            last_installation_preparation: LastInstallationPreparation { status: "not_started" },
            tags: spec.tags,
            image_info: ImageInfo::default(),
            logs_info: record.logs_info,
            controller_logs_collected_at: record.controller_logs_collected_at,
            controller_logs_started_at: record.controller_logs_started_at,
            install_started_at: Millis::default(),
            install_completed_at: Millis::default(),
            created_at: record.created_at,
            updated_at: record.updated_at,
            deleted_at: record.deleted_at,
        }
    }
}

fn pods_of(id: ClusterId, networks: Vec<ClusterNetwork>) -> Vec<ClusterNetwork> {
    networks.into_iter().map(|network| ClusterNetwork { cluster_id: Some(id), ..network }).collect()
}

fn networks_of(id: ClusterId, subnets: Vec<Subnet>) -> Vec<Network> {
    subnets.into_iter().map(|cidr| Network { cluster_id: Some(id), cidr }).collect()
}

fn vips_of(id: ClusterId, vips: Vec<Vip>) -> Vec<Vip> {
    vips.into_iter().map(|vip| Vip { cluster_id: Some(id), ..vip }).collect()
}

fn monitored_operators(id: ClusterId, operators: &[OlmOperator]) -> Vec<MonitoredOperator> {
    let monitored = |operator: &OlmOperator| MonitoredOperator {
        cluster_id: id,
        name: operator.name.clone(),
        operator_type: "olm",
        properties: operator.properties.clone(),
        status_updated_at: Millis::default(),
        bundles: Vec::new(),
        source_bundles: Vec::new(),
    };
    operators.iter().map(monitored).collect()
}
