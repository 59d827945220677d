//! The hosts of a cluster.

use super::model::Hosts;
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
#[expect(clippy::unused_async, reason = "hosts are not kept yet")]
pub(super) async fn of_cluster(
    _inventory: &Inventory,
    _id: ClusterId,
    _shown: ShownHosts,
) -> Result<Hosts, Refusal> {
    Ok(Hosts::default())
}

/// Lets the hosts of a cluster that is deleted go.
#[expect(clippy::unused_async, reason = "hosts are not kept yet")]
pub(super) async fn release(
    _inventory: &Inventory,
    _change: &mut Change,
    _id: ClusterId,
) -> Result<(), Refusal> {
    Ok(())
}
