//! A host and its reports while a change edits them.

use std::collections::BTreeMap;

use rules::summary::HostSummary;

use super::bounds::require_room_for_reports;
use super::findings::ReportSummary;
use super::record::HostRecord;
use super::stored_results::{AssessmentResults, stored_results};
use super::stored_summary::{StoredSummary, rebuild, stored_summary};
use crate::HostLimits;
use crate::error::Error;
use crate::store::{Change, ReadSet, Record as _, ReportKind, ReportKinds, Reports, Stored};

/// The reports that an [assessment](super::assessment) reads.
pub(crate) const ASSESSED: ReportKinds = ReportKinds::new(&[ReportKind::Summary, ReportKind::Results]);

/// A host that a change edits, with the stored reports that the change reads and the new reports that it sets.
#[derive(Debug)]
pub(crate) struct HostDraft {
    pub(crate) record: HostRecord,
    /// The host before the change.
    stored: HostRecord,
    generation: i64,
    size: u64,
    /// Kinds of the reports before the change.
    stored_kinds: Vec<ReportKind>,
    /// Reports read from the database.
    stored_reports: Reports,
    /// Reports that the change sets.
    new_reports: BTreeMap<ReportKind, String>,
    /// The summary of the reports, if the change reads it.
    summary: Option<HostSummary>,
    /// Whether a newer release wrote the stored summary.
    has_newer_summary: bool,
    /// The stored results of the host's assessment, if the change reads them and they have the version of this release.
    results: Option<AssessmentResults>,
    /// Whether the change replaces the results.
    has_new_results: bool,
}

impl HostDraft {
    /// Returns a draft of a stored host without reports.
    pub(crate) fn new(stored: Stored<HostRecord>) -> Self {
        let Stored { record, generation, size } = stored;
        let kinds = ReportKind::ALL.iter().copied();
        let stored_kinds = kinds.filter(|kind| record.findings.has_report(*kind)).collect();
        Self {
            stored: record.clone(),
            record,
            generation,
            size,
            stored_kinds,
            stored_reports: Reports::default(),
            new_reports: BTreeMap::new(),
            summary: None,
            has_newer_summary: false,
            results: None,
            has_new_results: false,
        }
    }

    /// Reads reports of a host, and returns its draft. If the kinds include the summary and it must be rebuilt, reads
    /// all reports.
    ///
    /// # Errors
    ///
    /// Returns an error if the database fails, or if one of these reports is damaged.
    pub(crate) async fn read(
        reads: &ReadSet,
        stored: Stored<HostRecord>,
        kinds: ReportKinds,
    ) -> Result<Self, Error> {
        let mut reports = reads.reports(&stored, kinds).await?;
        let (mut summary, mut has_newer_summary) = (None, false);
        if kinds.iter().any(|kind| kind == ReportKind::Summary) {
            let state = stored_summary(&stored.record, &reports)?;
            has_newer_summary = matches!(state, StoredSummary::Newer);
            summary = Some(match state {
                StoredSummary::Current(summary) => *summary,
                StoredSummary::Missing | StoredSummary::Newer => {
                    reports = reads.reports(&stored, ReportKinds::new(ReportKind::ALL)).await?;
                    rebuild(&stored.record, &reports)?
                }
            });
        }
        let results = stored_results(&stored.record, &reports)?;
        Ok(Self { stored_reports: reports, summary, has_newer_summary, results, ..Self::new(stored) })
    }

    /// Returns the draft of a host that registers for the first time.
    pub(crate) fn of_new_host(record: HostRecord) -> Self {
        let summary = Some(HostSummary::default());
        Self { summary, ..Self::new(Stored { record, generation: 0, size: 0 }) }
    }

    /// Returns the summary of the host's reports.
    ///
    /// # Errors
    ///
    /// Returns an internal error if the change did not read the summary.
    pub(crate) fn summary(&self) -> Result<&HostSummary, Error> {
        self.summary.as_ref().ok_or_else(|| self.unread_report_error(ReportKind::Summary))
    }

    /// Edits the summary of the host's reports.
    ///
    /// # Errors
    ///
    /// Returns an internal error if the change did not read the summary.
    pub(crate) fn edit_summary<T>(&mut self, edit: impl FnOnce(&mut HostSummary) -> T) -> Result<T, Error> {
        let Some(summary) = self.summary.as_mut() else {
            return Err(self.unread_report_error(ReportKind::Summary));
        };
        let edited = edit(summary);
        if self.has_newer_summary {
            // A newer release wrote the stored summary. Remove it, so that the newer release computes the summary again
            // from the reports.
            self.record.findings.reports.remove(ReportKind::Summary.as_str());
        } else {
            let text = summary
                .to_stored()
                .map_err(|error| Error::broken(format_args!("cannot write a summary: {error}")))?;
            self.set_report(ReportKind::Summary, text);
        }
        Ok(edited)
    }

    /// Forgets the summary after the reports were discarded.
    pub(crate) fn clear_summary(&mut self) {
        self.summary = self.summary.take().map(|_| HostSummary::default());
    }

    /// Returns the results of the host's assessment: the stored results, or the results that the change sets.
    pub(crate) fn results(&self) -> Option<&AssessmentResults> {
        self.results.as_ref()
    }

    /// Replaces the results of the host's assessment.
    pub(crate) fn set_results(&mut self, results: AssessmentResults) {
        self.results = Some(results);
        self.has_new_results = true;
    }

    fn unread_report_error(&self, kind: ReportKind) -> Error {
        Error::broken(format_args!("the report {kind} of host {} was not read", self.record.id))
    }

    /// Returns `true` if the change edited the host or its reports.
    pub(crate) fn is_edited(&self) -> bool {
        // A report is set only if its digest in the record changes, so reports need no separate comparison.
        self.record != self.stored || self.has_new_results
    }

    /// Returns the generation of the stored host.
    pub(crate) fn generation(&self) -> i64 {
        self.generation
    }

    /// Returns a report. The text is empty if the host has no report of this kind.
    ///
    /// # Errors
    ///
    /// Returns an internal error if the report is missing from the database, or if the change did not read it.
    pub(crate) fn report(&self, kind: ReportKind) -> Result<&str, Error> {
        if !self.record.findings.has_report(kind) {
            return Ok("");
        }
        let new = self.new_reports.get(&kind).map(String::as_str);
        let report = new.or_else(|| self.stored_reports.get(kind));
        report.ok_or_else(|| self.unread_report_error(kind))
    }

    /// Replaces a report. An empty report is removed, and a report with the same digest is not written.
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

    /// Adds the edited host, and its set or removed reports, to a change. Returns the host.
    pub(crate) fn write(self, change: &mut Change) -> Result<HostRecord, Error> {
        self.add_to_change(change)?;
        Ok(self.record)
    }

    /// Adds the edited host to a change. If the host grew, the change fails unless the infra-env has room for it.
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
        self.add_reports(change)?;
        Ok(size)
    }

    /// Adds the new host to a change.
    pub(crate) fn insert(self, change: &mut Change) -> Result<HostRecord, Error> {
        change.insert(&self.record)?;
        self.add_reports(change)?;
        Ok(self.record)
    }

    fn add_reports(&self, change: &mut Change) -> Result<(), Error> {
        for (kind, report) in &self.new_reports {
            if self.record.findings.has_report(*kind) {
                change.put_report(&self.record, *kind, report.clone());
            }
        }
        if let Some(results) = self.results.as_ref().filter(|_| self.has_new_results) {
            change.put_results(self.record.key(), results.to_stored()?);
        }
        Ok(())
    }
}
