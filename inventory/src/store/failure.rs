//! Classifies database errors, and limits the time of operations.

use std::sync::Arc;
use std::time::Duration;

use super::StoreError;

/// Time limit for an operation. A database that does not respond within this time is considered unavailable. Must
/// exceed PostgreSQL's `statement_timeout`.
pub(super) const PATIENCE: Duration = Duration::from_secs(60);

/// Runs an operation with a time limit, and converts its error.
pub(super) async fn with_time_limit<T>(
    doing: &'static str,
    work: impl Future<Output = Result<T, sqlx::Error>>,
) -> Result<T, StoreError> {
    match tokio::time::timeout(PATIENCE, work).await {
        Ok(result) => result.map_err(|error| store_error(doing, error)),
        Err(_) => Err(StoreError::Silent { doing }),
    }
}

pub(super) fn store_error(doing: &'static str, error: impl Into<Arc<sqlx::Error>>) -> StoreError {
    let source = error.into();
    match &*source {
        sqlx::Error::PoolClosed => StoreError::Closed,
        error if is_lock_timeout(error) => StoreError::Contended,
        error if is_read_only(error) => StoreError::ReadOnly { doing, source },
        error if is_locked_file(error) => StoreError::Locked { doing },
        error if is_full(error) => StoreError::Full { doing, source },
        error if is_unreachable(error) => StoreError::Unreachable { doing, source },
        _ => StoreError::Statement { doing, source },
    }
}

/// Returns `true` if the disk of the database is full. The codes are `SQLITE_FULL`, `SQLITE_IOERR_SHMSIZE` (a
/// shared-memory file cannot grow), and PostgreSQL's `disk_full`.
fn is_full(error: &sqlx::Error) -> bool {
    sql_state(error).is_some_and(|state| ["13", "4874", "53100"].contains(&&*state))
}

/// Returns `true` if the database is read-only. The codes are `SQLITE_READONLY` and PostgreSQL's
/// `read_only_sql_transaction`, which a recovering server also returns.
fn is_read_only(error: &sqlx::Error) -> bool {
    sqlite_code(error) == Some(8) || sql_state(error).as_deref() == Some("25006")
}

/// Returns `true` if another process has locked a SQLite file. The codes are `SQLITE_BUSY` and `SQLITE_LOCKED`.
fn is_locked_file(error: &sqlx::Error) -> bool {
    matches!(sqlite_code(error), Some(5 | 6))
}

/// Returns SQLite's primary error code. PostgreSQL codes are excluded by their length of five characters, which no
/// SQLite code has.
fn sqlite_code(error: &sqlx::Error) -> Option<u32> {
    let code = sql_state(error).filter(|code| code.len() < 5)?;
    code.parse::<u32>().ok().map(|code| code & 0xff)
}

/// Returns `true` if the database is unreachable, so that the same query may succeed later.
pub(super) fn is_unreachable(error: &sqlx::Error) -> bool {
    match error {
        sqlx::Error::Io(_) | sqlx::Error::PoolTimedOut | sqlx::Error::WorkerCrashed => true,
        // A server that stops during the connection setup closes the connection early, which the driver reports as a
        // protocol error.
        sqlx::Error::Tls(_) | sqlx::Error::Protocol(_) => true,
        // PostgreSQL codes: connection exceptions, connections that the server has ended, and too many connections.
        error => sql_state(error).is_some_and(|state| {
            state.len() == 5 && (state.starts_with("08") || state.starts_with("57P") || state == "53300")
        }),
    }
}

/// Returns the SQLSTATE of PostgreSQL or the extended error code of SQLite.
pub(super) fn sql_state(error: &sqlx::Error) -> Option<std::borrow::Cow<'_, str>> {
    error.as_database_error().and_then(sqlx::error::DatabaseError::code)
}

/// Returns `true` if PostgreSQL aborted a transaction because of a serialization failure or a deadlock.
pub(super) fn is_overtaken(error: &sqlx::Error) -> bool {
    sql_state(error).is_some_and(|state| ["40001", "40P01"].contains(&&*state))
}

/// Returns `true` if PostgreSQL did not grant a lock within `lock_timeout`.
pub(super) fn is_lock_timeout(error: &sqlx::Error) -> bool {
    sql_state(error).as_deref() == Some("55P03")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A database error that has only a code.
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
    fn unreachable_database_differs_from_failed_statement() {
        let of = |error| store_error("tested", sqlx::Error::from(error));
        for kind in [std::io::ErrorKind::ConnectionRefused, std::io::ErrorKind::UnexpectedEof] {
            assert!(matches!(
                store_error("tested", sqlx::Error::Io(kind.into())),
                StoreError::Unreachable { .. }
            ));
        }
        for error in [sqlx::Error::PoolTimedOut, sqlx::Error::Protocol("0x00".to_owned())] {
            assert!(matches!(store_error("tested", error), StoreError::Unreachable { .. }));
        }
        assert!(matches!(store_error("tested", sqlx::Error::PoolClosed), StoreError::Closed));
        for code in ["08006", "57P01", "57P02", "57P03", "53300"] {
            assert!(matches!(of(Coded(code)), StoreError::Unreachable { .. }), "{code}");
        }
        assert!(matches!(of(Coded("55P03")), StoreError::Contended));
        for code in ["13", "4874", "53100"] {
            assert!(matches!(of(Coded(code)), StoreError::Full { .. }), "{code}");
        }
        // `25006` is a PostgreSQL code, and the other codes are from SQLite.
        for code in ["25006", "8", "264", "520", "1032"] {
            assert!(matches!(of(Coded(code)), StoreError::ReadOnly { .. }), "{code}");
        }
        for code in ["5", "6", "261", "262", "517"] {
            assert!(matches!(of(Coded(code)), StoreError::Locked { .. }), "{code}");
        }
        for code in ["42P01", "57014", "10"] {
            assert!(matches!(of(Coded(code)), StoreError::Statement { .. }), "{code}");
        }
    }
}
