//! The hosts in the response for a cluster.

use std::collections::BTreeMap;

use assisted::cluster::HostNetwork;
use assisted::host::Host;

use super::host_networks::HostNetworks;
use crate::Inventory;
use crate::api::hosts::view::{HostDetail, addresses};
use crate::error::Error;
use crate::id::ClusterId;
use crate::service::hosts::counts::{DeletedHosts, HostCounts};

/// The representation of hosts in the response for a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShownHosts {
    /// With derived fields.
    InFull,
    /// Without derived fields, as in lists.
    AsStored,
    /// Only the number of hosts.
    Counted,
}

impl ShownHosts {
    pub(super) fn host_detail(self) -> HostDetail {
        if self == Self::InFull { HostDetail::InFull } else { HostDetail::AsStored }
    }
}

/// The networks of a cluster's hosts, and the number of these hosts.
#[derive(Clone, Debug, Default)]
pub(super) struct Hosts {
    pub(super) networks: Vec<HostNetwork>,
    pub(super) counts: HostCounts,
}

/// A collector of the number and the networks of a cluster's hosts.
#[derive(Debug, Default)]
pub(super) struct HostSummary {
    counts: HostCounts,
    networks: HostNetworks,
}

impl HostSummary {
    /// Adds a host.
    ///
    /// # Errors
    ///
    /// Returns an error if the inventory report of the host is damaged.
    pub(super) fn add(&mut self, host: &Host) -> Result<(), Error> {
        self.counts.add(&host.status);
        self.networks.add(host.id, &addresses(host)?);
        Ok(())
    }

    pub(super) fn into_hosts(self) -> Hosts {
        Hosts { counts: self.counts, networks: self.networks.into_networks() }
    }
}

/// The host counts of several clusters.
#[derive(Debug)]
pub(super) struct CountedHosts(BTreeMap<ClusterId, HostCounts>);

impl CountedHosts {
    /// Counts the hosts of these clusters with one query.
    ///
    /// # Errors
    ///
    /// Returns an error if the database fails.
    pub(super) async fn read(
        inventory: &Inventory,
        clusters: &[ClusterId],
        deleted: DeletedHosts,
    ) -> Result<Self, Error> {
        inventory.host_counts(clusters, deleted).await.map(Self)
    }

    /// Returns the hosts of a cluster. A cluster missing from the result of the query has no hosts.
    pub(super) fn of_cluster(&self, id: ClusterId) -> Hosts {
        Hosts { counts: self.0.get(&id).copied().unwrap_or_default(), ..Hosts::default() }
    }
}
