//! Records and events in SQLite or PostgreSQL: the same tables, and the same statements where the dialects agree.
//!
//! A SQLite file belongs to one process. All its changes go through one [`writer`], readers never wait for it. On PostgreSQL
//! every change is a transaction of its own, and rows are locked for what the isolation level does not promise.

mod apply;
mod events;
mod place;
mod rows;
mod writer;

use std::path::Path;
use std::sync::{Arc, LazyLock, Once};
use std::time::Duration;

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use sqlx::any::AnyPoolOptions;
use sqlx::migrate::{MigrateError, Migration, MigrationType, Migrator};
use sqlx::postgres::{PgConnectOptions, PgSslMode};
use sqlx::{Any, AnyConnection, AnyPool, Connection, Executor, SqlSafeStr};
use uuid::Uuid;

use super::{Changes, Filter, Key, Kind, Outcome, Position, Row, RowPage, Store, StoreError};
use crate::inventory::event::{EventPage, EventQuery};
use apply::{Prepared, apply};
use place::{OwnedFile, Place, with_sslmode, without_password};
use writer::Writer;

/// The tables, in the steps in which they came to be.
static TABLES: LazyLock<Migrator> = LazyLock::new(|| {
    let steps = [
        ("records", include_str!("../migrations/1_records.sql")),
        ("token keys", include_str!("../migrations/2_token_keys.sql")),
        ("sizes and pages", include_str!("../migrations/3_sizes_and_pages.sql")),
    ];
    let step = |(version, (name, sql)): (i64, (&'static str, &'static str))| {
        Migration::new(version, name.into(), MigrationType::Simple, sql.into_sql_str(), false)
    };
    Migrator::with_migrations((1..).zip(steps).map(step).collect())
});

/// A handful of connections keeps a database busy; what has to wait waits here, where it costs nothing.
const MOST_CONNECTIONS: u32 = 10;
/// Who waits so long for a connection is told so.
const ACQUIRE_TIMEOUT: Duration = Duration::from_secs(10);
/// A database that has not answered by then is taken to be gone. Longer than what the database itself allows a statement.
const PATIENCE: Duration = Duration::from_secs(60);
/// A connection that was idle for less is taken to be alive without asking.
const FRESH: Duration = Duration::from_secs(5);

type AnyQuery = sqlx::query::Query<'static, Any, sqlx::any::AnyArguments>;

/// A database that sqlx reaches.
#[derive(Debug)]
pub struct SqlStore {
    pool: AnyPool,
    backend: Backend,
}

/// What changes go through.
#[derive(Debug)]
enum Backend {
    Sqlite { writer: Writer, file: Arc<OwnedFile> },
    Postgres,
}

/// Where the two differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Dialect {
    Sqlite,
    Postgres,
}

impl Dialect {
    /// What every connection is told first.
    fn session(self) -> &'static str {
        match self {
            // Readers go on while one writes, and what is committed is on the disk.
            Self::Sqlite => {
                "PRAGMA busy_timeout = 10000; PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; \
                 PRAGMA journal_size_limit = 67108864"
            }
            // A replica that hangs must not hold up the others.
            Self::Postgres => {
                "SET statement_timeout = '30s'; SET lock_timeout = '10s'; \
                 SET idle_in_transaction_session_timeout = '30s'"
            }
        }
    }
}

async fn connect(url: &str, dialect: Dialect) -> Result<AnyConnection, sqlx::Error> {
    let mut connection = AnyConnection::connect(url).await?;
    connection.execute(dialect.session()).await?;
    Ok(connection)
}

impl SqlStore {
    /// Opens a database file, and makes it if there is none.
    ///
    /// # Errors
    ///
    /// When the file cannot be opened, is no database, or is in use.
    pub async fn open_file(path: &Path) -> Result<Self, StoreError> {
        Self::open_sqlite(path, true).await
    }

    /// Opens a database by URL, and makes its tables if there are none.
    ///
    /// `sqlite:` names a file, which is made if there is none unless the URL ends with `?mode=rw`; `postgres:` names a
    /// database of a server.
    ///
    /// # Errors
    ///
    /// When the URL is none of these, the database cannot be reached, or a newer Kindling made its tables.
    pub async fn open(url: &str) -> Result<Self, StoreError> {
        match Place::parse(url)? {
            Place::File { path, create } => Self::open_sqlite(&path, create).await,
            Place::Server(url) => Self::open_postgres(&url).await,
        }
    }

    async fn open_sqlite(path: &Path, create: bool) -> Result<Self, StoreError> {
        let file = Arc::new(OwnedFile::take(path, create)?);
        let (name, url) = (file.to_string(), file.url());
        let connection = open_tables(&name, &url, Dialect::Sqlite).await?;
        let options = pool().idle_timeout(None).max_lifetime(None).after_connect(|connection, _| {
            Box::pin(async move {
                connection.execute(Dialect::Sqlite.session()).await?;
                // Only the writer writes. Each connection has a cache of its own, which documents would fill for nothing: the
                // system has the file in memory.
                connection.execute("PRAGMA query_only = ON; PRAGMA cache_size = -512").await?;
                Ok(())
            })
        });
        let pool =
            options.connect(&url).await.map_err(|source| StoreError::Open { database: name, source })?;
        let writer = Writer::start(connection, url, Arc::clone(&file));
        Ok(Self { pool, backend: Backend::Sqlite { writer, file } })
    }

    /// Two modes of `sslmode` leave it to the server whether connections are encrypted. As libpq does, the other way is tried
    /// if the server refuses a client for the first one.
    async fn open_postgres(url: &str) -> Result<Self, StoreError> {
        let name = without_password(url);
        let failed = |source| StoreError::Open { database: name.clone(), source };
        let [first, second] = match url.parse::<PgConnectOptions>().map_err(failed)?.get_ssl_mode() {
            PgSslMode::Allow => [Some("disable"), Some("require")],
            PgSslMode::Prefer => [Some("prefer"), Some("disable")],
            _ => [None, None],
        };
        let opened = Self::open_server(&name, &with_sslmode(url, first)).await;
        match opened {
            Err(StoreError::Open { source, .. }) if second.is_some() && is_refused(&source) => {
                Self::open_server(&name, &with_sslmode(url, second)).await
            }
            opened => opened,
        }
    }

    async fn open_server(name: &str, url: &str) -> Result<Self, StoreError> {
        let connection = open_tables(name, url, Dialect::Postgres).await?;
        let _ = connection.close().await;
        let options = pool().after_connect(|connection, _| {
            Box::pin(async move { connection.execute(Dialect::Postgres.session()).await.map(drop) })
        });
        let options = options.before_acquire(|connection, seen| {
            Box::pin(async move {
                if seen.idle_for > FRESH {
                    connection.ping().await?;
                }
                Ok(true)
            })
        });
        let failed = |source| StoreError::Open { database: name.to_owned(), source };
        let pool = options.connect(url).await.map_err(failed)?;
        Ok(Self { pool, backend: Backend::Postgres })
    }

    async fn carry_out(&self, change: Prepared) -> Result<Outcome, StoreError> {
        const DOING: &str = "a change is written";
        match &self.backend {
            Backend::Sqlite { writer, .. } => writer.commit(change).await,
            Backend::Postgres => {
                let committed = async {
                    match self.commit_alone(&change).await {
                        Err(error) if is_overtaken(&error) => Ok(Outcome::Overtaken),
                        outcome => outcome,
                    }
                };
                answer(DOING, committed).await
            }
        }
    }

    async fn commit_alone(&self, change: &Prepared) -> Result<Outcome, sqlx::Error> {
        let mut transaction = self.pool.begin().await?;
        match apply(&mut transaction, Dialect::Postgres, change).await {
            Ok(Outcome::Done) => transaction.commit().await.map(|()| Outcome::Done),
            Ok(outcome) => transaction.rollback().await.map(|()| outcome),
            Err(error) => {
                transaction.rollback().await?;
                Err(error)
            }
        }
    }

    fn dialect(&self) -> Dialect {
        match self.backend {
            Backend::Sqlite { .. } => Dialect::Sqlite,
            Backend::Postgres => Dialect::Postgres,
        }
    }
}

fn pool() -> AnyPoolOptions {
    AnyPoolOptions::new()
        .max_connections(MOST_CONNECTIONS)
        .acquire_timeout(ACQUIRE_TIMEOUT)
        .test_before_acquire(false)
}

/// Brings the tables to their present form, and gives the connection over which that was done.
async fn open_tables(name: &str, url: &str, dialect: Dialect) -> Result<AnyConnection, StoreError> {
    static DRIVERS: Once = Once::new();
    DRIVERS.call_once(sqlx::any::install_default_drivers);
    let failed = |source| StoreError::Open { database: name.to_owned(), source };
    let mut connection = AnyConnection::connect(url).await.map_err(failed)?;
    if dialect == Dialect::Sqlite {
        connection.execute(dialect.session()).await.map_err(failed)?;
    }
    let known = TABLES.iter().map(|step| step.version).max().unwrap_or(0);
    TABLES.run(&mut connection).await.map_err(|error| match error {
        MigrateError::VersionMissing(version) if version > known => {
            StoreError::Newer { database: name.to_owned(), version, known }
        }
        error => StoreError::Migrate(error),
    })?;
    Ok(connection)
}

/// Waits for a database, but not for ever.
async fn answer<T>(
    doing: &'static str,
    work: impl Future<Output = Result<T, sqlx::Error>>,
) -> Result<T, StoreError> {
    match tokio::time::timeout(PATIENCE, work).await {
        Ok(result) => result.map_err(|error| failed(doing, error)),
        Err(_) => Err(StoreError::Silent { doing }),
    }
}

fn failed(doing: &'static str, error: impl Into<Arc<sqlx::Error>>) -> StoreError {
    let source = error.into();
    match &*source {
        sqlx::Error::PoolClosed => StoreError::Closed,
        error if state(error).as_deref() == Some("55P03") => StoreError::Contended,
        error if is_full(error) => StoreError::Full { doing, source },
        error if is_away(error) => StoreError::Unreachable { doing, source },
        _ => StoreError::Statement { doing, source },
    }
}

/// Whether the disk of a database is full: SQLITE_FULL, a shared-memory file that SQLite cannot enlarge, or disk_full of
/// PostgreSQL.
fn is_full(error: &sqlx::Error) -> bool {
    state(error).is_some_and(|state| ["13", "4874", "53100"].contains(&&*state))
}

/// Whether a database is not there, or goes: the same may well succeed when it is there again.
fn is_away(error: &sqlx::Error) -> bool {
    match error {
        sqlx::Error::Io(_) | sqlx::Error::PoolTimedOut | sqlx::Error::WorkerCrashed => true,
        // A server that goes while a connection begins says nothing, which is no answer of the protocol.
        sqlx::Error::Tls(_) | sqlx::Error::Protocol(_) => true,
        // Of PostgreSQL: broken connections, those that it ends, and more than it takes.
        error => state(error).is_some_and(|state| {
            state.len() == 5 && (state.starts_with("08") || state.starts_with("57P") || state == "53300")
        }),
    }
}

/// The code of an error of the database.
fn state(error: &sqlx::Error) -> Option<std::borrow::Cow<'_, str>> {
    error.as_database_error().and_then(sqlx::error::DatabaseError::code)
}

/// Whether PostgreSQL does not let a client in, which may depend on whether its connection is encrypted.
fn is_refused(error: &sqlx::Error) -> bool {
    state(error).is_some_and(|state| state == "28000")
}

/// Whether PostgreSQL gave up a transaction in favour of another.
fn is_overtaken(error: &sqlx::Error) -> bool {
    state(error).is_some_and(|state| ["40001", "40P01"].contains(&&*state))
}

#[async_trait]
impl Store for SqlStore {
    async fn get(&self, key: Key) -> Result<Option<Row>, StoreError> {
        answer("a record is read", rows::get(&self.pool, key)).await
    }

    async fn list(&self, filter: Filter) -> Result<Vec<Row>, StoreError> {
        answer("records are listed", rows::list(&self.pool, filter)).await
    }

    async fn page(&self, filter: Filter, after: Position) -> Result<RowPage, StoreError> {
        answer("records are listed", rows::page(&self.pool, filter, after)).await
    }

    async fn count(&self, filter: Filter) -> Result<u64, StoreError> {
        answer("records are counted", rows::count(&self.pool, filter)).await
    }

    async fn signed_otherwise(&self, kind: Kind, key: Option<Uuid>) -> Result<Vec<Key>, StoreError> {
        answer("records are listed", rows::signed_otherwise(&self.pool, kind, key)).await
    }

    async fn deleted(&self, kind: Kind) -> Result<Vec<Key>, StoreError> {
        answer("records are listed", rows::deleted(&self.pool, kind)).await
    }

    async fn is_there(&self, key: Key) -> Result<bool, StoreError> {
        let found = async { rows::find(key).fetch_optional(&self.pool).await };
        Ok(answer("a record is looked for", found).await?.is_some())
    }

    async fn has_any(&self, filter: Filter) -> Result<bool, StoreError> {
        let found = async { rows::any_of(filter).fetch_optional(&self.pool).await };
        Ok(answer("records are looked for", found).await?.is_some())
    }

    async fn commit(&self, changes: Changes) -> Result<Outcome, StoreError> {
        self.carry_out(Prepared::new(changes)?).await
    }

    async fn events(&self, query: &EventQuery) -> Result<EventPage, StoreError> {
        answer("events are read", events::find(&self.pool, self.dialect(), query)).await
    }

    async fn forget_events(&self, before: DateTime<Utc>, most: usize) -> Result<usize, StoreError> {
        // They are looked for beside the one who writes.
        let found = answer("events are read", events::forgettable(&self.pool, before, most)).await?;
        let count = found.len();
        if count == 0 {
            return Ok(0);
        }
        match self.carry_out(Prepared::forgetting(found)).await? {
            Outcome::Done => Ok(count),
            Outcome::Overtaken | Outcome::OutOfBounds => Err(StoreError::Contended),
        }
    }

    fn is_alone(&self) -> bool {
        self.dialect() == Dialect::Sqlite
    }

    async fn ping(&self) -> Result<(), StoreError> {
        if matches!(&self.backend, Backend::Sqlite { writer, .. } if !writer.is_open()) {
            return Err(StoreError::Closed);
        }
        answer("the database is asked", async { self.pool.execute("SELECT 1").await.map(drop) }).await
    }

    async fn close(&self) {
        self.pool.close().await;
        if let Backend::Sqlite { writer, file } = &self.backend {
            writer.close().await;
            file.release();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An error of a database with a code.
    #[derive(Debug, thiserror::Error)]
    #[error("{0}")]
    struct Coded(&'static str);

    impl sqlx::error::DatabaseError for Coded {
        fn message(&self) -> &str {
            self.0
        }

        fn code(&self) -> Option<std::borrow::Cow<'_, str>> {
            Some(self.0.into())
        }

        fn as_error(&self) -> &(dyn std::error::Error + Send + Sync + 'static) {
            self
        }

        fn as_error_mut(&mut self) -> &mut (dyn std::error::Error + Send + Sync + 'static) {
            self
        }

        fn into_error(self: Box<Self>) -> Box<dyn std::error::Error + Send + Sync + 'static> {
            self
        }

        fn kind(&self) -> sqlx::error::ErrorKind {
            sqlx::error::ErrorKind::Other
        }
    }

    #[test]
    fn a_database_that_is_away_is_told_from_one_that_fails() {
        let of = |error| failed("tested", sqlx::Error::from(error));
        for kind in [std::io::ErrorKind::ConnectionRefused, std::io::ErrorKind::UnexpectedEof] {
            assert!(matches!(failed("tested", sqlx::Error::Io(kind.into())), StoreError::Unreachable { .. }));
        }
        for error in [sqlx::Error::PoolTimedOut, sqlx::Error::Protocol("0x00".to_owned())] {
            assert!(matches!(failed("tested", error), StoreError::Unreachable { .. }));
        }
        assert!(matches!(failed("tested", sqlx::Error::PoolClosed), StoreError::Closed));
        for code in ["08006", "57P01", "57P02", "57P03", "53300"] {
            assert!(matches!(of(Coded(code)), StoreError::Unreachable { .. }), "{code}");
        }
        assert!(matches!(of(Coded("55P03")), StoreError::Contended));
        for code in ["13", "4874", "53100"] {
            assert!(matches!(of(Coded(code)), StoreError::Full { .. }), "{code}");
        }
        // Errors of SQLite are numbers.
        for code in ["42P01", "57014", "10", "8"] {
            assert!(matches!(of(Coded(code)), StoreError::Statement { .. }), "{code}");
        }
    }

    #[test]
    fn every_file_is_a_step_of_the_tables() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src/inventory/store/migrations");
        let mut files: Vec<_> = std::fs::read_dir(folder)
            .unwrap()
            .map(|file| file.unwrap().file_name().into_string().unwrap())
            .collect();
        files.sort();
        let name = |step: &Migration| format!("{}_{}.sql", step.version, step.description.replace(' ', "_"));
        assert_eq!(TABLES.iter().map(name).collect::<Vec<_>>(), files);
    }
}
