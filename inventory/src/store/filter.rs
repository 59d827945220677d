//! Selections of records, pages of lists, and limits.

use std::collections::BTreeMap;

use uuid::Uuid;

use super::list_range::ListRange;
use super::{Key, Kind, ReportKinds, Reports, Row};

/// Selects records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Filter {
    /// Only records of this kind.
    pub kind: Kind,
    /// Only records with this parent. `None`: all.
    pub parent: Option<Uuid>,
    /// Only records of this cluster. `None`: all.
    pub cluster: Option<Uuid>,
    /// Only records with this status. `None`: all.
    pub status: Option<&'static str>,
    /// Only hosts with this role. `None`: all.
    pub role: Option<&'static str>,
    /// Also deleted records.
    pub deleted: bool,
}

impl Filter {
    /// Selects all records of a kind that are not deleted.
    #[must_use]
    pub fn all(kind: Kind) -> Self {
        Self { kind, parent: None, cluster: None, status: None, role: None, deleted: false }
    }

    /// Selects only records with this parent.
    #[must_use]
    pub fn within(self, parent: Uuid) -> Self {
        Self { parent: Some(parent), ..self }
    }

    /// Selects only records of this cluster.
    #[must_use]
    pub fn of_cluster(self, cluster: Uuid) -> Self {
        Self { cluster: Some(cluster), ..self }
    }

    /// Also selects deleted records.
    #[must_use]
    pub fn with_deleted(self) -> Self {
        Self { deleted: true, ..self }
    }
}

/// The number of hosts of one cluster that have one status, either deleted or not.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct HostCount {
    /// The cluster.
    pub cluster: Uuid,
    /// The status.
    pub status: String,
    /// Whether these hosts are deleted.
    pub deleted: bool,
    /// The number of hosts.
    pub hosts: u64,
}

/// A limit on all records with the same parent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bound {
    /// The kind of the records.
    pub kind: Kind,
    /// The parent of the records.
    pub parent: Uuid,
    /// Maximum number of records, without deleted ones. `u64::MAX`: no limit.
    pub records: u64,
    /// The most [counted bytes](super::counted_size), including deleted records.
    pub bytes: u64,
}

/// A position in a list of records, which is in the order of their creation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    pub(super) made_at: i64,
    pub(super) id: Uuid,
}

impl Position {
    /// The position before the first record.
    pub const START: Self = Self { made_at: i64::MIN, id: Uuid::nil() };
}

/// Selects a page of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageQuery {
    /// The records of the list.
    pub filter: Filter,
    /// Also read reports of these kinds, if the records are hosts.
    pub reports: ReportKinds,
    /// Where the page starts.
    pub after: Position,
    /// Number of records to skip from there.
    pub offset: u64,
    /// Maximum number of records of the page; `None` for as many as fit.
    pub limit: Option<u64>,
}

impl PageQuery {
    /// Selects the first page of a list, without reports.
    #[must_use]
    pub fn first(filter: Filter) -> Self {
        Self { filter, reports: ReportKinds::NONE, after: Position::START, offset: 0, limit: None }
    }

    /// Also selects reports of some kinds.
    #[must_use]
    pub fn with_reports(self, reports: ReportKinds) -> Self {
        Self { reports, ..self }
    }

    /// Selects only a part of the list.
    #[must_use]
    pub fn in_range(self, range: ListRange) -> Self {
        Self { offset: range.offset, limit: range.limit, ..self }
    }

    /// Selects the page that starts after a position.
    #[must_use]
    pub fn after(self, after: Position) -> Self {
        Self { after, offset: 0, ..self }
    }
}

/// Consecutive records of a list. Pages are small, to save memory, but have at least one record.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RowPage {
    /// The records. Empty if no record follows the start of the page.
    pub rows: Vec<Row>,
    /// The requested reports of these records, which are hosts. Hosts without reports are absent.
    pub reports: BTreeMap<Key, Reports>,
    /// Where the next page starts. `None` after the last page.
    pub next: Option<Position>,
}
