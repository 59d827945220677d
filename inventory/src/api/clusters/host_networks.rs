//! The networks in which the hosts of a cluster have addresses.

use std::collections::{BTreeMap, BTreeSet};

use assisted::cluster::HostNetwork;

use crate::cluster::network_around;
use crate::id::HostId;

/// Maximum number of networks of one host in the response for a cluster. An agent may report 70,000 addresses.
const MAX_NETWORKS_OF_HOST: usize = 256;
/// Maximum number of networks in the response for a cluster.
const MAX_NETWORKS: usize = 1024;
/// Maximum total number of hosts in all networks of the response for a cluster. A host counts once for each of its
/// networks. At this limit, the hosts take 1 MiB of memory, and 2.5 MiB as JSON.
const MAX_NETWORK_HOSTS: usize = 64 << 10;

/// The networks in which hosts have addresses. Networks and hosts beyond the limits are omitted.
#[derive(Debug, Default)]
pub(super) struct HostNetworks {
    by_cidr: BTreeMap<String, Vec<HostId>>,
    /// Total number of hosts in `by_cidr`.
    hosts: usize,
}

impl HostNetworks {
    pub(super) fn add(&mut self, host: HostId, addresses: &[String]) {
        let mut of_host = BTreeSet::new();
        for network in addresses.iter().filter_map(|address| network_around(address)) {
            if of_host.len() == MAX_NETWORKS_OF_HOST {
                break;
            }
            of_host.insert(network.0);
        }
        for cidr in of_host {
            let is_known = self.by_cidr.contains_key(&cidr);
            if self.hosts < MAX_NETWORK_HOSTS && (is_known || self.by_cidr.len() < MAX_NETWORKS) {
                self.by_cidr.entry(cidr).or_default().push(host);
                self.hosts = self.hosts.saturating_add(1);
            }
        }
    }

    /// Returns the networks with the ids of their hosts. Both are sorted.
    pub(super) fn into_networks(self) -> Vec<HostNetwork> {
        let network = |(cidr, mut host_ids): (String, Vec<HostId>)| {
            host_ids.sort_unstable();
            // One machine may be a host of several infra-envs.
            host_ids.dedup();
            HostNetwork { cidr, host_ids }
        };
        self.by_cidr.into_iter().map(network).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cidr(number: usize) -> String {
        format!("10.{}.{}.0/24", number / 256, number % 256)
    }

    #[test]
    fn networks_are_in_order_without_duplicates() {
        let mut hosts = [HostId::fresh(), HostId::fresh()];
        hosts.sort();
        let mut networks = HostNetworks::default();
        for host in [hosts[1], hosts[0], hosts[1]] {
            networks
                .add(host, &["192.0.2.7/24".to_owned(), "192.0.2.8/24".to_owned(), "fe80::1/64".to_owned()]);
        }
        networks.add(hosts[0], &["10.0.0.1/8".to_owned(), "x".to_owned()]);
        let expected = [
            HostNetwork { cidr: "10.0.0.0/8".to_owned(), host_ids: vec![hosts[0]] },
            HostNetwork { cidr: "192.0.2.0/24".to_owned(), host_ids: hosts.to_vec() },
        ];
        assert_eq!(networks.into_networks(), expected);
    }

    #[test]
    fn networks_beyond_the_limits_are_omitted() {
        let mut networks = HostNetworks::default();
        // Ten hosts, each with different networks.
        for host in 0..10 {
            let addresses: Vec<_> = (host * 1000..host * 1000 + 1000).map(cidr).collect();
            networks.add(HostId::fresh(), &addresses);
        }
        assert_eq!(networks.by_cidr.len(), MAX_NETWORKS);
        assert_eq!(networks.hosts, MAX_NETWORKS);
        // Many hosts with the same networks. One of the networks is new.
        let cidrs: Vec<_> =
            (0..MAX_NETWORKS_OF_HOST - 1).map(cidr).chain(["192.0.2.0/24".to_owned()]).collect();
        for _ in 0..1000 {
            networks.add(HostId::fresh(), &cidrs);
        }
        assert_eq!((networks.by_cidr.len(), networks.hosts), (MAX_NETWORKS, MAX_NETWORK_HOSTS));
        let sorted = networks.into_networks();
        assert_eq!(sorted.iter().map(|network| network.host_ids.len()).sum::<usize>(), MAX_NETWORK_HOSTS);
    }
}
