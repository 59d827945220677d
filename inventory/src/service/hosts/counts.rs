//! Numbers of hosts of clusters.

use std::collections::BTreeMap;

use assisted::Extensible;

use crate::Inventory;
use crate::error::Error;
use crate::host::HostStatus;
use crate::id::ClusterId;

/// Numbers of hosts of a cluster.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct HostCounts {
    /// Hosts that are ready to be installed.
    pub(crate) ready: i64,
    /// Hosts that are enabled for installation.
    pub(crate) enabled: i64,
    /// All hosts.
    pub(crate) total: i64,
}

impl HostCounts {
    /// Counts a host with this status.
    pub(crate) fn add(&mut self, status: &Extensible<HostStatus>) {
        self.total += 1;
        self.ready += i64::from(*status == HostStatus::Known);
        self.enabled += i64::from(*status != HostStatus::Disabled);
    }
}

/// Whether a response contains deleted hosts of a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DeletedHosts {
    Omitted,
    Included,
}

impl Inventory {
    /// Returns the number of hosts of each cluster that has any. One query counts them without reading the hosts.
    pub(crate) async fn host_counts(
        &self,
        clusters: &[ClusterId],
        deleted: DeletedHosts,
    ) -> Result<BTreeMap<ClusterId, HostCounts>, Error> {
        let ids: Vec<_> = clusters.iter().map(|id| id.0).collect();
        let mut counts = BTreeMap::<_, HostCounts>::new();
        let found = self.records().host_counts(&ids).await?;
        for found in found.into_iter().filter(|found| deleted == DeletedHosts::Included || !found.deleted) {
            // More than `i64::MAX` hosts cannot be stored.
            let hosts = i64::try_from(found.hosts).unwrap_or(i64::MAX);
            let of_cluster = counts.entry(ClusterId(found.cluster)).or_default();
            of_cluster.total += hosts;
            if found.status == HostStatus::Known.as_str() {
                of_cluster.ready += hosts;
            }
            if found.status != HostStatus::Disabled.as_str() {
                of_cluster.enabled += hosts;
            }
        }
        Ok(counts)
    }
}
