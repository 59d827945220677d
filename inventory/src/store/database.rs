//! The interface of a database of records and events.

use std::collections::BTreeSet;
use std::fmt;

use async_trait::async_trait;

use super::query::Query;
use super::{Changes, Feed, Filter, Key, Outcome, PageQuery, Row, RowPage, StoreError, StoreMetrics};

/// A transaction that has locked records for one change.
#[async_trait]
pub trait Reservation: fmt::Debug + Send {
    /// Commits the change, or writes nothing, and releases the locks.
    async fn commit(self: Box<Self>, changes: Changes) -> Result<Outcome, StoreError>;
}

/// A database of records and events.
#[async_trait]
pub trait Store: fmt::Debug + Send + Sync {
    /// Returns the record with this key, even if it is deleted.
    async fn get(&self, key: Key) -> Result<Option<Row>, StoreError>;

    /// Returns the records that match a filter, in the order of their creation.
    async fn list(&self, filter: Filter) -> Result<Vec<Row>, StoreError>;

    /// Returns one page of the records that match a filter, in the order of their creation. No database resources are
    /// held between pages, so records may be added or removed meanwhile.
    ///
    /// A host and its reports are from the same change.
    async fn page(&self, query: PageQuery) -> Result<RowPage, StoreError>;

    /// Runs a query other than a list. The methods of `dyn Store` build the queries, for example
    /// [`exists`](#method.exists).
    async fn query(&self, query: Query<'_>) -> Result<(), StoreError>;

    /// Makes a change completely or not at all. After a successful return, the change is on disk.
    async fn commit(&self, changes: Changes) -> Result<Outcome, StoreError>;

    /// Locks records against changes by other processes until the reservation is committed or dropped. Returns `None`
    /// if no other process can change records, or if the lock was not granted.
    ///
    /// A change that repeatedly conflicts with other processes reserves its records before it reads them.
    async fn reserve(&self, keys: &BTreeSet<Key>) -> Result<Option<Box<dyn Reservation>>, StoreError>;

    /// Returns the measurements of this store.
    fn metrics(&self) -> &StoreMetrics;

    /// Returns the change feed.
    fn feed(&self) -> &Feed;

    /// Returns `true` if no other process and no other store of this process can change the records.
    fn is_alone(&self) -> bool;

    /// Checks that the database allows the reads and writes that requests need. Changes nothing, writes nothing to the
    /// disk, and waits only briefly for locked tables.
    async fn check_usable(&self) -> Result<(), StoreError>;

    /// Completes pending changes and closes the database.
    async fn close(&self);
}
