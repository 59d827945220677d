//! Errors of the store.

use std::path::PathBuf;
use std::sync::Arc;

use super::{Key, ReportKind};
use crate::error::Error;

/// Why the database failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The URL has an unknown scheme.
    #[error("the database URL starts with {given}; use `sqlite:` or `postgres:`")]
    UnknownScheme {
        /// The scheme, if it cannot be a part of a password.
        given: String,
    },
    /// A database in memory would be lost with the process.
    #[error("in-memory databases are not supported; name a file")]
    Memory,
    /// The URL of a file has no path or unknown parameters. The message repeats no part of it, which may be a secret.
    #[error("unsupported database URL; use `sqlite:PATH`, with `?mode=rw` or `?mode=rwc`")]
    FileUrl,
    /// The URL of a server has parameters that are unknown, or that would not encrypt as intended.
    #[error("unsupported database URL: {reason}")]
    Url {
        /// The reason, without values of the URL.
        reason: String,
    },
    /// A file cannot be used.
    #[error("cannot use database file {}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: std::io::Error,
    },
    /// Another process uses the file.
    #[error("database file {} is in use by another process; use PostgreSQL to share a database", path.display())]
    InUse {
        /// The file.
        path: PathBuf,
    },
    /// The database cannot be opened.
    #[error("cannot open database {database}")]
    Open {
        /// The database, without its password.
        database: String,
        /// The cause.
        source: sqlx::Error,
    },
    /// A newer Kindling made the tables.
    #[error(
        "the tables of database {database} have version {version}, newer than the supported version {known}; use a newer Kindling"
    )]
    Newer {
        /// The database, without its password.
        database: String,
        /// A version of its tables.
        version: i64,
        /// The newest version that this program knows.
        known: i64,
    },
    /// The tables cannot be created or migrated.
    #[error("cannot create the tables of the database")]
    Migrate(#[source] sqlx::migrate::MigrateError),
    /// Records were written before documents had a schema version.
    #[error(
        "cannot read {records} of the records in database {database}: schema version 0 is not supported; \
         use a new database"
    )]
    UnsupportedRecords {
        /// The database, without its password.
        database: String,
        /// The number of these records.
        records: i64,
    },
    /// A statement failed.
    #[error("the database failed while {doing}")]
    Statement {
        /// The operation.
        doing: &'static str,
        /// The cause. Several changes may fail with the same cause.
        source: Arc<sqlx::Error>,
    },
    /// The disk of the database is full.
    #[error("no space left on the disk of the database while {doing}")]
    Full {
        /// The operation.
        doing: &'static str,
        /// The cause. Several changes may fail with the same cause.
        source: Arc<sqlx::Error>,
    },
    /// The database accepts no changes.
    #[error("the database is read-only while {doing}; connect to a server that accepts changes")]
    ReadOnly {
        /// The operation.
        doing: &'static str,
        /// The cause. Several changes may fail with the same cause.
        source: Arc<sqlx::Error>,
    },
    /// Another session has locked the tables.
    #[error("the tables of the database are locked by another session while {doing}")]
    Locked {
        /// The operation.
        doing: &'static str,
    },
    /// The file of the database was removed or replaced while it was open.
    #[error(
        "database file {} was removed or replaced while in use; its content is lost at the next restart unless it is \
         restored",
        path.display()
    )]
    Moved {
        /// The file.
        path: PathBuf,
    },
    /// The database is not reachable.
    #[error("the database could not be reached while {doing}")]
    Unreachable {
        /// The operation.
        doing: &'static str,
        /// The cause. Several changes may fail with the same cause.
        source: Arc<sqlx::Error>,
    },
    /// The database is known to be unreachable, so it was not asked.
    #[error("the database is unreachable, not asked while {doing}")]
    Outage {
        /// The operation.
        doing: &'static str,
    },
    /// The database does not answer.
    #[error("the database did not answer while {doing}")]
    Silent {
        /// The operation.
        doing: &'static str,
    },
    /// A document contains a NUL byte, which is not valid in JSON.
    #[error("the document of {key} contains a NUL byte")]
    Nul {
        /// The record.
        key: Key,
    },
    /// A record in the database is not valid.
    #[error("{key} is damaged in the database")]
    Damaged {
        /// The record.
        key: Key,
        /// The cause.
        source: serde_json::Error,
    },
    /// A host names a report that is missing in the database.
    #[error("the report {kind} of {key} is missing in the database")]
    MissingReport {
        /// The host.
        key: Key,
        /// The kind of the report.
        kind: ReportKind,
    },
    /// A record cannot be written as JSON.
    #[error("{key} cannot be written as JSON")]
    Unwritable {
        /// The record.
        key: Key,
        /// The cause.
        source: serde_json::Error,
    },
    /// Other changes were faster in every attempt.
    #[error("too many concurrent updates of this record")]
    Contended,
    /// The store is closing.
    #[error("the database is being closed")]
    Closed,
}

impl StoreError {
    /// Reports whether the database could not be asked. The same operation may succeed later.
    #[must_use]
    pub fn is_outage(&self) -> bool {
        matches!(self, Self::Silent { .. } | Self::Unreachable { .. } | Self::Outage { .. })
    }

    /// Returns `true` if the database failed, and the error says nothing about the record that was read.
    pub(crate) fn is_of_database(&self) -> bool {
        self.is_outage() || matches!(self, Self::Statement { .. } | Self::Locked { .. } | Self::Contended)
    }

    /// Logs the error. An outage is logged once, when it begins.
    pub(crate) fn log(&self, what: &str) {
        let error = self as &dyn std::error::Error;
        match self {
            Self::Outage { .. } => tracing::debug!(error, "{what}"),
            _ => tracing::error!(error, "{what}"),
        }
    }
}

impl From<StoreError> for Error {
    fn from(error: StoreError) -> Self {
        error.log("the database failed");
        match error {
            StoreError::Contended => {
                Self::unavailable("too many concurrent updates of this record; try again")
            }
            StoreError::Silent { .. }
            | StoreError::Unreachable { .. }
            | StoreError::Outage { .. }
            | StoreError::Closed => Self::unavailable("the database does not answer; try again"),
            StoreError::ReadOnly { .. } => Self::unavailable("the database is read-only; try again"),
            StoreError::Locked { .. } => Self::unavailable("the database is locked; try again"),
            StoreError::Full { .. } => Self::insufficient_storage("the database"),
            _ => Self::internal("the database failed"),
        }
    }
}
