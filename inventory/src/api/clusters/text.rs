//! The hosts of a cluster.

use std::collections::{BTreeMap, BTreeSet};

use futures_util::{StreamExt, TryStreamExt};

use crate::Inventory;
use crate::api::clusters::model::{Cluster, Hosts};
use crate::api::hosts::view::{HostDetail, views_of_cluster};
use crate::api::{JsonPieces, comma_separated, json_piece};
use crate::cluster::Subnet;
use crate::cluster::parts::HostNetwork;
use crate::cluster::record::ClusterRecord;
use crate::error::Error;
use crate::id::{ClusterId, HostId};
use crate::json::{append_json, to_json};
use crate::service::hosts::counts::{DeletedHosts, HostCounts};

/// How a response shows the hosts of a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ShownHosts {
    /// With derived fields.
    InFull,
    /// Without derived fields, as in lists.
    AsStored,
    /// Only their number.
    Counted,
}

impl ShownHosts {
    fn host_detail(self) -> HostDetail {
        if self == Self::InFull { HostDetail::InFull } else { HostDetail::AsStored }
    }
}

/// If the texts of a cluster's hosts are longer, they are read again while they are sent.
const MAX_KEPT_TEXTS: usize = 512 << 10;

/// The most networks of one host in the answer for a cluster. The report of an agent may have 70,000 addresses.
const MAX_NETWORKS_OF_HOST: usize = 256;
/// The most networks in the answer for a cluster.
const MAX_NETWORKS: usize = 1024;
/// The most hosts of all networks in the answer for a cluster; a host counts once for each of its networks. They take
/// 1 MiB, and 2.5 MiB as JSON.
const MAX_NETWORK_HOSTS: usize = 64 << 10;

/// The networks that hosts have addresses in. Networks and hosts beyond the limits are left out.
#[derive(Debug, Default)]
struct HostNetworks {
    by_cidr: BTreeMap<String, Vec<HostId>>,
    /// The number of all hosts in `by_cidr`.
    hosts: usize,
}

impl HostNetworks {
    /// Adds a host with its addresses.
    fn add(&mut self, host: HostId, addresses: &[String]) {
        let mut of_host = BTreeSet::new();
        for network in addresses.iter().filter_map(|address| Subnet::around(address)) {
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

    /// Returns the networks with the ids of their hosts, both in order.
    fn into_networks(self) -> Vec<HostNetwork> {
        let network = |(cidr, mut host_ids): (String, Vec<HostId>)| {
            host_ids.sort_unstable();
            // A machine may be a host of several infra-envs.
            host_ids.dedup();
            HostNetwork { cidr, host_ids }
        };
        self.by_cidr.into_iter().map(network).collect()
    }
}

/// Returns what the answer for a cluster contains of its hosts. If hosts are requested and their texts are short, also
/// returns these texts, separated by commas.
async fn summary(
    inventory: &Inventory,
    id: ClusterId,
    shown: ShownHosts,
    deleted: DeletedHosts,
) -> Result<(Hosts, Option<Vec<u8>>), Error> {
    let mut counts = HostCounts::default();
    let mut networks = HostNetworks::default();
    let mut texts = Some(Vec::new());
    let mut hosts = views_of_cluster(inventory, id, shown.host_detail(), deleted);
    while let Some(host) = hosts.try_next().await? {
        counts.add(host.status);
        networks.add(host.id, &host.addresses()?);
        if let Some(all) = &mut texts {
            all.extend_from_slice(if all.is_empty() { b"" } else { b"," });
            append_json(all, &host)?;
        }
        texts = texts.filter(|all| all.len() <= MAX_KEPT_TEXTS);
    }
    Ok((Hosts { networks: networks.into_networks(), counts }, texts))
}

/// Returns the JSON text of a cluster. Many hosts are read while the client reads them: the counts before them are
/// those of a moment earlier.
pub(crate) async fn text(
    inventory: &Inventory,
    record: ClusterRecord,
    shown: ShownHosts,
    deleted: DeletedHosts,
) -> Result<JsonPieces, Error> {
    let (id, settings) = (record.id, inventory.settings());
    if shown == ShownHosts::Counted {
        let counts = inventory.host_counts(&[id], deleted).await?;
        return to_json(&Cluster::from_record(record, Hosts::counted(counts.get(&id)), settings))
            .map(json_piece);
    }
    let (hosts, texts) = summary(inventory, id, shown, deleted).await?;
    if hosts.counts.total == 0 {
        return to_json(&Cluster::from_record(record, hosts, settings)).map(json_piece);
    }
    let texts = texts.map_or_else(
        || {
            let views = views_of_cluster(inventory, id, shown.host_detail(), deleted);
            comma_separated(views.map(|host| to_json(&host?).map(json_piece)))
        },
        json_piece,
    );
    let text = to_json(&Cluster { hosts: vec![()], ..Cluster::from_record(record, hosts, settings) })?;
    let (start, end) = around_hosts(&text)
        .ok_or_else(|| Error::broken(format_args!("the JSON of cluster {id} has no list of hosts")))?;
    Ok(json_piece(start).chain(texts).chain(json_piece(end)).boxed())
}

/// Returns the JSON texts of a page of clusters with the numbers of their hosts, which one query counts.
pub(crate) async fn counted_texts(
    inventory: &Inventory,
    records: Vec<ClusterRecord>,
    deleted: DeletedHosts,
) -> Result<Vec<Vec<u8>>, Error> {
    let ids: Vec<_> = records.iter().map(|record| record.id).collect();
    let counts = if ids.is_empty() { BTreeMap::new() } else { inventory.host_counts(&ids, deleted).await? };
    let settings = inventory.settings();
    let text = |record: ClusterRecord| {
        let hosts = Hosts::counted(counts.get(&record.id));
        to_json(&Cluster::from_record(record, hosts, settings))
    };
    records.into_iter().map(text).collect()
}

/// Splits the text of a cluster around its hosts, which are one `null`. No other list has this key.
fn around_hosts(text: &[u8]) -> Option<(&[u8], &[u8])> {
    const HOSTS: &[u8] = br#""hosts":[null]"#;
    let start = text.windows(HOSTS.len()).position(|window| window == HOSTS)? + br#""hosts":["#.len();
    Some((text.get(..start)?, text.get(start + b"null".len()..)?))
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
    fn networks_beyond_the_limits_are_left_out() {
        let mut networks = HostNetworks::default();
        // Ten hosts with other networks each.
        for host in 0..10 {
            let addresses: Vec<_> = (host * 1000..host * 1000 + 1000).map(cidr).collect();
            networks.add(HostId::fresh(), &addresses);
        }
        assert_eq!(networks.by_cidr.len(), MAX_NETWORKS);
        assert_eq!(networks.hosts, MAX_NETWORKS);
        // Many hosts with the same networks, of which one is new.
        let known: Vec<_> =
            (0..MAX_NETWORKS_OF_HOST - 1).map(cidr).chain(["192.0.2.0/24".to_owned()]).collect();
        for _ in 0..1000 {
            networks.add(HostId::fresh(), &known);
        }
        assert_eq!((networks.by_cidr.len(), networks.hosts), (MAX_NETWORKS, MAX_NETWORK_HOSTS));
        let shown = networks.into_networks();
        assert_eq!(shown.iter().map(|network| network.host_ids.len()).sum::<usize>(), MAX_NETWORK_HOSTS);
    }
}
