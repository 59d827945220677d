//! Default settings of new clusters, as the API returns them.

use assisted::cluster::ClusterDefaults;

use crate::Settings;
use crate::cluster::Network;
use crate::cluster::defaults::{pod_network, service_network};
use rules::validation::host::hostname_valid::FORBIDDEN_HOSTNAMES;

/// Number of hours without a change after which a cluster can be deleted. This service never deletes inactive clusters.
const INACTIVE_HOURS: i64 = 480;

/// Returns the default settings of new clusters.
pub(super) fn cluster_defaults(settings: &Settings) -> ClusterDefaults {
    let (v4, v6) = (&settings.cluster_networks, &settings.cluster_networks_v6);
    let service = |networks| Network { cluster_id: None, cidr: service_network(networks) };
    ClusterDefaults {
        cluster_network_cidr: pod_network(v4).cidr,
        cluster_network_host_prefix: pod_network(v4).host_prefix,
        service_network_cidr: service_network(v4),
        inactive_deletion_hours: INACTIVE_HOURS,
        ntp_source: settings.default_ntp_source.clone(),
        cluster_networks_ipv4: vec![pod_network(v4)],
        cluster_networks_dualstack: vec![pod_network(v4), pod_network(v6)],
        service_networks_ipv4: vec![service(v4)],
        service_networks_dualstack: vec![service(v4), service(v6)],
        forbidden_hostnames: FORBIDDEN_HOSTNAMES.map(str::to_owned).into(),
    }
}
