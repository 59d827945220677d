//! The store of records and events, in SQLite or PostgreSQL.
//!
//! A record is a JSON document with a generation, which increases with each write. A change lists the generations of
//! the records that it was planned from. If one of them has changed, the store refuses the whole change, and
//! [`Records`] plans it again from the current records. So two replicas with one database never lose an update.
//!
//! All changes by an operation and their events form one [`Changes`]. The store writes all of it or nothing. The
//! [`Feed`] reports changed records, including changes by other replicas.

mod assessed;
mod changes;
mod check_ins;
mod columns;
mod database;
mod error;
mod failure;
mod feed;
mod filter;
mod key_locks;
mod list_range;
mod location;
mod metrics;
mod newer;
mod pool;
mod postgres;
mod queries;
mod query;
mod read_set;
mod record;
mod record_cache;
mod records;
mod row;
mod schema;
mod server_url;
mod session;
mod sql;
mod sqlite;
mod statements;
mod values;

pub use assessed::{AssessedState, generation_sum};
pub use changes::{Changes, Outcome, Step};
pub use check_ins::{CheckIn, CheckInLimit};
pub use columns::Columns;
pub use database::{Reservation, Store};
pub use error::StoreError;
pub use feed::{
    ChangeKind, Contact, Feed, FeedCache, FeedEvent, FeedMetrics, FeedPosition, FeedReader, RecordChange,
};
pub use filter::{Bound, Filter, HostCount, PageQuery, Position, RowPage};
pub use list_range::ListRange;
pub(crate) use list_range::part_of_list;
pub use metrics::{DurationHistogram, Operation, StoreMetrics};
pub use query::Query;
pub use read_set::{ReadSet, Reader};
pub use record::{Record, RecordPage, Stored};
pub use record_cache::CachedRecord;
pub(crate) use record_cache::{CacheEntry, RecordCache};
pub use records::{Change, Records};
pub use row::{Key, Kind, ReportKind, ReportKinds, Reports, Row, SCHEMA_VERSION, counted_size};
pub use sql::SqlStore;
