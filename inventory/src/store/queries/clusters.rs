//! Searches for clusters that read no documents.

use uuid::Uuid;

use crate::store::session::Cells;
use crate::store::statements::records::{select_membership, select_stale_clusters};
use crate::store::values::decode_error;
use crate::store::{Store, StoreError};

impl dyn Store + '_ {
    /// Returns how many times hosts have joined or left a cluster.
    ///
    /// # Errors
    ///
    /// Returns an error if the database fails.
    pub async fn membership_changes(&self, cluster: Uuid) -> Result<i64, StoreError> {
        let changes = |row: &dyn Cells| row.integer("changes");
        let rows = self.rows("reading a membership", |_| select_membership(cluster), changes).await?;
        Ok(rows.first().copied().unwrap_or(0))
    }

    /// Returns at most `most` clusters in some statuses whose assessment is missing or outdated, in the order of their
    /// creation. An assessment is outdated if its basis is not `basis`, or if its [state](crate::store::AssessedState)
    /// differs from the current one. Deleted clusters are left out.
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
        // If the limit saturates, it still exceeds every number of clusters.
        let most = i64::try_from(most).unwrap_or(i64::MAX);
        let id = |row: &dyn Cells| {
            let id = row.text("id")?;
            id.parse().map_err(|_| decode_error("id", id))
        };
        self.rows("listing records", |dialect| select_stale_clusters(dialect, (statuses, basis), most), id)
            .await
    }
}
