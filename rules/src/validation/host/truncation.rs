//! The extent to which an agent truncated its inventory report.

use crate::summary::InventorySummary;

/// The extent to which an agent truncated its inventory report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReportExtent<'a> {
    /// The report is complete.
    Complete,
    /// A part of the report is missing, for the reasons that the agent reports.
    Partial(&'a str),
    /// The whole report is missing, for the reasons that the agent reports.
    Empty(&'a str),
    /// The agent reported an extent unknown to this service.
    Unknown,
}

impl<'a> ReportExtent<'a> {
    /// Returns the extent of a report. The agent may omit the extent of a complete report.
    pub(super) fn from_report(report: &'a InventorySummary) -> Self {
        let Some(truncation) = &report.truncation else { return Self::Complete };
        match &*truncation.extent {
            "" => Self::Complete,
            "partial" => Self::Partial(&truncation.reasons),
            "full" => Self::Empty(&truncation.reasons),
            _ => Self::Unknown,
        }
    }
}

/// The message for an unknown extent.
pub(super) const UNEXPECTED_TYPE: &str = "Unexpected inventory truncation type";

/// The remedy for a truncated report.
pub(super) const REDUCE_REPORT: &str =
    "Disconnect devices that the installation does not need, and boot the host again.";

/// The remedy for an unknown extent.
pub(super) const UPDATE_AGENT: &str =
    "Boot the host from a current discovery image, so that it runs the agent of this service.";
