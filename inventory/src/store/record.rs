//! Types that are stored as records, and the conversion from and to rows.

use std::fmt::Debug;

use serde::Serialize;
use serde::de::DeserializeOwned;
use uuid::Uuid;

use super::check_ins::PendingCheckIns;
use super::{Columns, Key, Kind, ReportKind, ReportKinds, Reports, Row, StoreError, counted_size};

/// A type that is stored as a record.
pub trait Record: Serialize + DeserializeOwned + Clone + Debug + Send + Sync + 'static {
    /// The kind.
    const KIND: Kind;

    /// Returns the id.
    fn id(&self) -> Uuid;

    /// Returns the id of the parent record.
    fn parent(&self) -> Option<Uuid> {
        None
    }

    /// Returns the parts that the database can search. `macs` is always set.
    fn columns(&self) -> Columns {
        Columns::default()
    }

    /// Takes over the parts that change without the document.
    fn set_columns(&mut self, _columns: &Columns) {}

    /// Returns the length of the reports that it names, in bytes. They are stored apart from the record.
    fn reports_len(&self) -> usize {
        0
    }

    /// Returns `true` if a report of this kind is stored with it.
    fn has_report(&self, _kind: ReportKind) -> bool {
        false
    }

    /// Returns the key.
    fn key(&self) -> Key {
        Key { kind: Self::KIND, parent: self.parent(), id: self.id() }
    }
}

/// A record with its generation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stored<R> {
    /// The record.
    pub record: R,
    /// The generation.
    pub generation: i64,
    /// The [counted size](counted_size) of the document and the reports.
    pub size: u64,
}

/// Consecutive records of a list, with their reports if they are hosts.
pub type RecordPage<R> = Vec<(Stored<R>, Reports)>;

/// Returns those of a host's reports that its document names, and those that no document names. A release that does not
/// know a kind leaves its report behind when it removes the name.
///
/// # Errors
///
/// Returns the kind of a report of these kinds that the host names but that was not found. A summary may be missing,
/// because it can be made from the other reports.
pub(super) fn reports_of(
    host: &impl Record,
    kinds: ReportKinds,
    mut found: Reports,
) -> Result<Reports, ReportKind> {
    let is_required =
        |kind: &ReportKind| kind.is_named_by_host() && *kind != ReportKind::Summary && host.has_report(*kind);
    if let Some(missing) = kinds.iter().filter(is_required).find(|kind| found.get(*kind).is_none()) {
        return Err(missing);
    }
    found.0.retain(|kind, _| !kind.is_named_by_host() || host.has_report(*kind));
    Ok(found)
}

pub(super) fn encode<R: Record>(record: &R, generation: i64) -> Result<Row, StoreError> {
    let key = record.key();
    let document = serde_json::to_string(record).map_err(|source| StoreError::Unwritable { key, source })?;
    // Longer reports than the largest number exceed every bound.
    let reports_len = Some(u64::try_from(record.reports_len()).unwrap_or(u64::MAX));
    Ok(Row { columns: record.columns(), generation, reports_len, ..Row::new(key, document) })
}

/// Converts a row into a record. All reports of these kinds that the record names must be present.
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

/// Converts a row into a record, after its columns are set to the latest check-in.
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
