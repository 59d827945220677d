//! Where records are kept.
//!
//! A record is a document with a generation. Nothing is changed that was not read before: a change names the generation
//! that it starts from, and is refused as a whole when another change was faster. [`Records`] then starts anew from what is
//! there, so that two replicas on one database never lose an update.
//!
//! All that an operation changes, with the events that tell of it, is one [`Changes`]: all of it is there afterwards, or
//! nothing.

mod records;
mod sql;

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use axum::http::StatusCode;
use chrono::{DateTime, Utc};
use uuid::Uuid;

pub use records::{Change, Record, Records, Stored};
pub use sql::SqlStore;

use super::event::{Event, EventPage, EventQuery};
use crate::api_error::ApiError;

/// A kind of record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// A cluster.
    Cluster,
    /// An infra-env.
    InfraEnv,
    /// A host of an infra-env.
    Host,
    /// A live image that was added.
    OsImage,
}

impl Kind {
    /// As the database calls it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Cluster => "cluster",
            Self::InfraEnv => "infra-env",
            Self::Host => "host",
            Self::OsImage => "os-image",
        }
    }
}

/// What names one record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    /// Its kind.
    pub kind: Kind,
    /// The record that it is part of: the infra-env of a host. Others are part of nothing.
    pub parent: Option<Uuid>,
    /// Its id.
    pub id: Uuid,
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.kind.as_str(), self.id)
    }
}

/// A record as the database has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// Its name.
    pub key: Key,
    /// The cluster that it belongs to.
    pub cluster: Option<Uuid>,
    /// The key that the token in its URLs is signed with.
    pub token_key: Option<Uuid>,
    /// Whether it is deleted, and kept for a while.
    pub deleted: bool,
    /// How often it was written.
    pub generation: i64,
    /// The record, as JSON.
    pub document: String,
}

/// Which records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Filter {
    /// Of which kind.
    pub kind: Kind,
    /// Parts of which record; all if nothing.
    pub parent: Option<Uuid>,
    /// Of which cluster; all if nothing.
    pub cluster: Option<Uuid>,
    /// Deleted ones as well.
    pub deleted: bool,
}

impl Filter {
    /// All records of a kind that are not deleted.
    #[must_use]
    pub fn all(kind: Kind) -> Self {
        Self { kind, parent: None, cluster: None, deleted: false }
    }

    /// Those that are part of a record.
    #[must_use]
    pub fn within(self, parent: Uuid) -> Self {
        Self { parent: Some(parent), ..self }
    }

    /// Those of a cluster.
    #[must_use]
    pub fn of_cluster(self, cluster: Uuid) -> Self {
        Self { cluster: Some(cluster), ..self }
    }

    /// With those that are deleted.
    #[must_use]
    pub fn with_deleted(self) -> Self {
        Self { deleted: true, ..self }
    }
}

/// What a record with this document counts against a [`Bound`], in bytes: its length in whole blocks.
///
/// Reports of about the same length count the same, so that few of them have to be checked against a bound.
#[must_use]
pub fn counted_size(document: &str) -> u64 {
    const BLOCK: u64 = 4 << 10;
    u64::try_from(document.len()).unwrap_or(u64::MAX).div_ceil(BLOCK).saturating_mul(BLOCK)
}

/// How much the parts of one record may be together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bound {
    /// The kind of the parts.
    pub kind: Kind,
    /// The record that they are part of.
    pub parent: Uuid,
    /// How many there may be, without deleted ones.
    pub records: u64,
    /// What all of them, deleted ones included, may [count](counted_size).
    pub bytes: u64,
}

/// A position in a list of records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position {
    made_at: i64,
    id: Uuid,
}

impl Position {
    /// Before the first record.
    pub const START: Self = Self { made_at: i64::MIN, id: Uuid::nil() };
}

/// Consecutive records of a list, as many as fit in little memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowPage {
    /// The records. A page may be empty although others follow.
    pub rows: Vec<Row>,
    /// Where the next page starts; `None` after the last page.
    pub next: Option<Position>,
}

/// One step of a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// A record that is new. Its generation is 1, whatever the row says.
    Insert(Row),
    /// A record takes the place of the one of the generation before: the row's own, less one.
    Replace(Row),
    /// A record goes, if it still has that generation.
    Remove(Key, i64),
    /// A record has to be there and not be deleted, in any generation, and stays so until the change is done.
    Require(Key),
    /// No record may be left that the filter names, when all other steps are done.
    ///
    /// It also holds against changes that happen at the same time, if these require a record that this change replaces or
    /// removes: who deletes an infra-env wants none of its hosts left, and who adds a host requires its infra-env.
    RequireNone(Filter),
    /// The parts of a record must be within a bound when all other steps are done; otherwise the outcome is
    /// [`Outcome::OutOfBounds`].
    ///
    /// SQLite never exceeds the bound. On PostgreSQL, changes that run at the same time do not see each other: each of the
    /// connections of each replica may add one change beyond it.
    RequireWithin(Bound),
}

/// All that one operation does: everything or nothing of it happens.
#[derive(Clone, Debug, Default)]
pub struct Changes {
    /// The steps. Those on one record happen in their order; no order is kept between records.
    pub steps: Vec<Step>,
    /// What there is to tell.
    pub events: Vec<Event>,
}

/// The database does not do what it is there for.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The URL of the database is one of something else.
    #[error("a database URL starts with `sqlite:` or `postgres:`, this one with {given}")]
    UnknownScheme {
        /// How it starts, if that can be told.
        given: String,
    },
    /// The database would be gone with the process.
    #[error("a database in memory keeps nothing; name a file")]
    Memory,
    /// The URL of a file says more than where it is.
    #[error(
        "`{given}` of the URL of the database is not understood; it is `sqlite:PATH`, with `?mode=rw` or `?mode=rwc`"
    )]
    Parameters {
        /// What it says.
        given: String,
    },
    /// A file cannot be used.
    #[error("the database file {} cannot be used", path.display())]
    File {
        /// Which one.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// Another process has the file.
    #[error("the database file {} is in use: it belongs to one process; several can share a PostgreSQL database", path.display())]
    InUse {
        /// Which one.
        path: PathBuf,
    },
    /// The URL of the database cannot be used.
    #[error("the database {database} cannot be opened")]
    Open {
        /// Which one, without its password.
        database: String,
        /// Why.
        source: sqlx::Error,
    },
    /// The tables are of a version to come.
    #[error(
        "a newer Kindling made the tables of the database {database}: they are of version {version}, this one knows {known}"
    )]
    Newer {
        /// Which one, without its password.
        database: String,
        /// A version that it has.
        version: i64,
        /// The newest version that is known here.
        known: i64,
    },
    /// The tables cannot be made.
    #[error("the tables of the database cannot be made")]
    Migrate(#[source] sqlx::migrate::MigrateError),
    /// A statement failed.
    #[error("the database failed while {doing}")]
    Statement {
        /// What was being done.
        doing: &'static str,
        /// Why it failed; several changes may fail for one reason.
        source: Arc<sqlx::Error>,
    },
    /// The disk of the database is full.
    #[error("no space left on the disk of the database while {doing}")]
    Full {
        /// What was being done.
        doing: &'static str,
        /// What the database said; several changes may fail for one reason.
        source: Arc<sqlx::Error>,
    },
    /// The database is not there, or went away.
    #[error("the database could not be reached while {doing}")]
    Unreachable {
        /// What was being done.
        doing: &'static str,
        /// Why it could not be reached; several changes may fail for one reason.
        source: Arc<sqlx::Error>,
    },
    /// The database says nothing at all.
    #[error("the database did not answer while {doing}")]
    Silent {
        /// What was being done.
        doing: &'static str,
    },
    /// A document is no JSON.
    #[error("the document of {key} has a NUL byte")]
    Nul {
        /// Whose it is.
        key: Key,
    },
    /// A record cannot be read.
    #[error("{key} is damaged in the database")]
    Damaged {
        /// Which one.
        key: Key,
        /// What is wrong with it.
        source: serde_json::Error,
    },
    /// Others were faster, again and again.
    #[error("others change the same record all the time")]
    Contended,
    /// The store is closing.
    #[error("the database is being closed")]
    Closed,
}

/// What became of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Outcome {
    /// It is on the disk.
    Done,
    /// Nothing of it is: a record is not as the change takes for granted.
    Overtaken,
    /// Nothing of it is: it would exceed a bound.
    OutOfBounds,
}

/// A database of records and events.
#[async_trait]
pub trait Store: fmt::Debug + Send + Sync {
    /// One record, also if it is deleted.
    async fn get(&self, key: Key) -> Result<Option<Row>, StoreError>;

    /// Records in the order of their making.
    async fn list(&self, filter: Filter) -> Result<Vec<Row>, StoreError>;

    /// One page of that list. Between two pages, nothing of the database is held: records may be added and removed.
    async fn page(&self, filter: Filter, after: Position) -> Result<RowPage, StoreError>;

    /// How many records a filter names.
    async fn count(&self, filter: Filter) -> Result<u64, StoreError>;

    /// The records of a kind with a token that is signed with another key; those with any token, if there is no key.
    async fn signed_otherwise(&self, kind: Kind, key: Option<Uuid>) -> Result<Vec<Key>, StoreError>;

    /// The records of a kind that are deleted and kept for a while.
    async fn deleted(&self, kind: Kind) -> Result<Vec<Key>, StoreError>;

    /// Whether a record is there and not deleted.
    async fn is_there(&self, key: Key) -> Result<bool, StoreError>;

    /// Whether there is any record that a filter names.
    async fn has_any(&self, filter: Filter) -> Result<bool, StoreError>;

    /// Does all of a change or nothing. When it is done it is on the disk.
    async fn commit(&self, changes: Changes) -> Result<Outcome, StoreError>;

    /// Events.
    async fn events(&self, query: &EventQuery) -> Result<EventPage, StoreError>;

    /// Forgets events from before a time that name no record which is still there: at most so many. Says how many.
    async fn forget_events(&self, before: DateTime<Utc>, most: usize) -> Result<usize, StoreError>;

    /// Whether nobody else changes the records: no other process, and nobody in this one past this store.
    fn is_alone(&self) -> bool;

    /// Whether the database answers.
    async fn ping(&self) -> Result<(), StoreError>;

    /// Ends what is under way and closes the database.
    async fn close(&self);
}

impl From<StoreError> for ApiError {
    fn from(error: StoreError) -> Self {
        tracing::error!(error = &error as &dyn std::error::Error, "the database failed");
        match error {
            StoreError::Contended => Self::new(
                StatusCode::SERVICE_UNAVAILABLE,
                "the record is being changed by too many others at once; try again",
            ),
            StoreError::Silent { .. } | StoreError::Unreachable { .. } | StoreError::Closed => {
                Self::new(StatusCode::SERVICE_UNAVAILABLE, "the database does not answer; try again")
            }
            StoreError::Full { .. } => Self::insufficient_storage("the database"),
            _ => Self::internal("the database failed"),
        }
    }
}
