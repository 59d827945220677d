//! Filters for records, pages of lists, and limits on the number and size of records.

use std::collections::BTreeMap;

use uuid::Uuid;

use super::list_range::ListRange;
use super::{Key, Kind, ReportKinds, Reports, Row};

/// A filter that selects records by kind and optional conditions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Filter {
    /// The kind of the selected records.
    pub kind: Kind,
    /// The parent of the selected records. `None` for no restriction.
    pub parent: Option<Uuid>,
    /// The cluster of the selected records. `None` for no restriction.
    pub cluster: Option<Uuid>,
    /// The status of the selected records. `None` for no restriction.
    pub status: Option<&'static str>,
    /// The role of the selected hosts. `None` for no restriction.
    pub role: Option<&'static str>,
    /// Whether deleted records are also selected.
    pub deleted: bool,
}

impl Filter {
    /// Returns a filter for all records of a kind that are not deleted.
    #[must_use]
    pub fn all(kind: Kind) -> Self {
        Self { kind, parent: None, cluster: None, status: None, role: None, deleted: false }
    }

    /// Restricts the filter to records with this parent.
    #[must_use]
    pub fn within(self, parent: Uuid) -> Self {
        Self { parent: Some(parent), ..self }
    }

    /// Restricts the filter to records of this cluster.
    #[must_use]
    pub fn of_cluster(self, cluster: Uuid) -> Self {
        Self { cluster: Some(cluster), ..self }
    }

    /// Extends the filter to deleted records.
    #[must_use]
    pub fn with_deleted(self) -> Self {
        Self { deleted: true, ..self }
    }
}

/// The number of hosts in one cluster with the same status, counted separately for deleted hosts.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct HostCount {
    /// Id of the cluster that the hosts belong to.
    pub cluster: Uuid,
    /// Status of the hosts, such as `known`.
    pub status: String,
    /// Whether these hosts are deleted.
    pub deleted: bool,
    /// The number of hosts with this status.
    pub hosts: u64,
}

/// A limit on the records of one kind with the same parent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bound {
    /// The kind of the limited records.
    pub kind: Kind,
    /// The id of the parent, for example an infra-env.
    pub parent: Uuid,
    /// Maximum number of records, not counting deleted ones. `u64::MAX` for no limit.
    pub records: u64,
    /// Maximum total [counted size](super::counted_size) in bytes, including deleted records.
    pub bytes: u64,
}

/// A position in a list of records. Lists are in the order of creation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    pub(super) made_at: i64,
    pub(super) id: Uuid,
}

impl Position {
    /// The position before the first record.
    pub const START: Self = Self { made_at: i64::MIN, id: Uuid::nil() };
}

/// A query for one page of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageQuery {
    /// The filter that selects the records of the whole list.
    pub filter: Filter,
    /// The kinds of reports to read with each host. Has no effect for other records.
    pub reports: ReportKinds,
    /// The position after which the page starts.
    pub after: Position,
    /// Number of records to skip after the position.
    pub offset: u64,
    /// Maximum number of records in the page. `None` for as many as fit into a page.
    pub limit: Option<u64>,
}

impl PageQuery {
    /// Returns a query for the first page of a list, without reports.
    #[must_use]
    pub fn first(filter: Filter) -> Self {
        Self { filter, reports: ReportKinds::NONE, after: Position::START, offset: 0, limit: None }
    }

    /// Also reads reports of these kinds.
    #[must_use]
    pub fn with_reports(self, reports: ReportKinds) -> Self {
        Self { reports, ..self }
    }

    /// Restricts the list to a range.
    #[must_use]
    pub fn in_range(self, range: ListRange) -> Self {
        Self { offset: range.offset, limit: range.limit, ..self }
    }

    /// Moves the start of the page to a position, without an offset.
    #[must_use]
    pub fn after(self, after: Position) -> Self {
        Self { after, offset: 0, ..self }
    }
}

/// Consecutive records of a list. A page is small to save memory, but contains at least one record if any record
/// follows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RowPage {
    /// The records of the page. Empty if no record follows the start of the page.
    pub rows: Vec<Row>,
    /// The requested reports, by the key of their host. Hosts without reports are absent.
    pub reports: BTreeMap<Key, Reports>,
    /// The position where the next page starts. `None` if this is the last page.
    pub next: Option<Position>,
}
