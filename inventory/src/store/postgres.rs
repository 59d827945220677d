//! A store in a database of a PostgreSQL server, which several processes can share.
//!
//! Each change is one transaction, which also notifies the other processes. The transaction locks rows where the
//! isolation level does not suffice.

mod lease;

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use sqlx::postgres::{PgConnectOptions, PgPoolOptions, PgSslMode};
use sqlx::{AssertSqlSafe, ConnectOptions as _, Connection as _, Executor, PgPool};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use lease::{LeasedConnection, LeasedTransaction};

use super::failure::{is_lock_timeout, is_overtaken, sql_state, with_time_limit};
use super::feed::OwnChange;
use super::feed::listener::{ListenerTask, notify};
use super::location::without_password;
use super::session::Session;
use super::statements::commit::{Prepared, TEST_STATEMENTS, apply, lock};
use super::{Changes, Feed, Key, Outcome, Reservation, StoreError, pool, schema};

/// Idle time after which a connection is checked with a ping before use.
const FRESH: Duration = Duration::from_secs(5);

/// The first statements on every connection. The timeouts prevent a hanging replica from blocking the others.
const SESSION: &str = "SET statement_timeout = '30s'; SET lock_timeout = '10s'; \
                       SET idle_in_transaction_session_timeout = '30s'";

/// The parts of an open PostgreSQL store.
#[derive(Debug)]
pub(super) struct PostgresParts {
    pool: PgPool,
    reservations: Arc<Semaphore>,
    feed: Feed,
    listener: Mutex<Option<ListenerTask>>,
}

/// Maximum number of reservations. A reservation holds a connection while its change reads on another one, so
/// reservations must not use up the pool.
const MAX_RESERVATIONS: usize = 4;

const WRITING: &str = "writing a change";
const TESTING: &str = "testing the tables";
/// The statement that limits how long a test of the tables waits for a lock. The setting ends with the test's implicit
/// transaction.
const TEST_PATIENCE: &str = "SET LOCAL lock_timeout = '1s'";
const LOCKING: &str = "locking records";

/// Opens a database and migrates its tables.
///
/// With `sslmode=allow` or `sslmode=prefer`, the server decides about encryption. If the server refuses the first mode,
/// the second mode is tried, as in libpq.
pub(super) async fn open(url: &str, feed: &Feed) -> Result<PostgresParts, StoreError> {
    let name = without_password(url);
    let failed = |source| StoreError::Open { database: name.clone(), source };
    let options = url.parse::<PgConnectOptions>().map_err(failed)?;
    let (first, second) = match options.get_ssl_mode() {
        PgSslMode::Allow => (PgSslMode::Disable, Some(PgSslMode::Require)),
        PgSslMode::Prefer => (PgSslMode::Prefer, Some(PgSslMode::Disable)),
        mode => (mode, None),
    };
    match (connect(&name, options.clone().ssl_mode(first), feed).await, second) {
        (Err(StoreError::Open { source, .. }), Some(second)) if is_refused(&source) => {
            connect(&name, options.ssl_mode(second), feed).await
        }
        (opened, _) => opened,
    }
}

async fn connect(name: &str, options: PgConnectOptions, feed: &Feed) -> Result<PostgresParts, StoreError> {
    let failed = |source| StoreError::Open { database: name.to_owned(), source };
    let mut connection = options.connect().await.map_err(failed)?;
    schema::migrate(name, &mut connection).await?;
    // The migrations are committed, so an error while closing this connection does no harm.
    let _ = connection.close().await;
    let pool = PgPoolOptions::new()
        .max_connections(pool::MAX_CONNECTIONS)
        .acquire_timeout(pool::ACQUIRE_TIMEOUT)
        .test_before_acquire(false)
        .after_connect(|connection, _| {
            Box::pin(async move { Executor::execute(connection, SESSION).await.map(drop) })
        })
        .before_acquire(|connection, metadata| {
            Box::pin(async move {
                if metadata.idle_for > FRESH {
                    connection.ping().await?;
                }
                Ok(true)
            })
        });
    let pool = pool.connect_with(options.clone()).await.map_err(failed)?;
    let reservations = Arc::new(Semaphore::new(MAX_RESERVATIONS));
    let listener = Mutex::new(Some(ListenerTask::start(feed, options).await));
    Ok(PostgresParts { pool, reservations, feed: feed.clone(), listener })
}

impl PostgresParts {
    /// Returns a connection from the pool. The caller must mark it as [complete](LeasedConnection::complete) after use.
    pub(super) async fn acquire(&self) -> Result<LeasedConnection, sqlx::Error> {
        self.pool.acquire().await.map(LeasedConnection::new)
    }

    /// Begins a transaction for writing.
    async fn begin(&self) -> Result<LeasedTransaction, sqlx::Error> {
        self.acquire().await?.begin().await
    }

    /// Makes a change in its own transaction.
    pub(super) async fn commit(&self, change: &Prepared) -> Result<Outcome, StoreError> {
        let begin = with_time_limit(WRITING, self.begin());
        let transaction = self.feed.while_reachable(WRITING, begin).await?;
        with_time_limit(WRITING, commit_in(transaction, change, &self.feed)).await
    }

    /// Checks that the tables can be read and changed. All statements are sent in one message.
    pub(super) async fn check_usable(&self) -> Result<(), StoreError> {
        let statements = format!("{TEST_PATIENCE}; {}", TEST_STATEMENTS.join("; "));
        let work = async {
            let mut lease = self.acquire().await?;
            let result = Executor::execute(&mut *lease, AssertSqlSafe(statements)).await;
            lease.complete();
            result
        };
        let tested = self.feed.while_reachable(TESTING, with_time_limit(TESTING, work)).await;
        match tested {
            Ok(_) => Ok(()),
            // `lock_timeout` expired: another session has locked the tables.
            Err(StoreError::Contended) => Err(StoreError::Locked { doing: TESTING }),
            Err(error) => Err(error),
        }
    }

    /// Closes the listener's connection and the pool.
    pub(super) async fn close(&self) {
        drop(self.listener.lock().unwrap_or_else(PoisonError::into_inner).take());
        self.pool.close().await;
    }

    /// Begins a transaction and locks records in it.
    pub(super) async fn reserve(
        &self,
        keys: &BTreeSet<Key>,
    ) -> Result<Option<Box<dyn Reservation>>, StoreError> {
        let permit = Arc::clone(&self.reservations).acquire_owned().await;
        let permit = permit.map_err(|_| StoreError::Closed)?;
        let locked = async {
            let mut transaction = self.begin().await?;
            match lock(&mut *transaction, keys).await {
                Ok(()) => Ok(Some(transaction)),
                Err(error) if is_overtaken(&error) || is_lock_timeout(&error) => Ok(None),
                Err(error) => Err(error),
            }
        };
        let transaction = self.feed.while_reachable(LOCKING, with_time_limit(LOCKING, locked)).await?;
        let feed = self.feed.clone();
        Ok(transaction.map(|transaction| {
            Box::new(LockedRecords { transaction, feed, _permit: permit }) as Box<dyn Reservation>
        }))
    }
}

/// A transaction that has locked records.
#[derive(Debug)]
struct LockedRecords {
    transaction: LeasedTransaction,
    feed: Feed,
    _permit: OwnedSemaphorePermit,
}

#[async_trait]
impl Reservation for LockedRecords {
    async fn commit(self: Box<Self>, changes: Changes) -> Result<Outcome, StoreError> {
        let change = Prepared::new(changes)?;
        with_time_limit(WRITING, commit_in(self.transaction, &change, &self.feed)).await
    }
}

async fn commit_in(
    mut transaction: LeasedTransaction,
    change: &Prepared,
    feed: &Feed,
) -> Result<Outcome, sqlx::Error> {
    let own = OwnChange::new(feed, change.record_changes());
    let applied = match apply(&mut *transaction, change).await {
        Ok(Outcome::Done) => send(&mut transaction, own.notifications()).await.map(|()| Outcome::Done),
        applied => applied,
    };
    match applied {
        Ok(Outcome::Done) => match transaction.commit().await {
            Ok(()) => {
                own.complete();
                Ok(Outcome::Done)
            }
            Err(error) if is_overtaken(&error) => {
                own.discard();
                Ok(Outcome::Overtaken)
            }
            // The server may have committed the change, so dropping `own` reports it.
            Err(error) => Err(error),
        },
        Ok(outcome) => {
            own.discard();
            transaction.rollback().await.map(|()| outcome)
        }
        Err(error) => {
            own.discard();
            transaction.rollback().await?;
            if is_overtaken(&error) { Ok(Outcome::Overtaken) } else { Err(error) }
        }
    }
}

/// Queues notifications, which PostgreSQL sends when the transaction commits.
async fn send(transaction: &mut LeasedTransaction, notifications: Vec<String>) -> Result<(), sqlx::Error> {
    for notification in notifications {
        Session::has_row(&mut **transaction, notify(notification)).await?;
    }
    Ok(())
}

/// Returns `true` if the server rejects the client. The server may still accept the client with the other `sslmode`.
fn is_refused(error: &sqlx::Error) -> bool {
    sql_state(error).is_some_and(|state| state == "28000")
}
