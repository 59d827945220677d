//! [`SqlStore`]: the store of records and events in SQLite or PostgreSQL. Both databases have the same tables, and the
//! same statements where the dialects permit it.

use std::collections::BTreeSet;
use std::path::Path;

use async_trait::async_trait;
use futures_util::future::BoxFuture;
use sqlx::SqlSafeStr as _;
use uuid::Uuid;

use super::failure::with_time_limit;
use super::location::DatabaseLocation;
use super::metrics::{Operation, StoreMetrics};
use super::postgres::PostgresParts;
use super::query::Query;
use super::session::Session;
use super::sqlite::SqliteParts;
use super::statements::commit::Prepared;
use super::statements::records;
use super::{
    Changes, Feed, Filter, Key, Kind, Outcome, PageQuery, Reservation, Row, RowPage, Store, StoreError,
    postgres, sqlite,
};

/// A key that no record has.
const NO_RECORD: Key = Key { kind: Kind::Cluster, parent: None, id: Uuid::nil() };

/// A store in a SQLite file or on a PostgreSQL server.
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
    /// Opens a SQLite database file and creates it if it does not exist.
    ///
    /// # Errors
    ///
    /// Returns an error if the file cannot be opened, is not a database, or is in use by another store.
    pub fn open_file(path: &Path) -> BoxFuture<'_, Result<Self, StoreError>> {
        Box::pin(Self::open_sqlite(path, true))
    }

    /// Opens a database by URL, and creates its tables if they do not exist.
    ///
    /// A `sqlite:` URL names a file, which is created if it does not exist, unless the URL ends with `?mode=rw`. A
    /// `postgres:` URL names a database on a server.
    ///
    /// # Errors
    ///
    /// Returns an error if the URL is invalid, the database cannot be reached, or its tables were created by a newer
    /// release.
    pub fn open(url: &str) -> BoxFuture<'_, Result<Self, StoreError>> {
        Box::pin(async move {
            match DatabaseLocation::parse(url)? {
                DatabaseLocation::File { path, create } => Self::open_sqlite(&path, create).await,
                DatabaseLocation::Server(url) => {
                    let feed = Feed::of_shared_database();
                    let backend = Backend::Postgres(postgres::open(&url, &feed).await?);
                    Ok(Self { backend, feed, metrics: StoreMetrics::default() })
                }
            }
        })
    }

    async fn open_sqlite(path: &Path, create: bool) -> Result<Self, StoreError> {
        let feed = Feed::of_own_database();
        let backend = Backend::Sqlite(sqlite::open(path, create, feed.clone()).await?);
        Ok(Self { backend, feed, metrics: StoreMetrics::default() })
    }

    async fn write(&self, change: Prepared) -> Result<Outcome, StoreError> {
        match &self.backend {
            Backend::Sqlite(parts) => parts.writer.commit(change).await,
            Backend::Postgres(parts) => parts.commit(&change).await,
        }
    }
}

/// Runs a query with a time limit on a connection from the pool of the backend. `$query` must be generic over the
/// driver.
macro_rules! query {
    ($store:expr, $doing:expr, |$connection:ident| $query:expr) => {{
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

/// Runs the statements of a query. If there are several, they all see the same state of the database.
async fn run<S: Session>(connection: &mut S, query: Query<'_>) -> Result<(), sqlx::Error> {
    let Query { statements, mut take_row, .. } = query;
    let mut statements = statements(S::DIALECT);
    if statements.len() == 1
        && let Some(only) = statements.pop()
    {
        return connection.fetch(only, |row| take_row(0, row)).await.map(drop);
    }
    let mut transaction = connection.begin_with(S::BEGIN_SNAPSHOT.into_sql_str()).await?;
    for (number, statement) in statements.into_iter().enumerate() {
        transaction.fetch(statement, |row| take_row(number, row)).await?;
    }
    transaction.commit().await
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

    async fn query(&self, query: Query<'_>) -> Result<(), StoreError> {
        let doing = query.doing;
        query!(self, doing, |connection| run(connection, query))
    }

    async fn commit(&self, changes: Changes) -> Result<Outcome, StoreError> {
        let check_ins = changes.check_in_count();
        let change = Prepared::new(changes)?;
        if check_ins == 0 {
            return self.metrics.measure_commit(self.write(change)).await;
        }
        let outcome = self.metrics.measure(Operation::CheckIns, self.write(change)).await?;
        if outcome == Outcome::Done {
            self.metrics.add_stored_check_ins(check_ins);
        }
        Ok(outcome)
    }

    async fn reserve(&self, keys: &BTreeSet<Key>) -> Result<Option<Box<dyn Reservation>>, StoreError> {
        match &self.backend {
            // No lock is needed, because no other process can use the file.
            Backend::Sqlite(_) => Ok(None),
            Backend::Postgres(parts) => self.metrics.measure(Operation::Reserve, parts.reserve(keys)).await,
        }
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
