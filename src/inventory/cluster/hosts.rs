//! The hosts of a cluster.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;

use super::model::{HostCounts, Hosts};
use super::network::Subnet;
use super::parts::HostNetwork;
use crate::inventory::host::{self, Host, HostStatus, Shown};
use crate::inventory::id::{ClusterId, HostId};
use crate::inventory::store::Change;
use crate::inventory::{Inventory, Refusal};

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

/// The hosts of a cluster.
pub(super) async fn of_cluster(
    inventory: &Inventory,
    id: ClusterId,
    shown: ShownHosts,
) -> Result<Hosts, Refusal> {
    let names = if shown == ShownHosts::InFull { Shown::InFull } else { Shown::AsKept };
    let hosts = host::views_of_cluster(inventory, id, names).await?;
    let count = |counts: &dyn Fn(&HostStatus) -> bool| {
        i64::try_from(hosts.iter().filter(|host| counts(&host.status)).count()).unwrap_or(i64::MAX)
    };
    let counts = HostCounts {
        ready: count(&|status| *status == HostStatus::Known),
        enabled: count(&|status| *status != HostStatus::Disabled),
        total: count(&|_| true),
    };
    if shown == ShownHosts::Counted {
        return Ok(Hosts { counts, ..Hosts::default() });
    }
    let view = |host: &Host| serde_json::to_value(host).unwrap_or_default();
    Ok(Hosts { views: hosts.iter().map(view).collect(), networks: networks(&hosts), counts })
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

/// The networks that hosts say they are in.
fn networks(hosts: &[Host]) -> Vec<HostNetwork> {
    let mut found = BTreeMap::<String, BTreeSet<HostId>>::new();
    for host in hosts {
        for network in addresses(host).iter().filter_map(|address| Subnet::around(address)) {
            found.entry(network.0).or_default().insert(host.id);
        }
    }
    let network =
        |(cidr, ids): (String, BTreeSet<HostId>)| HostNetwork { cidr, host_ids: ids.into_iter().collect() };
    found.into_iter().map(network).collect()
}

/// Lets the hosts of a cluster that is deleted go.
pub(super) async fn release(
    inventory: &Inventory,
    change: &mut Change,
    id: ClusterId,
) -> Result<(), Refusal> {
    host::release_hosts(inventory.records(), change, id).await
}
