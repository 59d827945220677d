//! Types that the store keeps as records, and their conversion from and to rows.

use std::fmt::Debug;

use serde::Serialize;
use serde::de::DeserializeOwned;
use uuid::Uuid;

use super::check_ins::PendingCheckIns;
use super::{Columns, Key, Kind, ReportKind, ReportKinds, Reports, Row, StoreError, counted_size};

/// A type whose values are stored as records.
pub trait Record: Serialize + DeserializeOwned + Clone + Debug + Send + Sync + 'static {
    /// The kind of record, which selects its rows in the database.
    const KIND: Kind;

    /// Returns the id, which is unique among the records of this kind and parent.
    fn id(&self) -> Uuid;

    /// Returns the id of the parent record: the infra-env of a host. Other records have no parent.
    fn parent(&self) -> Option<Uuid> {
        None
    }

    /// Returns the values of the searchable columns. Implementations must set `macs`.
    fn columns(&self) -> Columns {
        Columns::default()
    }

    /// Sets the fields that the database updates without the document, such as the time of the last check-in.
    fn set_columns(&mut self, _columns: &Columns) {}

    /// Returns the total length in bytes of the reports that the record names. Reports are stored apart from the
    /// record.
    fn reports_len(&self) -> usize {
        0
    }

    /// Returns `true` if the record names a stored report of this kind.
    fn has_report(&self, _kind: ReportKind) -> bool {
        false
    }

    /// Returns the key of the record's row.
    fn key(&self) -> Key {
        Key { kind: Self::KIND, parent: self.parent(), id: self.id() }
    }
}

/// A record as read from the database, with its generation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stored<R> {
    /// The decoded document, including the fields that the database stores in separate columns.
    pub record: R,
    /// The generation at the time of the read. [`Change::replace`](super::Change::replace) requires it.
    pub generation: i64,
    /// The [counted size](counted_size) of the document and the reports, in bytes.
    pub size: u64,
}

/// Consecutive records of a list, with their reports if they are hosts.
pub type RecordPage<R> = Vec<(Stored<R>, Reports)>;

/// Returns the reports that the host's document names and the reports of kinds that no document names. Other reports
/// are dropped: a release that does not support a kind leaves the report behind when it removes the name.
///
/// # Errors
///
/// Returns the kind of a report that the host names but `reports` does not contain. A summary may be missing, because
/// it can be computed from the other reports.
pub(super) fn reports_of(
    host: &impl Record,
    kinds: ReportKinds,
    mut reports: Reports,
) -> Result<Reports, ReportKind> {
    let is_required =
        |kind: &ReportKind| kind.is_named_by_host() && *kind != ReportKind::Summary && host.has_report(*kind);
    if let Some(missing) = kinds.iter().filter(is_required).find(|kind| reports.get(*kind).is_none()) {
        return Err(missing);
    }
    reports.0.retain(|kind, _| !kind.is_named_by_host() || host.has_report(*kind));
    Ok(reports)
}

pub(super) fn encode<R: Record>(record: &R, generation: i64) -> Result<Row, StoreError> {
    let key = record.key();
    let document = serde_json::to_string(record).map_err(|source| StoreError::Unwritable { key, source })?;
    // If the conversion saturates, the length exceeds every bound.
    let reports_len = Some(u64::try_from(record.reports_len()).unwrap_or(u64::MAX));
    Ok(Row { columns: record.columns(), generation, reports_len, ..Row::new(key, document) })
}

/// Converts a row into a record. `reports` must contain all reports of these kinds that the record names.
pub(super) fn decode_with_reports<R: Record>(
    (mut row, reports): (Row, Reports),
    kinds: ReportKinds,
    check_ins: &PendingCheckIns,
) -> Result<(Stored<R>, Reports), StoreError> {
    let stored: Stored<R> = decode(&mut row, check_ins)?;
    match reports_of(&stored.record, kinds, reports) {
        Ok(reports) => Ok((stored, reports)),
        Err(kind) => Err(StoreError::MissingReport { key: row.key, kind }),
    }
}

/// Updates the columns of a row to the latest check-in, and converts the row into a record.
pub(super) fn decode<R: Record>(row: &mut Row, check_ins: &PendingCheckIns) -> Result<Stored<R>, StoreError> {
    if R::KIND == Kind::Host {
        check_ins.apply_to(row);
    }
    let mut record: R =
        serde_json::from_str(&row.document).map_err(|source| StoreError::Damaged { key: row.key, source })?;
    record.set_columns(&row.columns);
    let size = counted_size(row.document.len().saturating_add(record.reports_len()));
    Ok(Stored { record, generation: row.generation, size })
}
