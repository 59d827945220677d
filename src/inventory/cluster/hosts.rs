//! The hosts of a cluster.

use std::collections::{BTreeMap, BTreeSet};

use futures_util::{StreamExt, TryStreamExt};
use serde::Deserialize;
use serde_json::Value;

use super::model::{Cluster, HostCounts, Hosts};
use super::network::Subnet;
use super::parts::HostNetwork;
use super::record::ClusterRecord;
use crate::api_error::ApiError;
use crate::api_error::to_json;
use crate::inventory::Inventory;
use crate::inventory::host::{self, Host, HostStatus, Shown};
use crate::inventory::id::{ClusterId, HostId};
use crate::inventory::list::{Pieces, piece, separated};
use crate::inventory::store::Change;

/// How much of its hosts is shown with a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShownHosts {
    /// The hosts, with all that is known of them.
    InFull,
    /// The hosts as they are kept, which is how lists have them.
    AsKept,
    /// How many there are.
    Counted,
}

impl ShownHosts {
    fn of_each(self) -> Shown {
        if self == Self::InFull { Shown::InFull } else { Shown::AsKept }
    }
}

/// Hosts of a cluster whose texts have more bytes than this are read again while they are sent.
const MOST_KEPT: usize = 512 << 10;

/// What a cluster says of its hosts, and the texts of these, with commas between them, if they are short and asked for.
async fn summary(
    inventory: &Inventory,
    id: ClusterId,
    shown: ShownHosts,
) -> Result<(Hosts, Option<Vec<u8>>), ApiError> {
    let mut counts = HostCounts::default();
    let mut networks = BTreeMap::<String, BTreeSet<HostId>>::new();
    let mut texts = (shown != ShownHosts::Counted).then(Vec::new);
    let mut hosts = host::views_of_cluster(inventory, id, shown.of_each());
    while let Some(host) = hosts.try_next().await? {
        counts.total += 1;
        counts.ready += i64::from(host.status == HostStatus::Known);
        counts.enabled += i64::from(host.status != HostStatus::Disabled);
        if shown == ShownHosts::Counted {
            continue;
        }
        for network in addresses(&host).iter().filter_map(|address| Subnet::around(address)) {
            networks.entry(network.0).or_default().insert(host.id);
        }
        if let Some(all) = &mut texts {
            all.extend_from_slice(if all.is_empty() { b"" } else { b"," });
            all.append(&mut to_json(&host)?);
        }
        texts = texts.filter(|all| all.len() <= MOST_KEPT);
    }
    let network =
        |(cidr, ids): (String, BTreeSet<HostId>)| HostNetwork { cidr, host_ids: ids.into_iter().collect() };
    let networks = networks.into_iter().map(network).collect();
    Ok((Hosts { views: Vec::new(), networks, counts }, texts))
}

/// The hosts of a cluster with what it says of them.
pub(super) async fn of_cluster(inventory: &Inventory, id: ClusterId) -> Result<Hosts, ApiError> {
    let (hosts, _) = summary(inventory, id, ShownHosts::InFull).await?;
    let views = host::views_of_cluster(inventory, id, Shown::InFull);
    let views = views.map_ok(|host| serde_json::to_value(host).unwrap_or_default()).try_collect().await?;
    Ok(Hosts { views, ..hosts })
}

/// The text of a cluster as it is shown in answers. Many hosts are read while the client reads them: the counts before them
/// are those of a moment earlier.
pub(super) async fn text(
    inventory: &Inventory,
    record: ClusterRecord,
    shown: ShownHosts,
) -> Result<Pieces, ApiError> {
    let id = record.id;
    let (hosts, texts) = summary(inventory, id, shown).await?;
    if shown == ShownHosts::Counted || hosts.counts.total == 0 {
        return to_json(&Cluster::of(record, hosts)).map(piece);
    }
    let texts = texts.map_or_else(
        || {
            let views = host::views_of_cluster(inventory, id, shown.of_each());
            separated(views.map(|host| to_json(&host?).map(piece)))
        },
        piece,
    );
    let text = to_json(&Cluster::of(record, Hosts { views: vec![Value::Null], ..hosts }))?;
    let (start, end) = around_hosts(&text).ok_or_else(|| {
        tracing::error!(cluster = %id, "the text of a cluster has no place for its hosts");
        ApiError::internal("the service failed; its log says how")
    })?;
    Ok(piece(start).chain(texts).chain(piece(end)).boxed())
}

/// What the text of a cluster has before and after its hosts, which null stands for. No other list has this key.
fn around_hosts(text: &[u8]) -> Option<(&[u8], &[u8])> {
    const HOSTS: &[u8] = br#""hosts":[null]"#;
    let start = text.windows(HOSTS.len()).position(|window| window == HOSTS)? + br#""hosts":["#.len();
    Some((text.get(..start)?, text.get(start + b"null".len()..)?))
}

/// What of a machine says which networks it is in. A list that is not there is null.
#[derive(Debug, Deserialize)]
struct Machine {
    interfaces: Option<Vec<Interface>>,
}

#[derive(Debug, Deserialize)]
struct Interface {
    ipv4_addresses: Option<Vec<String>>,
    ipv6_addresses: Option<Vec<String>>,
}

/// The addresses that a host says it has.
fn addresses(host: &Host) -> Vec<String> {
    if host.inventory.is_empty() {
        return Vec::new();
    }
    match serde_json::from_str::<Machine>(&host.inventory) {
        Ok(machine) => {
            let lists = |one: Interface| [one.ipv4_addresses, one.ipv6_addresses];
            machine.interfaces.into_iter().flatten().flat_map(lists).flatten().flatten().collect()
        }
        Err(error) => {
            let (host, infra_env) = (host.id, host.infra_env_id);
            tracing::error!(%host, %infra_env, %error, "the inventory of a host cannot be read");
            Vec::new()
        }
    }
}

/// Lets the hosts of a cluster that is deleted go.
pub(super) async fn release(
    inventory: &Inventory,
    change: &mut Change,
    id: ClusterId,
) -> Result<(), ApiError> {
    host::release_hosts(inventory.records(), change, id).await
}
