//! Searches for hosts that read no documents.

use chrono::{DateTime, Utc};
use uuid::Uuid;

use crate::id::{ClusterId, HostId};
use crate::store::session::Cells;
use crate::store::statements::records::{
    select_deleted_of_cluster, select_host_counts, select_in_cluster, select_silent, select_with_mac,
};
use crate::store::values::{decode_error, unsigned};
use crate::store::{HostCount, Key, Kind, Store, StoreError};

impl dyn Store + '_ {
    /// Returns at most `most` hosts in a status whose last check-in was before a time, the longest silent first.
    ///
    /// # Errors
    ///
    /// Returns an error if the database fails.
    pub async fn silent_hosts(
        &self,
        status: &str,
        before: DateTime<Utc>,
        most: usize,
    ) -> Result<Vec<Key>, StoreError> {
        // If the limit saturates, it still exceeds every number of hosts.
        let most = i64::try_from(most).unwrap_or(i64::MAX);
        self.keys(Kind::Host, |_| select_silent(status, before.timestamp_micros(), most)).await
    }

    /// Returns the hosts that have a network interface with this MAC address.
    ///
    /// # Errors
    ///
    /// Returns an error if the database fails.
    pub async fn hosts_with_mac(&self, mac: &str) -> Result<Vec<Key>, StoreError> {
        self.keys(Kind::Host, |_| select_with_mac(mac)).await
    }

    /// Returns the given hosts that are in a cluster, in the order of their creation. Deleted hosts are left out.
    ///
    /// # Errors
    ///
    /// Returns an error if the database fails.
    pub async fn hosts_in_cluster(
        &self,
        cluster: ClusterId,
        hosts: &[HostId],
    ) -> Result<Vec<Key>, StoreError> {
        self.keys(Kind::Host, |dialect| select_in_cluster(cluster, hosts, dialect)).await
    }

    /// Returns the deleted hosts of a cluster that the database still contains, in the order of their creation.
    ///
    /// # Errors
    ///
    /// Returns an error if the database fails.
    pub async fn deleted_hosts(&self, cluster: ClusterId) -> Result<Vec<HostId>, StoreError> {
        let id = |row: &dyn Cells| {
            let id = row.text("id")?;
            id.parse().map(HostId).map_err(|_| decode_error("id", id))
        };
        self.rows("listing records", |_| select_deleted_of_cluster(cluster), id).await
    }

    /// Returns the numbers of hosts in these clusters. Each number covers one cluster, one status, and either deleted
    /// or other hosts.
    ///
    /// # Errors
    ///
    /// Returns an error if the database fails.
    pub async fn host_counts(&self, clusters: &[Uuid]) -> Result<Vec<HostCount>, StoreError> {
        let count = |row: &dyn Cells| {
            let cluster = row.text("cluster_id")?;
            Ok(HostCount {
                cluster: cluster.parse().map_err(|_| decode_error("id", cluster))?,
                status: row.text("status")?.to_owned(),
                deleted: row.integer("deleted")? != 0,
                hosts: unsigned("count", row.integer("hosts")?)?,
            })
        };
        self.rows("counting records", |dialect| select_host_counts(clusters, dialect), count).await
    }
}
