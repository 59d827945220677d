//! The hosts of a cluster.

use std::collections::{BTreeMap, BTreeSet};

use futures_util::{StreamExt, TryStreamExt};
use serde_json::Value;

use super::model::{Cluster, Hosts};
use super::network::Subnet;
use super::parts::HostNetwork;
use super::record::ClusterRecord;
use crate::Inventory;
use crate::api::{ApiError, append_json, to_json, to_json_value};
use crate::api::{Pieces, piece, separated};
use crate::host::{self, HostCounts, Shown};
use crate::id::{ClusterId, HostId};
use crate::store::{Change, ReadSet};

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
    fn of_host(self) -> Shown {
        if self == Self::InFull { Shown::InFull } else { Shown::AsStored }
    }
}

/// If the texts of a cluster's hosts are longer, they are read again while they are sent.
const MAX_KEPT_TEXTS: usize = 512 << 10;

/// Returns what the answer for a cluster contains of its hosts. If hosts are requested and their texts are short, also
/// returns these texts, separated by commas.
async fn summary(
    inventory: &Inventory,
    id: ClusterId,
    shown: ShownHosts,
) -> Result<(Hosts, Option<Vec<u8>>), ApiError> {
    let mut counts = HostCounts::default();
    let mut networks = BTreeMap::<String, BTreeSet<HostId>>::new();
    let mut texts = Some(Vec::new());
    let mut hosts = host::views_of_cluster(inventory, id, shown.of_host(), host::ALL_SHOWN);
    while let Some(host) = hosts.try_next().await? {
        counts.add(host.status);
        for network in host.addresses()?.iter().filter_map(|address| Subnet::around(address)) {
            networks.entry(network.0).or_default().insert(host.id);
        }
        if let Some(all) = &mut texts {
            all.extend_from_slice(if all.is_empty() { b"" } else { b"," });
            append_json(all, &host)?;
        }
        texts = texts.filter(|all| all.len() <= MAX_KEPT_TEXTS);
    }
    let network =
        |(cidr, ids): (String, BTreeSet<HostId>)| HostNetwork { cidr, host_ids: ids.into_iter().collect() };
    let networks = networks.into_iter().map(network).collect();
    Ok((Hosts { views: Vec::new(), networks, counts }, texts))
}

/// Returns the hosts of a cluster with their networks and counts.
pub(super) async fn of_cluster(inventory: &Inventory, id: ClusterId) -> Result<Hosts, ApiError> {
    let (hosts, _) = summary(inventory, id, ShownHosts::InFull).await?;
    let views = host::views_of_cluster(inventory, id, Shown::InFull, host::ALL_SHOWN);
    let views = views.and_then(|host| std::future::ready(to_json_value("a host", &host)));
    let views = views.try_collect().await?;
    Ok(Hosts { views, ..hosts })
}

/// Returns the JSON text of a cluster. Many hosts are read while the client reads them: the counts before them are
/// those of a moment earlier.
pub(super) async fn text(
    inventory: &Inventory,
    record: ClusterRecord,
    shown: ShownHosts,
) -> Result<Pieces, ApiError> {
    let id = record.id;
    if shown == ShownHosts::Counted {
        let counts = host::host_counts(inventory, &[id]).await?;
        return to_json(&Cluster::from_record(record, Hosts::counted(counts.get(&id)))).map(piece);
    }
    let (hosts, texts) = summary(inventory, id, shown).await?;
    if hosts.counts.total == 0 {
        return to_json(&Cluster::from_record(record, hosts)).map(piece);
    }
    let texts = texts.map_or_else(
        || {
            let views = host::views_of_cluster(inventory, id, shown.of_host(), host::ALL_SHOWN);
            separated(views.map(|host| to_json(&host?).map(piece)))
        },
        piece,
    );
    let text = to_json(&Cluster::from_record(record, Hosts { views: vec![Value::Null], ..hosts }))?;
    let (start, end) = around_hosts(&text)
        .ok_or_else(|| ApiError::broken(format_args!("the text of cluster {id} has no list of hosts")))?;
    Ok(piece(start).chain(texts).chain(piece(end)).boxed())
}

/// Returns the JSON texts of a page of clusters with the numbers of their hosts, which one query counts.
pub(super) async fn counted_texts(
    inventory: &Inventory,
    records: Vec<ClusterRecord>,
) -> Result<Vec<Vec<u8>>, ApiError> {
    let ids: Vec<_> = records.iter().map(|record| record.id).collect();
    let counts = if ids.is_empty() { BTreeMap::new() } else { host::host_counts(inventory, &ids).await? };
    let text = |record: ClusterRecord| {
        let hosts = Hosts::counted(counts.get(&record.id));
        to_json(&Cluster::from_record(record, hosts))
    };
    records.into_iter().map(text).collect()
}

/// Splits the text of a cluster around its hosts, which are one `null`. No other list has this key.
fn around_hosts(text: &[u8]) -> Option<(&[u8], &[u8])> {
    const HOSTS: &[u8] = br#""hosts":[null]"#;
    let start = text.windows(HOSTS.len()).position(|window| window == HOSTS)? + br#""hosts":["#.len();
    Some((text.get(..start)?, text.get(start + b"null".len()..)?))
}

/// Releases the hosts of a cluster that is being deleted.
pub(super) async fn release(reads: &ReadSet, change: &mut Change, id: ClusterId) -> Result<(), ApiError> {
    host::release_hosts(reads, change, id).await
}
