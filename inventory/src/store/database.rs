//! The traits of a database of records and events.

use std::collections::BTreeSet;
use std::fmt;

use async_trait::async_trait;

use super::query::Query;
use super::{Changes, Feed, Filter, Key, Outcome, PageQuery, Row, RowPage, StoreError, StoreMetrics};

/// Records that are locked for one change.
#[async_trait]
pub trait Reservation: fmt::Debug + Send {
    /// Writes all or nothing of a change, and releases the locks.
    async fn commit(self: Box<Self>, changes: Changes) -> Result<Outcome, StoreError>;
}

/// A database of records and events.
#[async_trait]
pub trait Store: fmt::Debug + Send + Sync {
    /// Returns a record, even if it is deleted.
    async fn get(&self, key: Key) -> Result<Option<Row>, StoreError>;

    /// Returns records in the order of their creation.
    async fn list(&self, filter: Filter) -> Result<Vec<Row>, StoreError>;

    /// Returns one page of that list. No database resources are held between pages, so records may be added and
    /// removed.
    ///
    /// A host and its reports are from the same change.
    async fn page(&self, query: PageQuery) -> Result<RowPage, StoreError>;

    /// Runs another query. The functions of `dyn Store` make queries, for example [`exists`](#method.exists).
    async fn query(&self, query: Query<'_>) -> Result<(), StoreError>;

    /// Writes all or nothing of a change. When it returns, the change is on disk.
    async fn commit(&self, changes: Changes) -> Result<Outcome, StoreError>;

    /// Locks records against changes of other processes, until the reservation is committed or dropped. Returns `None`
    /// if no other process can change records, or if the lock was not granted.
    ///
    /// A change that other processes overtake again and again reserves its records before it reads them.
    async fn reserve(&self, keys: &BTreeSet<Key>) -> Result<Option<Box<dyn Reservation>>, StoreError>;

    /// Returns the measurements of this store.
    fn metrics(&self) -> &StoreMetrics;

    /// Returns the change feed.
    fn feed(&self) -> &Feed;

    /// Returns `true` if only this store can change the records: no other process, and no other store of this process.
    fn is_alone(&self) -> bool;

    /// Checks that the database can do what requests need: read the tables and change them. Changes nothing, writes
    /// nothing to the disk, and waits only briefly for locked tables.
    async fn check_usable(&self) -> Result<(), StoreError>;

    /// Completes pending changes and closes the database.
    async fn close(&self);
}
