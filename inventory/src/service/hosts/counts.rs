//! Counts the hosts of clusters.

use std::collections::BTreeMap;

use assisted::Extensible;

use crate::Inventory;
use crate::error::Error;
use crate::host::HostStatus;
use crate::id::ClusterId;

/// The numbers of hosts of one cluster, as the API returns them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct HostCounts {
    /// Number of hosts that are ready to be installed.
    pub(crate) ready: i64,
    /// Number of hosts enabled for installation.
    pub(crate) enabled: i64,
    pub(crate) total: i64,
}

impl HostCounts {
    /// Counts one more host with this status.
    pub(crate) fn add(&mut self, status: &Extensible<HostStatus>) {
        self.total += 1;
        self.ready += i64::from(*status == HostStatus::Known);
        self.enabled += i64::from(*status != HostStatus::Disabled);
    }
}

/// Whether a response includes the deleted hosts of a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DeletedHosts {
    Omitted,
    Included,
}

impl Inventory {
    /// Returns the numbers of hosts for each cluster that has hosts. A single query counts them without reading the
    /// hosts.
    pub(crate) async fn host_counts(
        &self,
        clusters: &[ClusterId],
        deleted: DeletedHosts,
    ) -> Result<BTreeMap<ClusterId, HostCounts>, Error> {
        let ids: Vec<_> = clusters.iter().map(|id| id.0).collect();
        let mut counts = BTreeMap::<_, HostCounts>::new();
        let groups = self.records().host_counts(&ids).await?;
        for group in groups.into_iter().filter(|group| deleted == DeletedHosts::Included || !group.deleted) {
            // Never saturates: that many hosts cannot be stored.
            let hosts = i64::try_from(group.hosts).unwrap_or(i64::MAX);
            let of_cluster = counts.entry(ClusterId(group.cluster)).or_default();
            of_cluster.total += hosts;
            if group.status == HostStatus::Known.as_str() {
                of_cluster.ready += hosts;
            }
            if group.status != HostStatus::Disabled.as_str() {
                of_cluster.enabled += hosts;
            }
        }
        Ok(counts)
    }
}
