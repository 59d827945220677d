//! A host and its reports while a change edits them.

use std::collections::BTreeMap;

use assisted::inventory_report::InventoryReport;

use super::bounds::require_room_for_reports;
use super::findings::ReportSummary;
use super::inventory_report;
use super::record::HostRecord;
use crate::HostLimits;
use crate::error::Error;
use crate::store::{Change, ReportKind, Reports, Stored};

/// A host that a change edits, with the stored reports that the change reads and the new reports that it sets.
#[derive(Debug)]
pub(crate) struct HostDraft {
    /// The host.
    pub(crate) record: HostRecord,
    /// The host before the change.
    stored: HostRecord,
    generation: i64,
    size: u64,
    /// Kinds of the reports before the change.
    stored_kinds: Vec<ReportKind>,
    /// Reports that were read from the database.
    stored_reports: Reports,
    /// Reports that the change sets.
    new_reports: BTreeMap<ReportKind, String>,
}

impl HostDraft {
    /// Returns a draft of a stored host without reports.
    pub(crate) fn new(stored: Stored<HostRecord>) -> Self {
        Self::with_reports(stored, Reports::default())
    }

    /// Returns a draft of a stored host with some of its reports.
    pub(crate) fn with_reports(stored: Stored<HostRecord>, stored_reports: Reports) -> Self {
        let Stored { record, generation, size } = stored;
        let kinds = ReportKind::ALL.iter().copied();
        let stored_kinds = kinds.filter(|kind| record.findings.has_report(*kind)).collect();
        let stored = record.clone();
        Self { record, stored, generation, size, stored_kinds, stored_reports, new_reports: BTreeMap::new() }
    }

    /// Returns `true` if the change edited the host or its reports.
    pub(crate) fn is_edited(&self) -> bool {
        // A report is set only if its summary in the record changes.
        self.record != self.stored
    }

    /// Returns the generation of the stored host.
    pub(crate) fn generation(&self) -> i64 {
        self.generation
    }

    /// Returns a report; empty if the host has none of this kind.
    ///
    /// # Errors
    ///
    /// Returns an internal error if the report is missing in the database, or if the change did not ask for it.
    pub(crate) fn report(&self, kind: ReportKind) -> Result<&str, Error> {
        if !self.record.findings.has_report(kind) {
            return Ok("");
        }
        let new = self.new_reports.get(&kind).map(String::as_str);
        let report = new.or_else(|| self.stored_reports.get(kind));
        report.ok_or_else(|| {
            Error::broken(format_args!("the report {kind} of host {} was not read", self.record.id))
        })
    }

    /// Returns the parsed inventory report; an empty one if the host has none.
    pub(crate) fn inventory_report(&self) -> Result<InventoryReport<'_>, Error> {
        inventory_report::from_stored(self.record.id, self.report(ReportKind::Inventory)?)
    }

    /// Replaces a report. An empty report is removed, and one with the same digest is left alone.
    pub(crate) fn set_report(&mut self, kind: ReportKind, report: String) {
        let reports = &mut self.record.findings.reports;
        if report.is_empty() {
            reports.remove(kind.as_str());
            return;
        }
        let summary = ReportSummary::new(&report);
        if reports.get(kind.as_str()) != Some(&summary) {
            reports.insert(kind.as_str().to_owned(), summary);
            self.new_reports.insert(kind, report);
        }
    }

    /// Adds the edited host to a change, with the reports that were set or removed. Returns the host.
    pub(crate) fn write(self, change: &mut Change) -> Result<HostRecord, Error> {
        self.add_to_change(change)?;
        Ok(self.record)
    }

    /// Adds the edited host to a change. If it grew, the change is refused unless the infra-env has room for it.
    pub(crate) fn write_within(self, change: &mut Change, limits: &HostLimits) -> Result<HostRecord, Error> {
        if self.add_to_change(change)? > self.size {
            require_room_for_reports(change, self.record.infra_env_id, limits);
        }
        Ok(self.record)
    }

    fn add_to_change(&self, change: &mut Change) -> Result<u64, Error> {
        let size = change.replace(&self.record, self.generation)?;
        for kind in &self.stored_kinds {
            if !self.record.findings.has_report(*kind) {
                change.remove_report(&self.record, *kind);
            }
        }
        for (kind, report) in &self.new_reports {
            if self.record.findings.has_report(*kind) {
                change.put_report(&self.record, *kind, report.clone());
            }
        }
        Ok(size)
    }
}
