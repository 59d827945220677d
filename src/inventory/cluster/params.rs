//! What clients send of clusters.

use serde::Deserialize;
use serde_json::Value;
use utoipa::ToSchema;
use uuid::Uuid;

use super::network::Subnet;
use super::parts::{
    ClusterNetwork, DiskEncryption, HighAvailabilityMode, IgnitionEndpoint, LoadBalancer, Network,
    NetworkType, NodeRoles, OlmOperator, OperatorBundle, Platform, Vip,
};
use crate::images::ReleaseArchitecture;
use crate::inventory::id::ClusterId;
use crate::inventory::request::request_bodies;

/// The processor of a cluster's machines, under all its names.
#[derive(Debug, ToSchema)]
#[schema(as = cluster_cpu_architecture)]
#[expect(dead_code, reason = "the type describes values; it is never made")]
enum Architecture {
    /// Intel and AMD, 64 bits.
    #[schema(rename = "x86_64")]
    X86_64,
    /// ARM, 64 bits.
    #[schema(rename = "aarch64")]
    Aarch64,
    /// ARM, 64 bits.
    #[schema(rename = "arm64")]
    Arm64,
    /// POWER, little-endian.
    #[schema(rename = "ppc64le")]
    Ppc64le,
    /// IBM Z.
    #[schema(rename = "s390x")]
    S390x,
    /// Several of them.
    #[schema(rename = "multi")]
    Multi,
}

/// What a cluster is made from.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = cluster_create_params)]
pub struct ClusterCreateParams {
    /// Its name.
    #[schema(min_length = 1, max_length = 54)]
    pub name: String,
    /// The version to install: `4.14`, or all of it.
    pub openshift_version: String,
    /// Credentials of registries: a `config.json`, in a string.
    pub pull_secret: String,
    /// The pull spec of the release to install, whatever `openshift_version` says.
    pub ocp_release_image: Option<String>,
    /// The processor of its machines.
    #[schema(value_type = Option<Architecture>)]
    pub cpu_architecture: Option<ReleaseArchitecture>,
    /// Whether it outlives one of its machines.
    pub high_availability_mode: Option<HighAvailabilityMode>,
    /// How many machines control it.
    pub control_plane_count: Option<i64>,
    /// The domain that its own is in.
    pub base_dns_domain: Option<String>,
    /// The network of pods, if `cluster_networks` is absent.
    pub cluster_network_cidr: Option<Subnet>,
    /// How many bits of it name a node.
    #[schema(minimum = 1, maximum = 128)]
    pub cluster_network_host_prefix: Option<i64>,
    /// The network of services, if `service_networks` is absent.
    pub service_network_cidr: Option<Subnet>,
    /// The networks of pods.
    pub cluster_networks: Option<Vec<ClusterNetwork>>,
    /// The networks of services.
    pub service_networks: Option<Vec<Network>>,
    /// The networks of machines.
    pub machine_networks: Option<Vec<Network>>,
    /// The addresses of its API.
    pub api_vips: Option<Vec<Vip>>,
    /// The addresses of what it serves.
    pub ingress_vips: Option<Vec<Vip>>,
    /// Whether its addresses come from a DHCP server.
    pub vip_dhcp_allocation: Option<bool>,
    /// What connects its pods.
    pub network_type: Option<NetworkType>,
    /// What it stands on.
    pub platform: Option<Platform>,
    /// Whether its owner manages what connects its machines.
    pub user_managed_networking: Option<bool>,
    /// On which machines a core runs two threads.
    pub hyperthreading: Option<NodeRoles>,
    /// Whether what its users run may run on the machines that control it.
    pub schedulable_masters: Option<bool>,
    /// The encryption of disks.
    pub disk_encryption: Option<DiskEncryption>,
    /// Where machines that join it get their configuration.
    pub ignition_endpoint: Option<IgnitionEndpoint>,
    /// What balances its load.
    pub load_balancer: Option<LoadBalancer>,
    /// Operators that it shall have.
    pub olm_operators: Option<Vec<OlmOperator>>,
    /// Operators that belong together and that it shall have.
    pub operator_bundles: Option<Vec<OperatorBundle>>,
    /// Words of its owner's, with commas between them.
    pub tags: Option<String>,
    /// Who may log in, one key a line.
    pub ssh_public_key: Option<String>,
    /// The proxy for `http:` URLs.
    pub http_proxy: Option<String>,
    /// The proxy for `https:` URLs.
    pub https_proxy: Option<String>,
    /// What is reached without a proxy.
    pub no_proxy: Option<String>,
    /// Time servers beside those that a machine has from elsewhere, with commas between them.
    pub additional_ntp_source: Option<String>,
    /// The only time servers, with commas between them.
    pub ntp_sources: Option<String>,
}

/// What a cluster is changed to. What is absent or null is left as it is.
///
/// A body that a GET gave may come back: what only the service sets is passed over, and what cannot change has to be as
/// it is.
#[derive(Clone, Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = v2_cluster_update_params)]
pub struct ClusterUpdateParams {
    /// Its id, if the body says it: it cannot change.
    pub id: Option<ClusterId>,
    /// Its version, if the body says it: it cannot change.
    pub openshift_version: Option<String>,
    /// The pull spec of its release, if the body says it: it cannot change.
    pub ocp_release_image: Option<String>,
    /// The processor of its machines, if the body says it: it cannot change.
    #[schema(value_type = Option<Architecture>)]
    pub cpu_architecture: Option<ReleaseArchitecture>,
    /// Whether it outlives one of its machines, if the body says it: it cannot change.
    pub high_availability_mode: Option<HighAvailabilityMode>,
    /// Its name.
    #[schema(min_length = 1, max_length = 54)]
    pub name: Option<String>,
    /// Credentials of registries; left as they are if empty.
    pub pull_secret: Option<String>,
    /// How many machines control it.
    pub control_plane_count: Option<i64>,
    /// The domain that its own is in; none if empty.
    pub base_dns_domain: Option<String>,
    /// The name of its API, where this is not made from the domain.
    pub api_vip_dns_name: Option<String>,
    /// The first network of pods, if `cluster_networks` is absent.
    pub cluster_network_cidr: Option<Subnet>,
    /// How many bits of it name a node.
    #[schema(minimum = 1, maximum = 128)]
    pub cluster_network_host_prefix: Option<i64>,
    /// The first network of services, if `service_networks` is absent.
    pub service_network_cidr: Option<Subnet>,
    /// The first network of machines, if `machine_networks` is absent.
    pub machine_network_cidr: Option<Subnet>,
    /// The networks of pods, all of them.
    pub cluster_networks: Option<Vec<ClusterNetwork>>,
    /// The networks of services, all of them.
    pub service_networks: Option<Vec<Network>>,
    /// The networks of machines, all of them.
    pub machine_networks: Option<Vec<Network>>,
    /// The addresses of its API, all of them.
    pub api_vips: Option<Vec<Vip>>,
    /// The addresses of what it serves, all of them.
    pub ingress_vips: Option<Vec<Vip>>,
    /// Whether its addresses come from a DHCP server.
    pub vip_dhcp_allocation: Option<bool>,
    /// What connects its pods.
    pub network_type: Option<NetworkType>,
    /// What it stands on.
    pub platform: Option<Platform>,
    /// Whether its owner manages what connects its machines.
    pub user_managed_networking: Option<bool>,
    /// On which machines a core runs two threads.
    pub hyperthreading: Option<NodeRoles>,
    /// Whether what its users run may run on the machines that control it.
    pub schedulable_masters: Option<bool>,
    /// The encryption of disks.
    pub disk_encryption: Option<DiskEncryption>,
    /// Where machines that join it get their configuration.
    pub ignition_endpoint: Option<IgnitionEndpoint>,
    /// What balances its load.
    pub load_balancer: Option<LoadBalancer>,
    /// Operators that it shall have, all of them.
    pub olm_operators: Option<Vec<OlmOperator>>,
    /// Operators that belong together and that it shall have, all of them.
    pub operator_bundles: Option<Vec<OperatorBundle>>,
    /// Words of its owner's, with commas between them; none if empty.
    pub tags: Option<String>,
    /// Who may log in, one key a line; nobody if empty.
    pub ssh_public_key: Option<String>,
    /// The proxy for `http:` URLs; none if empty.
    pub http_proxy: Option<String>,
    /// The proxy for `https:` URLs; none if empty.
    pub https_proxy: Option<String>,
    /// What is reached without a proxy; nothing if empty.
    pub no_proxy: Option<String>,
    /// Time servers beside those that a machine has from elsewhere; none if empty.
    pub additional_ntp_source: Option<String>,
    /// The only time servers; none if empty.
    pub ntp_sources: Option<String>,
}

/// A cluster that was installed elsewhere and gets more hosts.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = import_cluster_params)]
pub struct ClusterImportParams {
    /// Its name, if `api_vip_dnsname` does not say it.
    pub name: String,
    /// The name of its API.
    pub api_vip_dnsname: String,
    /// How the cluster calls itself.
    pub openshift_cluster_id: Uuid,
    /// Its version.
    pub openshift_version: Option<String>,
}

/// A cluster that is installed where this service cannot see it.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = disconnected_cluster_create_params)]
pub struct DisconnectedClusterParams {
    /// Its name.
    #[schema(min_length = 1, max_length = 54)]
    pub name: String,
    /// Its version.
    #[schema(min_length = 1)]
    pub openshift_version: String,
}

request_bodies! {
    ClusterCreateParams: "newClusterParams";
    ClusterUpdateParams: "clusterUpdateParams", prepared by accept_what_was_shown;
    ClusterImportParams: "newImportClusterParams";
    DisconnectedClusterParams: "newDisconnectedClusterParams";
}

/// Makes of a body that a GET gave one that a PATCH takes.
fn accept_what_was_shown(body: &mut Value) {
    /// What only the service sets.
    const SHOWN_ONLY: [&str; 33] = [
        "kind",
        "href",
        "user_name",
        "email_domain",
        "status",
        "status_info",
        "status_updated_at",
        "openshift_cluster_id",
        "imported",
        "pull_secret_set",
        "hosts",
        "host_networks",
        "ready_host_count",
        "enabled_host_count",
        "total_host_count",
        "monitored_operators",
        "progress",
        "last-installation-preparation",
        "validations_info",
        "feature_usage",
        "image_info",
        "controller_logs_collected_at",
        "controller_logs_started_at",
        "install_started_at",
        "install_completed_at",
        "created_at",
        "updated_at",
        "deleted_at",
        "org_id",
        "logs_info",
        "schedulable_masters_forced_true",
        "connectivity_majority_groups",
        "ip_collisions",
    ];
    let Value::Object(map) = body else { return };
    for key in SHOWN_ONLY {
        map.shift_remove(key);
    }
    // What a cluster that this service does not install stands on may be unknown.
    if map.get("platform").and_then(Value::as_object).is_some_and(serde_json::Map::is_empty) {
        map.shift_remove("platform");
    }
}
