//! Errors of the store.

use std::path::PathBuf;
use std::sync::Arc;

use super::{Key, ReportKind};
use crate::error::Error;

/// A failure of the store or its database.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The URL of the database has an unknown scheme.
    #[error("the database URL starts with {given}; use `sqlite:` or `postgres:`")]
    UnknownScheme {
        /// The scheme in the URL. Replaced by a placeholder if it may be part of a password.
        given: String,
    },
    /// The URL names an in-memory database, which would be lost with the process.
    #[error("in-memory databases are not supported; name a file")]
    Memory,
    /// The URL of a database file has no path or has unknown parameters. The message contains no part of the URL, which
    /// may contain a secret.
    #[error("unsupported database URL; use `sqlite:PATH`, with `?mode=rw` or `?mode=rwc`")]
    FileUrl,
    /// The URL of a server has unknown parameters, or parameters that would not encrypt the connection as intended.
    #[error("unsupported database URL: {reason}")]
    Url {
        /// What is wrong, without any value from the URL.
        reason: String,
    },
    /// The database file or a file next to it cannot be used.
    #[error("cannot use database file {}", path.display())]
    File {
        /// Path of the file that cannot be used.
        path: PathBuf,
        /// The error of the operating system.
        source: std::io::Error,
    },
    /// Another process uses the file.
    #[error("database file {} is in use by another process; use PostgreSQL to share a database", path.display())]
    InUse {
        /// Path of the database file.
        path: PathBuf,
    },
    /// The database cannot be opened, or the server cannot be reached.
    #[error("cannot open database {database}")]
    Open {
        /// Path or URL of the database, without the password.
        database: String,
        /// The error of the driver.
        source: sqlx::Error,
    },
    /// The tables were created by a newer release.
    #[error(
        "the tables of database {database} have version {version}, newer than the supported version {known}; use a newer Kindling"
    )]
    Newer {
        /// Path or URL of the database, without the password.
        database: String,
        /// The version of the tables in the database.
        version: i64,
        /// The newest version that this release supports.
        known: i64,
    },
    /// The tables cannot be created or migrated.
    #[error("cannot create the tables of the database")]
    Migrate(#[source] sqlx::migrate::MigrateError),
    /// The records have documents without a schema version, from a very old release.
    #[error(
        "cannot read {records} of the records in database {database}: schema version 0 is not supported; \
         use a new database"
    )]
    UnsupportedRecords {
        /// Path or URL of the database, without the password.
        database: String,
        /// The number of records that cannot be read.
        records: i64,
    },
    /// A statement failed in the database.
    #[error("the database failed while {doing}")]
    Statement {
        /// The operation that failed, such as `writing a change`.
        doing: &'static str,
        /// The error of the driver. Several changes can share one error.
        source: Arc<sqlx::Error>,
    },
    /// The disk of the database is full.
    #[error("no space left on the disk of the database while {doing}")]
    Full {
        /// The operation that failed, such as `writing a change`.
        doing: &'static str,
        /// The error of the driver. Several changes can share one error.
        source: Arc<sqlx::Error>,
    },
    /// The database is read-only.
    #[error("the database is read-only while {doing}; connect to a server that accepts changes")]
    ReadOnly {
        /// The operation that failed, such as `writing a change`.
        doing: &'static str,
        /// The error of the driver. Several changes can share one error.
        source: Arc<sqlx::Error>,
    },
    /// Another session has locked the tables.
    #[error("the tables of the database are locked by another session while {doing}")]
    Locked {
        /// The operation that failed, such as `writing a change`.
        doing: &'static str,
    },
    /// The database file was removed or replaced while it was open.
    #[error(
        "database file {} was removed or replaced while in use; its content is lost at the next restart unless it is \
         restored",
        path.display()
    )]
    Moved {
        /// Path of the database file.
        path: PathBuf,
    },
    /// The database is unreachable.
    #[error("the database could not be reached while {doing}")]
    Unreachable {
        /// The operation that failed, such as `writing a change`.
        doing: &'static str,
        /// The error of the driver. Several changes can share one error.
        source: Arc<sqlx::Error>,
    },
    /// The database was already known to be unreachable, so the operation was not attempted.
    #[error("the database is unreachable, not asked while {doing}")]
    Outage {
        /// The operation that was not attempted, such as `writing a change`.
        doing: &'static str,
    },
    /// The database did not respond in time.
    #[error("the database did not respond while {doing}")]
    Silent {
        /// The operation that timed out, such as `writing a change`.
        doing: &'static str,
    },
    /// A document contains a NUL byte, which is invalid in JSON.
    #[error("the document of {key} contains a NUL byte")]
    Nul {
        /// Key of the record or of the report's host.
        key: Key,
    },
    /// A record in the database cannot be decoded.
    #[error("{key} is damaged in the database")]
    Damaged {
        /// Key of the record that cannot be decoded.
        key: Key,
        /// The error of the JSON parser.
        source: serde_json::Error,
    },
    /// A report that a host names is missing in the database.
    #[error("the report {kind} of {key} is missing in the database")]
    MissingReport {
        /// Key of the host that names the report.
        key: Key,
        /// The kind of the missing report.
        kind: ReportKind,
    },
    /// A record cannot be serialized as JSON.
    #[error("{key} cannot be written as JSON")]
    Unwritable {
        /// Key of the record that cannot be serialized.
        key: Key,
        /// The error of the JSON serializer.
        source: serde_json::Error,
    },
    /// Every attempt at a change conflicted with another change, or the database did not grant a lock in time.
    #[error("too many concurrent updates of this record")]
    Contended,
    /// The store is closing and accepts no more operations.
    #[error("the database is being closed")]
    Closed,
}

impl StoreError {
    /// Returns `true` if the database could not be reached or did not respond. The same operation may succeed later.
    #[must_use]
    pub fn is_outage(&self) -> bool {
        matches!(self, Self::Silent { .. } | Self::Unreachable { .. } | Self::Outage { .. })
    }

    /// Returns `true` if the error is about the database as a whole rather than the requested record.
    pub(crate) fn is_of_database(&self) -> bool {
        self.is_outage() || matches!(self, Self::Statement { .. } | Self::Locked { .. } | Self::Contended)
    }

    /// Logs the error. An outage is logged only once, when it begins.
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
            | StoreError::Closed => Self::unavailable("the database does not respond; try again"),
            StoreError::ReadOnly { .. } => Self::unavailable("the database is read-only; try again"),
            StoreError::Locked { .. } => Self::unavailable("the database is locked; try again"),
            StoreError::Full { .. } => Self::insufficient_storage("the database"),
            _ => Self::internal("the database failed"),
        }
    }
}
