//! The hosts of a cluster in a response.

use std::collections::BTreeMap;

use assisted::cluster::HostNetwork;

use crate::Inventory;
use crate::api::hosts::view::HostDetail;
use crate::error::Error;
use crate::id::ClusterId;
use crate::service::hosts::counts::{DeletedHosts, HostCounts};

/// How a response shows the hosts of a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ShownHosts {
    /// With derived fields.
    InFull,
    /// Without derived fields, as in lists.
    AsStored,
    /// Only their number.
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

/// The numbers of hosts of some clusters.
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

    /// Returns the hosts of a cluster. A cluster that the query does not return has no hosts.
    pub(super) fn of_cluster(&self, id: ClusterId) -> Hosts {
        Hosts { counts: self.0.get(&id).copied().unwrap_or_default(), ..Hosts::default() }
    }
}
