//! A store in a SQLite file, which belongs to one process.
//!
//! All changes go through a single [`Writer`], which never blocks readers.

mod file;
mod writer;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous};
use sqlx::{ConnectOptions as _, SqlitePool};

use file::OwnedFile;
use writer::{WRITING, Writer};

use super::statements::commit::Prepared;
use super::statements::records::PAGE_ROWS;
use super::{Feed, StoreError, pool, schema};

/// Time limit for waiting until another process releases its lock on the file.
const BUSY_TIMEOUT: Duration = Duration::from_secs(10);

/// Minimum number of read-only connections.
const MIN_READERS: u32 = 4;

/// Returns the number of read-only connections. Each has a thread, whose heap retains the memory of its largest result.
/// Reads use CPU time and hardly wait, so more connections than processors do not increase the throughput.
fn reader_count() -> u32 {
    let processors = std::thread::available_parallelism().map_or(MIN_READERS, |count| {
        // If the conversion fails, the count exceeds the maximum.
        u32::try_from(count.get()).unwrap_or(pool::MAX_CONNECTIONS)
    });
    processors.clamp(MIN_READERS, pool::MAX_CONNECTIONS)
}

/// The parts of an open SQLite store.
#[derive(Debug)]
pub(super) struct SqliteParts {
    /// The read-only connections.
    pub(super) pool: SqlitePool,
    pub(super) writer: Writer,
    file: Arc<OwnedFile>,
}

impl SqliteParts {
    /// Checks that the writer can change the tables and that the database file has not been replaced.
    pub(super) async fn check_usable(&self) -> Result<(), StoreError> {
        self.file.check_in_place().await?;
        if self.writer.is_stuck() {
            return Err(StoreError::Silent { doing: WRITING });
        }
        self.writer.commit(Prepared::testing()).await.map(drop)
    }

    pub(super) async fn close(&self) {
        self.pool.close().await;
        self.writer.close().await;
        self.file.release();
    }
}

/// Opens a file and migrates its tables.
pub(super) async fn open(path: &Path, create: bool, feed: Feed) -> Result<SqliteParts, StoreError> {
    let file = Arc::new(OwnedFile::lock(path, create)?);
    let failed = |source| StoreError::Open { database: file.to_string(), source };
    // With a write-ahead log, a writer does not block readers. Full synchronization puts each commit on disk.
    let options = SqliteConnectOptions::new()
        .filename(file.path())
        .busy_timeout(BUSY_TIMEOUT)
        .journal_mode(SqliteJournalMode::Wal)
        .synchronous(SqliteSynchronous::Full)
        .pragma("journal_size_limit", "67108864");
    let mut connection = options.connect().await.map_err(failed)?;
    schema::migrate(&file.to_string(), &mut connection).await?;
    // Only the writer writes. Each connection has its own page cache, which stays small because the kernel already
    // caches the file. The row buffer holds a page of records, so SQLite's thread can read a whole page before the
    // caller takes the first row.
    let readers = options
        .clone()
        .pragma("query_only", "ON")
        .pragma("cache_size", "-512")
        .row_buffer_size(PAGE_ROWS.into());
    let pool = SqlitePoolOptions::new()
        .max_connections(reader_count())
        .acquire_timeout(pool::ACQUIRE_TIMEOUT)
        .test_before_acquire(false)
        .idle_timeout(None)
        .max_lifetime(None);
    let pool = pool.connect_with(readers).await.map_err(failed)?;
    let writer = Writer::start(connection, options, (Arc::clone(&file), feed));
    Ok(SqliteParts { pool, writer, file })
}
