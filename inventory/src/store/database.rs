//! The traits of a database of records and events.

use std::collections::BTreeSet;
use std::fmt;
use std::time::Duration;

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use uuid::Uuid;

use super::{
    Changes, CheckIn, CheckInLimit, Feed, Filter, HostCount, Key, Kind, Outcome, PageQuery, ReportKinds,
    Reports, Row, RowPage, StoreError, StoreMetrics,
};
use crate::event::{EventPage, EventPosition, EventQuery};
use crate::id::{ClusterId, HostId};

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

    /// Returns reports of a host.
    async fn reports(&self, host: Key, kinds: ReportKinds) -> Result<Reports, StoreError>;

    /// Returns the hosts in a status whose last check-in was before a time, at most `most` of them, the longest silent
    /// first.
    async fn silent_hosts(
        &self,
        status: &str,
        before: DateTime<Utc>,
        most: usize,
    ) -> Result<Vec<Key>, StoreError>;

    /// Returns the hosts that have an interface with a MAC address.
    async fn hosts_with_mac(&self, mac: &str) -> Result<Vec<Key>, StoreError>;

    /// Returns the number of records that match a filter.
    async fn count(&self, filter: Filter) -> Result<u64, StoreError>;

    /// Returns the numbers of hosts of these clusters, by cluster, status, and whether they are deleted.
    async fn host_counts(&self, clusters: &[Uuid]) -> Result<Vec<HostCount>, StoreError>;

    /// Returns those of these hosts that are in a cluster, without deleted hosts, in the order of their creation. Reads
    /// no documents.
    async fn hosts_in_cluster(&self, cluster: ClusterId, hosts: &[HostId]) -> Result<Vec<Key>, StoreError>;

    /// Returns the deleted hosts of a cluster that are still kept, in the order of their creation.
    async fn deleted_hosts(&self, cluster: ClusterId) -> Result<Vec<HostId>, StoreError>;

    /// Returns the records of a kind whose token is signed with another key. Without a key, those with any token.
    async fn with_other_token_key(&self, kind: Kind, key: Option<Uuid>) -> Result<Vec<Key>, StoreError>;

    /// Returns the records of a kind that are deleted but still kept.
    async fn deleted(&self, kind: Kind) -> Result<Vec<Key>, StoreError>;

    /// Returns the cluster of a record that is not deleted. Reads no document.
    async fn cluster_of(&self, key: Key) -> Result<Option<ClusterId>, StoreError>;

    /// Returns `true` if a record exists and is not deleted.
    async fn exists(&self, key: Key) -> Result<bool, StoreError>;

    /// Returns `true` if any record matches a filter.
    async fn has_any(&self, filter: Filter) -> Result<bool, StoreError>;

    /// Writes all or nothing of a change. When it returns, the change is on disk.
    async fn commit(&self, changes: Changes) -> Result<Outcome, StoreError>;

    /// Stores check-ins, without changing the generations of their hosts. A host keeps a check-in that is later. Hosts
    /// that do not exist or are deleted are skipped.
    async fn store_check_ins(&self, check_ins: &[CheckIn]) -> Result<(), StoreError>;

    /// Replaces check-ins that are after a limit, without changing the generations of their hosts.
    async fn limit_check_ins(&self, limit: CheckInLimit) -> Result<(), StoreError>;

    /// Locks records against changes of other processes, until the reservation is committed or dropped. Returns `None`
    /// if no other process can change records, or if the lock was not granted.
    ///
    /// A change that other processes overtake again and again reserves its records before it reads them.
    async fn reserve(&self, keys: &BTreeSet<Key>) -> Result<Option<Box<dyn Reservation>>, StoreError>;

    /// Returns the events that match a query. If the query has a limit, they are one page, which is short to save
    /// memory: it may have fewer events than the limit, but has at least one if any match.
    async fn events(&self, query: &EventQuery) -> Result<EventPage, StoreError>;

    /// Deletes the first `most` events after a position and before a time that name no existing record. Returns the
    /// position of the last one, or `None` if no more of them are left.
    async fn forget_events(
        &self,
        after: EventPosition,
        before: DateTime<Utc>,
        most: usize,
    ) -> Result<Option<EventPosition>, StoreError>;

    /// Takes or renews a lease for some time. Returns `false` if another replica holds it. A lease ends when it is
    /// released, or when its time is over.
    async fn hold_lease(&self, name: &str, holder: Uuid, duration: Duration) -> Result<bool, StoreError>;

    /// Gives up a lease, if this holder has it.
    async fn release_lease(&self, name: &str, holder: Uuid) -> Result<(), StoreError>;

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
