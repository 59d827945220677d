//! Statements on leases, for PostgreSQL only: a SQLite file belongs to one process.

use std::time::Duration;

use uuid::Uuid;

use crate::store::session::Statement;

/// Returns a statement that takes or renews a lease. The statement returns no row if another process holds the lease.
///
/// The times are from the clock of the database, because the clocks of replicas may differ.
pub(in crate::store) fn hold(name: &str, holder: Uuid, duration: Duration) -> Statement {
    // If the duration saturates, it is still longer than any lease.
    let micros = i64::try_from(duration.as_micros()).unwrap_or(i64::MAX / 2);
    Statement::new(
        "WITH clock AS (SELECT CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000000 AS BIGINT) AS now) \
         INSERT INTO leases (name, holder, expires_at) SELECT $1, $2, now + $3 FROM clock \
         ON CONFLICT (name) DO UPDATE SET holder = excluded.holder, expires_at = excluded.expires_at \
         WHERE leases.holder = excluded.holder OR leases.expires_at <= excluded.expires_at - $3 RETURNING name",
    )
    .bind(name)
    .bind_id(holder)
    .bind_integer(micros)
}

/// Returns a statement that releases a lease if `holder` holds it.
pub(in crate::store) fn release(name: &str, holder: Uuid) -> Statement {
    Statement::new("DELETE FROM leases WHERE name = $1 AND holder = $2").bind(name).bind_id(holder)
}
