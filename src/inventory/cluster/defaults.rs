//! What clusters are made of where their owners say nothing.

use serde::Serialize;
use utoipa::ToSchema;

use super::network::Subnet;
use super::parts::{ClusterNetwork, Network};
use crate::inventory::{ClusterNetworks, Settings};

/// After how many hours without a change a cluster may be deleted. This service deletes none.
const INACTIVE_HOURS: i64 = 480;
/// Names that no host may have.
const FORBIDDEN_HOSTNAMES: [&str; 6] = [
    "localhost",
    "localhost.localdomain",
    "localhost4",
    "localhost4.localdomain4",
    "localhost6",
    "localhost6.localdomain6",
];

/// What clusters are made of where their owners say nothing.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = cluster_default_config)]
pub struct ClusterDefaults {
    /// The network of pods.
    pub cluster_network_cidr: Subnet,
    /// How many bits of it name a node.
    pub cluster_network_host_prefix: i64,
    /// The network of services.
    pub service_network_cidr: Subnet,
    /// After how many hours without a change a cluster may be deleted.
    pub inactive_deletion_hours: i64,
    /// The time server.
    pub ntp_source: String,
    /// The networks of pods.
    pub cluster_networks_ipv4: Vec<ClusterNetwork>,
    /// The networks of pods of a cluster with addresses of both kinds.
    pub cluster_networks_dualstack: Vec<ClusterNetwork>,
    /// The networks of services.
    pub service_networks_ipv4: Vec<Network>,
    /// The networks of services of a cluster with addresses of both kinds.
    pub service_networks_dualstack: Vec<Network>,
    /// Names that no host may have.
    pub forbidden_hostnames: [&'static str; FORBIDDEN_HOSTNAMES.len()],
}

impl ClusterDefaults {
    /// The defaults that an operator set.
    #[must_use]
    pub fn of(settings: &Settings) -> Self {
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
            forbidden_hostnames: FORBIDDEN_HOSTNAMES,
        }
    }
}

/// The network of pods.
pub(super) fn pod_network(networks: &ClusterNetworks) -> ClusterNetwork {
    let (cidr, host_prefix) = (Subnet(networks.cluster_cidr.clone()), i64::from(networks.host_prefix));
    ClusterNetwork { cluster_id: None, cidr, host_prefix }
}

/// The network of services.
pub(super) fn service_network(networks: &ClusterNetworks) -> Subnet {
    Subnet(networks.service_cidr.clone())
}
