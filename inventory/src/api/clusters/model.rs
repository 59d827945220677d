//! The API's representation of clusters.

use serde::Serialize;
use utoipa::ToSchema;
use uuid::Uuid;

use super::host_networks::HostNetwork;
use super::hosts::Hosts;
use super::operators::{MonitoredOperator, monitored_operators};
use crate::Settings;
use crate::catalogue::ReleaseArchitecture;
use crate::cluster::{
    ClusterKind, ClusterNetwork, ClusterRecord, ClusterStatus, DiskEncryption, ExternalPlatform,
    HighAvailabilityMode, IgnitionEndpoint, LoadBalancer, Network, NetworkType, NodeRoles, OperatorBundle,
    Platform, PlatformType, Subnet, Vip,
};
use crate::id::ClusterId;
use crate::time::{Micros, Millis};

/// A cluster.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = cluster)]
pub(super) struct Cluster {
    /// Kind of the cluster.
    pub kind: ClusterKind,
    /// Id of the cluster.
    pub id: ClusterId,
    /// Path of the resource.
    pub href: String,
    /// Name. Not unique.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// Status of the cluster.
    pub status: ClusterStatus,
    /// Reason for the status, as text.
    pub status_info: String,
    /// Time of the last change of the status.
    pub status_updated_at: Millis,
    /// User name of the owner.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub user_name: String,
    /// Domain of the owner's email address.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub email_domain: String,
    /// OpenShift version.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub openshift_version: String,
    /// Pull spec of the release image.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub ocp_release_image: String,
    /// Id that the installed cluster itself uses (`ClusterVersion`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub openshift_cluster_id: Option<Uuid>,
    /// CPU architecture of the hosts.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub cpu_architecture: Option<ReleaseArchitecture>,
    /// Base domain of the cluster.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub base_dns_domain: String,
    /// DNS name of the cluster's API, if it does not follow from the base domain.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub api_vip_dns_name: Option<String>,
    /// Whether the control plane is highly available.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub high_availability_mode: Option<HighAvailabilityMode>,
    /// Number of control plane nodes.
    #[serde(skip_serializing_if = "is_zero")]
    pub control_plane_count: i64,
    /// First cluster network.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cluster_network_cidr: Option<Subnet>,
    /// Prefix length of the subnet that each node gets.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cluster_network_host_prefix: Option<i64>,
    /// First service network.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub service_network_cidr: Option<Subnet>,
    /// First machine network.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub machine_network_cidr: Option<Subnet>,
    /// Cluster networks (addresses of pods).
    pub cluster_networks: Vec<ClusterNetwork>,
    /// Service networks.
    pub service_networks: Vec<Network>,
    /// Machine networks.
    pub machine_networks: Vec<Network>,
    /// Virtual IP addresses of the cluster's API.
    pub api_vips: Vec<Vip>,
    /// Virtual IP addresses of the cluster's ingress.
    pub ingress_vips: Vec<Vip>,
    /// Networks that the hosts have addresses in.
    pub host_networks: Vec<HostNetwork>,
    /// Hosts of the cluster.
    // Each item is a `null` that the text of the hosts replaces.
    #[schema(value_type = Vec<Object>)]
    pub hosts: Vec<()>,
    /// Number of hosts that are ready to be installed.
    #[serde(skip_serializing_if = "is_zero")]
    pub ready_host_count: i64,
    /// Number of hosts that are enabled for installation.
    #[serde(skip_serializing_if = "is_zero")]
    pub enabled_host_count: i64,
    /// Number of hosts.
    #[serde(skip_serializing_if = "is_zero")]
    pub total_host_count: i64,
    /// Platform of the cluster.
    pub platform: KnownPlatform,
    /// Public SSH keys that can log in, one per line.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub ssh_public_key: String,
    /// Proxy for `http:` URLs.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub http_proxy: String,
    /// Proxy for `https:` URLs.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub https_proxy: String,
    /// Hosts and networks that are reached without a proxy, separated by commas.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub no_proxy: String,
    /// Additional time servers, separated by commas.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub additional_ntp_source: String,
    /// Time servers that replace all others, separated by commas.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub ntp_sources: String,
    /// Whether a pull secret is set. The service never returns the secret.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub pull_secret_set: bool,
    /// Whether a DHCP server assigns the virtual IP addresses.
    pub vip_dhcp_allocation: bool,
    /// Whether the user manages the networking of the cluster.
    pub user_managed_networking: bool,
    /// Whether workloads can run on control plane nodes.
    pub schedulable_masters: bool,
    /// Whether the cluster was imported: installed without this service.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub imported: bool,
    /// Network plugin for pods.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network_type: Option<NetworkType>,
    /// Node roles with hyperthreading enabled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hyperthreading: Option<NodeRoles>,
    /// Disk encryption.
    pub disk_encryption: DiskEncryption,
    /// Endpoint from which hosts that join the cluster fetch their Ignition config.
    pub ignition_endpoint: IgnitionEndpoint,
    /// Load balancer of the cluster.
    pub load_balancer: LoadBalancer,
    /// Operators of the cluster.
    pub monitored_operators: Vec<MonitoredOperator>,
    /// Operator bundles to install.
    pub operator_bundles: Vec<OperatorBundle>,
    /// Progress of the installation.
    pub progress: Progress,
    /// Result of the last attempt to prepare the installation.
    #[serde(rename = "last-installation-preparation")]
    pub last_installation_preparation: LastInstallationPreparation,
    /// Results of the cluster's validations, as JSON in a string. Always `{}`: the service does not validate clusters.
    pub validations_info: &'static str,
    /// Tags, separated by commas.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub tags: String,
    /// Discovery image of older API versions. Always unset.
    pub image_info: ImageInfo,
    /// State of the controller's log upload.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub logs_info: String,
    /// Time when the controller's logs were uploaded.
    pub controller_logs_collected_at: Millis,
    /// Time when the controller started to collect logs.
    pub controller_logs_started_at: Millis,
    /// Time when the installation started.
    pub install_started_at: Millis,
    /// Time when the installation completed.
    pub install_completed_at: Millis,
    /// Creation time.
    pub created_at: Micros,
    /// Time of the last change.
    pub updated_at: Micros,
    /// Deletion time.
    pub deleted_at: Option<Micros>,
}

/// Platform of a cluster, if known.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = known_platform)]
pub(super) struct KnownPlatform {
    /// Type of the platform.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub platform_type: Option<PlatformType>,
    /// Settings of an external platform.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub external: Option<ExternalPlatform>,
}

impl From<Option<Platform>> for KnownPlatform {
    fn from(platform: Option<Platform>) -> Self {
        let Some(Platform { platform_type, external }) = platform else { return Self::default() };
        Self { platform_type: Some(platform_type), external }
    }
}

/// Progress of an installation. Always empty: this service does not install clusters.
#[derive(Clone, Copy, Debug, Default, Serialize, ToSchema)]
#[schema(as = cluster_progress_info)]
pub(super) struct Progress {}

/// Result of an attempt to prepare an installation.
#[derive(Clone, Copy, Debug, Serialize, ToSchema)]
#[schema(as = last_installation_preparation)]
pub(super) struct LastInstallationPreparation {
    /// Always `not_started`.
    pub status: &'static str,
}

/// Discovery image of a cluster, from older API versions.
#[derive(Clone, Copy, Debug, Default, Serialize, ToSchema)]
#[schema(as = image_info)]
pub(super) struct ImageInfo {
    /// Always unset.
    pub created_at: Micros,
    /// Always unset.
    pub expires_at: Millis,
}

fn is_zero(number: &i64) -> bool {
    *number == 0
}

impl Cluster {
    /// Returns the response for a cluster.
    pub(super) fn from_record(record: ClusterRecord, hosts: Hosts, settings: &Settings) -> Self {
        let monitored_operators = monitored_operators(&record, settings);
        let high_availability_mode = record.high_availability_mode();
        let (status, status_info) = (record.status(), record.status_info().to_owned());
        let status_updated_at = record.status_updated_at();
        let (id, spec) = (record.id, record.spec);
        let first = spec.cluster_networks.first();
        Self {
            kind: record.kind,
            id,
            href: format!("{}/v2/clusters/{id}", Settings::API),
            status,
            status_info,
            status_updated_at,
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
            monitored_operators,
            cluster_networks: cluster_networks_of(id, spec.cluster_networks),
            service_networks: networks_of(id, spec.service_networks),
            machine_networks: networks_of(id, spec.machine_networks),
            api_vips: vips_of(id, spec.api_vips),
            ingress_vips: vips_of(id, spec.ingress_vips),
            host_networks: hosts.networks,
            hosts: Vec::new(),
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
            validations_info: "{}",
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

fn cluster_networks_of(id: ClusterId, networks: Vec<ClusterNetwork>) -> Vec<ClusterNetwork> {
    networks.into_iter().map(|network| ClusterNetwork { cluster_id: Some(id), ..network }).collect()
}

fn networks_of(id: ClusterId, subnets: Vec<Subnet>) -> Vec<Network> {
    subnets.into_iter().map(|cidr| Network { cluster_id: Some(id), cidr }).collect()
}

fn vips_of(id: ClusterId, vips: Vec<Vip>) -> Vec<Vip> {
    vips.into_iter().map(|vip| Vip { cluster_id: Some(id), ..vip }).collect()
}
