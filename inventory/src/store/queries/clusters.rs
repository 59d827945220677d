//! Searches for clusters. They read no documents.

use uuid::Uuid;

use crate::store::session::Cells;
use crate::store::statements::records::{select_membership, select_stale_clusters};
use crate::store::values::decode_error;
use crate::store::{Store, StoreError};

impl dyn Store + '_ {
    /// Returns the number of changes of a cluster's hosts: how often a host has joined or left it.
    ///
    /// # Errors
    ///
    /// Returns an error if the database fails.
    pub async fn membership(&self, cluster: Uuid) -> Result<i64, StoreError> {
        let changes = |row: &dyn Cells| row.integer("changes");
        let rows = self.rows("reading a membership", |_| select_membership(cluster), changes).await?;
        Ok(rows.first().copied().unwrap_or(0))
    }

    /// Returns the clusters in some statuses whose assessment is missing, has another basis, or has seen another
    /// [state](crate::store::AssessedState) than the current one. Returns at most `most` of them, in the order of their
    /// creation, without deleted clusters.
    ///
    /// # Errors
    ///
    /// Returns an error if the database fails.
    pub async fn stale_clusters(
        &self,
        statuses: &[&str],
        basis: &str,
        most: usize,
    ) -> Result<Vec<Uuid>, StoreError> {
        // A larger number of clusters does not exist.
        let most = i64::try_from(most).unwrap_or(i64::MAX);
        let id = |row: &dyn Cells| {
            let id = row.text("id")?;
            id.parse().map_err(|_| decode_error("id", id))
        };
        self.rows("listing records", |dialect| select_stale_clusters(dialect, (statuses, basis), most), id)
            .await
    }
}
