//! Searches for records of all kinds that read no documents.

use uuid::Uuid;

use crate::id::ClusterId;
use crate::store::session::{Cells, Dialect, Statement};
use crate::store::statements::records::{
    find, row_key, select_any, select_cluster, select_count, select_deleted, select_with_other_token_key,
};
use crate::store::values::{id_of, unsigned};
use crate::store::{Filter, Key, Kind, Store, StoreError};

impl dyn Store + '_ {
    /// Returns `true` if a record exists and is not deleted.
    ///
    /// # Errors
    ///
    /// Returns an error if the database fails.
    pub async fn exists(&self, key: Key) -> Result<bool, StoreError> {
        self.has_row("looking for a record", |_| find(key)).await
    }

    /// Returns `true` if any record matches the filter.
    ///
    /// # Errors
    ///
    /// Returns an error if the database fails.
    pub async fn has_any(&self, filter: Filter) -> Result<bool, StoreError> {
        self.has_row("looking for records", |_| select_any(filter)).await
    }

    /// Returns the number of records that match the filter.
    ///
    /// # Errors
    ///
    /// Returns an error if the database fails.
    pub async fn count(&self, filter: Filter) -> Result<u64, StoreError> {
        let count = |row: &dyn Cells| unsigned("count", row.integer("found")?);
        let counts = self.rows("counting records", |_| select_count(filter), count).await?;
        Ok(counts.into_iter().sum())
    }

    /// Returns the cluster of a record. Returns `None` if the record is in no cluster, is deleted, or does not exist.
    ///
    /// # Errors
    ///
    /// Returns an error if the database fails.
    pub async fn cluster_of(&self, key: Key) -> Result<Option<ClusterId>, StoreError> {
        let cluster = |row: &dyn Cells| row.optional_text("cluster_id")?.map_or(Ok(None), id_of);
        let cluster_id = self.first_row("reading a record", |_| select_cluster(key), cluster).await?;
        Ok(cluster_id.flatten().map(ClusterId))
    }

    /// Returns the deleted records of a kind that the database still contains.
    ///
    /// # Errors
    ///
    /// Returns an error if the database fails.
    pub async fn deleted(&self, kind: Kind) -> Result<Vec<Key>, StoreError> {
        self.keys(kind, |_| select_deleted(kind)).await
    }

    /// Returns the records of a kind whose URL token is signed with a key other than `key`. If `key` is `None`, returns
    /// the records that have any token.
    ///
    /// # Errors
    ///
    /// Returns an error if the database fails.
    pub async fn with_other_token_key(&self, kind: Kind, key: Option<Uuid>) -> Result<Vec<Key>, StoreError> {
        self.keys(kind, |_| select_with_other_token_key(kind, key)).await
    }

    /// Returns the keys that the result rows of a statement contain.
    pub(super) async fn keys(
        &self,
        kind: Kind,
        statement: impl Fn(Dialect) -> Statement + Send + Sync,
    ) -> Result<Vec<Key>, StoreError> {
        self.rows("listing records", statement, |row| row_key(kind, row)).await
    }
}
