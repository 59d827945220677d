//! Defaults of new clusters, as the API shows them.

use serde::Serialize;
use utoipa::ToSchema;

use crate::Settings;
use crate::cluster::defaults::{pod_network, service_network};
use crate::cluster::{ClusterNetwork, Network, Subnet};
use crate::host::validation::FORBIDDEN_NAMES;

/// Hours without a change after which a cluster can be deleted. This service deletes no clusters.
const INACTIVE_HOURS: i64 = 480;

/// Defaults of new clusters.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = cluster_default_config)]
pub(super) struct ClusterDefaults {
    /// Cluster network (addresses of pods).
    pub cluster_network_cidr: Subnet,
    /// Prefix length of the subnet that each node gets.
    pub cluster_network_host_prefix: i64,
    /// Service network.
    pub service_network_cidr: Subnet,
    /// Hours without a change after which a cluster can be deleted.
    pub inactive_deletion_hours: i64,
    /// Time server.
    pub ntp_source: String,
    /// Cluster networks (addresses of pods).
    pub cluster_networks_ipv4: Vec<ClusterNetwork>,
    /// Cluster networks of a dual-stack cluster.
    pub cluster_networks_dualstack: Vec<ClusterNetwork>,
    /// Service networks.
    pub service_networks_ipv4: Vec<Network>,
    /// Service networks of a dual-stack cluster.
    pub service_networks_dualstack: Vec<Network>,
    /// Host names that are not allowed.
    pub forbidden_hostnames: [&'static str; FORBIDDEN_NAMES.len()],
}

impl ClusterDefaults {
    /// Returns the defaults from the settings.
    pub(super) fn from_settings(settings: &Settings) -> Self {
        let (v4, v6) = (&settings.cluster_networks, &settings.cluster_networks_v6);
        let service = |networks| Network { cluster_id: None, cidr: service_network(networks) };
        Self {
            cluster_network_cidr: pod_network(v4).cidr,
            cluster_network_host_prefix: pod_network(v4).host_prefix,
            service_network_cidr: service_network(v4),
            inactive_deletion_hours: INACTIVE_HOURS,
            ntp_source: settings.default_ntp_source.clone(),
            cluster_networks_ipv4: vec![pod_network(v4)],
            cluster_networks_dualstack: vec![pod_network(v4), pod_network(v6)],
            service_networks_ipv4: vec![service(v4)],
            service_networks_dualstack: vec![service(v4), service(v6)],
            forbidden_hostnames: FORBIDDEN_NAMES,
        }
    }
}
