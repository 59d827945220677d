//! The hosts of a cluster.

use super::model::{HostCounts, Hosts};
use crate::inventory::host::{self, Host, HostStatus, Shown};
use crate::inventory::id::ClusterId;
use crate::inventory::store::Change;
use crate::inventory::{Inventory, Refusal};

/// How much of its hosts is shown with a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShownHosts {
    /// The hosts themselves.
    All,
    /// How many there are.
    Counted,
}

/// The hosts of a cluster.
pub(super) async fn of_cluster(
    inventory: &Inventory,
    id: ClusterId,
    shown: ShownHosts,
) -> Result<Hosts, Refusal> {
    let hosts = host::views_of_cluster(inventory, id, Shown::InFull).await?;
    let count = |counts: &dyn Fn(&HostStatus) -> bool| {
        i64::try_from(hosts.iter().filter(|host| counts(&host.status)).count()).unwrap_or(i64::MAX)
    };
    let counts = HostCounts {
        ready: count(&|status| *status == HostStatus::Known),
        enabled: count(&|status| *status != HostStatus::Disabled),
        total: count(&|_| true),
    };
    let view = |host: &Host| serde_json::to_value(host).unwrap_or_default();
    let views = if shown == ShownHosts::All { hosts.iter().map(view).collect() } else { Vec::new() };
    Ok(Hosts { views, counts })
}

/// Lets the hosts of a cluster that is deleted go.
pub(super) async fn release(
    inventory: &Inventory,
    change: &mut Change,
    id: ClusterId,
) -> Result<(), Refusal> {
    host::release_hosts(inventory.records(), change, id).await
}
