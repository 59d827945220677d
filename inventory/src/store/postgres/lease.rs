//! Connections in use from the PostgreSQL pool. A connection returns to the pool in a known state, or is closed.
//!
//! A request may end while the server is still working on its statement. The driver then does not know whether a
//! transaction has begun, or when the server will respond.
//!
//! The driver does not handle this safely. It returns a connection to the pool with an open transaction if the
//! connection was dropped during `BEGIN`. It also waits for an unreachable server without a time limit.

use std::ops::{Deref, DerefMut};
use std::time::Duration;

use sqlx::pool::PoolConnection;
use sqlx::{Executor as _, PgConnection, Postgres};
use tokio::runtime::Handle;
use tokio::time::timeout;

/// Time limit for a response when a connection returns to the pool. A server that exceeds it is considered unreachable.
///
/// A statement that exceeds it after its request has ended continues on the server until `statement_timeout`, while the
/// pool opens another connection.
const RETURN_PATIENCE: Duration = Duration::from_secs(5);

/// The statements that end a transaction that may have begun. `ROLLBACK` alone would log a warning if there is no
/// transaction.
const END_POSSIBLE_TRANSACTION: &str = "BEGIN; ROLLBACK";
const END_TRANSACTION: &str = "ROLLBACK";

/// A connection in use, which returns to the pool when dropped.
#[derive(Debug)]
pub(in crate::store) struct LeasedConnection {
    /// `None` only during `drop`.
    connection: Option<PoolConnection<Postgres>>,
    /// The statements that restore a known state. `None` if the state is known.
    cleanup: Option<&'static str>,
}

impl LeasedConnection {
    pub(super) fn new(connection: PoolConnection<Postgres>) -> Self {
        Self { connection: Some(connection), cleanup: Some(END_POSSIBLE_TRANSACTION) }
    }

    /// Marks the state of the connection as known: the server has completed all statements, and no transaction is open.
    pub(in crate::store) fn complete(&mut self) {
        self.cleanup = None;
    }

    /// Begins a transaction for writing.
    pub(super) async fn begin(mut self) -> Result<LeasedTransaction, sqlx::Error> {
        self.execute("BEGIN").await?;
        self.cleanup = Some(END_TRANSACTION);
        Ok(LeasedTransaction(self))
    }
}

impl Deref for LeasedConnection {
    type Target = PgConnection;

    #[expect(clippy::expect_used, reason = "only `drop` takes the connection")]
    fn deref(&self) -> &PgConnection {
        self.connection.as_ref().expect("a connection in use")
    }
}

impl DerefMut for LeasedConnection {
    #[expect(clippy::expect_used, reason = "only `drop` takes the connection")]
    fn deref_mut(&mut self) -> &mut PgConnection {
        self.connection.as_mut().expect("a connection in use")
    }
}

impl Drop for LeasedConnection {
    fn drop(&mut self) {
        let Some(mut connection) = self.connection.take() else { return };
        match (Handle::try_current(), self.cleanup) {
            (Ok(runtime), None) => drop(runtime.spawn(within_patience(connection.return_to_pool()))),
            (Ok(runtime), Some(statements)) => {
                drop(runtime.spawn(clean_up(UncleanConnection(Some(connection)), statements)));
            }
            // Without a runtime, the driver cannot send statements.
            (Err(_), _) => drop(connection.detach()),
        }
    }
}

/// A connection in an unknown state, which is closed when dropped.
struct UncleanConnection(Option<PoolConnection<Postgres>>);

impl Drop for UncleanConnection {
    fn drop(&mut self) {
        if let Some(connection) = self.0.take() {
            tracing::debug!("closed a database connection in an unknown state");
            drop(connection.detach());
        }
    }
}

/// Restores a known state of a connection and returns it to the pool. If that fails or takes too long, the connection
/// is closed, and the pool may open another one.
async fn clean_up(mut unclean: UncleanConnection, statements: &'static str) {
    let Some(connection) = &mut unclean.0 else { return };
    if matches!(timeout(RETURN_PATIENCE, connection.execute(statements)).await, Ok(Ok(_)))
        && let Some(mut connection) = unclean.0.take()
    {
        within_patience(connection.return_to_pool()).await;
    }
}

/// Waits until the pool has tested and accepted a connection. If that takes too long, the connection is closed.
async fn within_patience(returned: impl Future<Output = ()>) {
    if timeout(RETURN_PATIENCE, returned).await.is_err() {
        tracing::debug!("closed a database connection that did not respond");
    }
}

/// A transaction that rolls back when dropped, unless it has been committed.
#[derive(Debug)]
pub(super) struct LeasedTransaction(LeasedConnection);

impl LeasedTransaction {
    pub(super) async fn commit(self) -> Result<(), sqlx::Error> {
        self.end("COMMIT").await
    }

    pub(super) async fn rollback(self) -> Result<(), sqlx::Error> {
        self.end(END_TRANSACTION).await
    }

    async fn end(mut self, statement: &'static str) -> Result<(), sqlx::Error> {
        self.0.cleanup = Some(END_POSSIBLE_TRANSACTION);
        self.0.execute(statement).await?;
        self.0.complete();
        Ok(())
    }
}

impl Deref for LeasedTransaction {
    type Target = PgConnection;

    fn deref(&self) -> &PgConnection {
        &self.0
    }
}

impl DerefMut for LeasedTransaction {
    fn deref_mut(&mut self) -> &mut PgConnection {
        &mut self.0
    }
}
