//! [`SqlStore`]: records and events in SQLite or PostgreSQL. The tables are the same, and so are the statements if the
//! dialects agree.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use uuid::Uuid;

use super::failure::with_time_limit;
use super::location::DatabaseLocation;
use super::metrics::{Operation, StoreMetrics};
use super::postgres::PostgresParts;
use super::session::Session as _;
use super::sqlite::SqliteParts;
use super::statements::commit::Prepared;
use super::statements::{check_ins, events, leases, records, reports};
use super::{
    Changes, CheckIn, CheckInLimit, Feed, Filter, HostCount, Key, Kind, Outcome, PageQuery, ReportKinds,
    Reports, Reservation, Row, RowPage, Store, StoreError, postgres, sqlite,
};
use crate::event::{EventPage, EventPosition, EventQuery};
use crate::id::{ClusterId, HostId};

/// The key of no record.
const NO_RECORD: Key = Key { kind: Kind::Cluster, parent: None, id: Uuid::nil() };

/// A store in a SQL database.
#[derive(Debug)]
pub struct SqlStore {
    backend: Backend,
    feed: Feed,
    metrics: StoreMetrics,
}

#[derive(Debug)]
enum Backend {
    Sqlite(SqliteParts),
    Postgres(PostgresParts),
}

impl SqlStore {
    /// Opens a database file, which is created if it does not exist.
    ///
    /// # Errors
    ///
    /// Returns an error if the file cannot be opened, is not a database, or is in use.
    pub async fn open_file(path: &Path) -> Result<Self, StoreError> {
        Self::open_sqlite(path, true).await
    }

    /// Opens a database by URL, and creates its tables if they do not exist.
    ///
    /// `sqlite:` names a file, which is created if it does not exist, unless the URL ends with `?mode=rw`. `postgres:`
    /// names a database of a server.
    ///
    /// # Errors
    ///
    /// Returns an error if the URL is invalid, if the database cannot be reached, or if a newer Kindling made its
    /// tables.
    pub async fn open(url: &str) -> Result<Self, StoreError> {
        match DatabaseLocation::parse(url)? {
            DatabaseLocation::File { path, create } => Self::open_sqlite(&path, create).await,
            DatabaseLocation::Server(url) => {
                let feed = Feed::of_shared_database();
                let backend = Backend::Postgres(postgres::open(&url, &feed).await?);
                Ok(Self { backend, feed, metrics: StoreMetrics::default() })
            }
        }
    }

    async fn open_sqlite(path: &Path, create: bool) -> Result<Self, StoreError> {
        let feed = Feed::of_own_database();
        let backend = Backend::Sqlite(sqlite::open(path, create, feed.clone()).await?);
        Ok(Self { backend, feed, metrics: StoreMetrics::default() })
    }

    async fn write_measured(&self, change: Prepared) -> Result<Outcome, StoreError> {
        self.metrics.measure_commit(self.write(change)).await
    }

    async fn write(&self, change: Prepared) -> Result<Outcome, StoreError> {
        match &self.backend {
            Backend::Sqlite(parts) => parts.writer.commit(change).await,
            Backend::Postgres(parts) => parts.commit(&change).await,
        }
    }
}

/// Runs a query on a connection of either pool, with a limit on time. `$query` is generic over the driver.
macro_rules! query {
    ($store:expr, $doing:literal, |$connection:ident| $query:expr) => {{
        let result = async {
            match &$store.backend {
                Backend::Sqlite(parts) => {
                    let work = async {
                        let $connection = &mut *parts.pool.acquire().await?;
                        $query.await
                    };
                    with_time_limit($doing, work).await
                }
                Backend::Postgres(parts) => {
                    let work = async {
                        let mut lease = parts.acquire().await?;
                        let $connection = &mut *lease;
                        let result = $query.await;
                        lease.complete();
                        result
                    };
                    $store.feed.while_reachable($doing, with_time_limit($doing, work)).await
                }
            }
        };
        $store.metrics.measure(Operation::Read, result).await
    }};
}

#[async_trait]
impl Store for SqlStore {
    async fn get(&self, key: Key) -> Result<Option<Row>, StoreError> {
        query!(self, "reading a record", |connection| records::get(connection, key))
    }

    async fn list(&self, filter: Filter) -> Result<Vec<Row>, StoreError> {
        query!(self, "listing records", |connection| records::list(connection, filter))
    }

    async fn page(&self, query: PageQuery) -> Result<RowPage, StoreError> {
        query!(self, "listing records", |connection| records::page(connection, query))
    }

    async fn reports(&self, host: Key, kinds: ReportKinds) -> Result<Reports, StoreError> {
        if kinds.is_empty() {
            return Ok(Reports::default());
        }
        query!(self, "reading reports", |connection| reports::reports_of_host(connection, host, kinds))
    }

    async fn silent_hosts(
        &self,
        status: &str,
        before: DateTime<Utc>,
        most: usize,
    ) -> Result<Vec<Key>, StoreError> {
        query!(self, "listing records", |connection| records::silent_hosts(connection, status, before, most))
    }

    async fn hosts_with_mac(&self, mac: &str) -> Result<Vec<Key>, StoreError> {
        query!(self, "listing records", |connection| records::hosts_with_mac(connection, mac))
    }

    async fn count(&self, filter: Filter) -> Result<u64, StoreError> {
        query!(self, "counting records", |connection| records::count(connection, filter))
    }

    async fn host_counts(&self, clusters: &[Uuid]) -> Result<Vec<HostCount>, StoreError> {
        query!(self, "counting records", |connection| records::host_counts(connection, clusters))
    }

    async fn hosts_in_cluster(&self, cluster: ClusterId, hosts: &[HostId]) -> Result<Vec<Key>, StoreError> {
        query!(self, "looking for records", |connection| {
            records::hosts_in_cluster(connection, cluster, hosts)
        })
    }

    async fn deleted_hosts(&self, cluster: ClusterId) -> Result<Vec<HostId>, StoreError> {
        query!(self, "listing records", |connection| records::deleted_hosts(connection, cluster))
    }

    async fn with_other_token_key(&self, kind: Kind, key: Option<Uuid>) -> Result<Vec<Key>, StoreError> {
        query!(self, "listing records", |connection| records::with_other_token_key(connection, kind, key))
    }

    async fn deleted(&self, kind: Kind) -> Result<Vec<Key>, StoreError> {
        query!(self, "listing records", |connection| records::deleted(connection, kind))
    }

    async fn cluster_of(&self, key: Key) -> Result<Option<ClusterId>, StoreError> {
        query!(self, "reading a record", |connection| records::cluster_of(connection, key))
    }

    async fn exists(&self, key: Key) -> Result<bool, StoreError> {
        query!(self, "looking for a record", |connection| connection.has_row(records::find(key)))
    }

    async fn has_any(&self, filter: Filter) -> Result<bool, StoreError> {
        query!(self, "looking for records", |connection| connection.has_row(records::select_any(filter)))
    }

    async fn commit(&self, changes: Changes) -> Result<Outcome, StoreError> {
        self.write_measured(Prepared::new(changes)?).await
    }

    async fn store_check_ins(&self, check_ins: &[CheckIn]) -> Result<(), StoreError> {
        let written = self.write(Prepared::checking_in(check_ins.to_vec()));
        match self.metrics.measure(Operation::CheckIns, written).await? {
            Outcome::Done => {
                self.metrics.add_stored_check_ins(check_ins.len());
                Ok(())
            }
            Outcome::Overtaken | Outcome::OutOfBounds => Err(StoreError::Contended),
        }
    }

    async fn limit_check_ins(&self, limit: CheckInLimit) -> Result<(), StoreError> {
        // The search uses a reader's connection, so that it does not block the writer.
        let exceeds = query!(self, "looking for check-ins", |connection| {
            check_ins::has_check_in_after(connection, &limit)
        })?;
        if !exceeds {
            return Ok(());
        }
        match self.write_measured(Prepared::limiting_check_ins(limit)).await? {
            Outcome::Done => Ok(()),
            Outcome::Overtaken | Outcome::OutOfBounds => Err(StoreError::Contended),
        }
    }

    async fn reserve(&self, keys: &BTreeSet<Key>) -> Result<Option<Box<dyn Reservation>>, StoreError> {
        match &self.backend {
            // The file belongs to this process.
            Backend::Sqlite(_) => Ok(None),
            Backend::Postgres(parts) => self.metrics.measure(Operation::Reserve, parts.reserve(keys)).await,
        }
    }

    async fn events(&self, query: &EventQuery) -> Result<EventPage, StoreError> {
        query!(self, "reading events", |connection| events::find(connection, query))
    }

    async fn forget_events(
        &self,
        after: EventPosition,
        before: DateTime<Utc>,
        most: usize,
    ) -> Result<Option<EventPosition>, StoreError> {
        // The search uses a reader's connection, so that it does not block the writer.
        let found = query!(self, "reading events", |connection| {
            events::forgettable_positions(connection, after, before, most)
        })?;
        let Some(last) = found.last().copied() else { return Ok(None) };
        let ids = found.iter().map(|position| position.id.to_string()).collect();
        match self.write_measured(Prepared::forgetting(ids)).await? {
            Outcome::Done => Ok((found.len() == most).then_some(last)),
            Outcome::Overtaken | Outcome::OutOfBounds => Err(StoreError::Contended),
        }
    }

    async fn hold_lease(&self, name: &str, holder: Uuid, duration: Duration) -> Result<bool, StoreError> {
        if self.is_alone() {
            return Ok(true);
        }
        let changed = query!(self, "renewing a lease", |connection| {
            connection.execute(leases::hold(name, holder, duration))
        })?;
        Ok(changed == 1)
    }

    async fn release_lease(&self, name: &str, holder: Uuid) -> Result<(), StoreError> {
        if !self.is_alone() {
            query!(self, "releasing a lease", |connection| connection
                .execute(leases::release(name, holder)))?;
        }
        Ok(())
    }

    fn metrics(&self) -> &StoreMetrics {
        &self.metrics
    }

    fn feed(&self) -> &Feed {
        &self.feed
    }

    fn is_alone(&self) -> bool {
        matches!(self.backend, Backend::Sqlite(_))
    }

    async fn check_usable(&self) -> Result<(), StoreError> {
        match &self.backend {
            Backend::Sqlite(parts) => parts.check_usable().await?,
            Backend::Postgres(parts) => parts.check_usable().await?,
        }
        query!(self, "testing the tables", |connection| records::get(connection, NO_RECORD))?;
        Ok(())
    }

    async fn close(&self) {
        match &self.backend {
            Backend::Sqlite(parts) => parts.close().await,
            Backend::Postgres(parts) => parts.close().await,
        }
    }
}
