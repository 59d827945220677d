//! What an agent left out of its inventory report.

use crate::summary::InventorySummary;

/// What an agent left out of its inventory report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReportExtent<'a> {
    /// Nothing.
    Complete,
    /// A part, for these reasons.
    Partial(&'a str),
    /// All, for these reasons.
    Empty(&'a str),
    /// The agent names an extent that this service does not know.
    Unknown,
}

impl<'a> ReportExtent<'a> {
    /// Returns the extent of a report. An agent that left out nothing may name no extent.
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

/// What a user can do if a report is truncated.
pub(super) const REDUCE_REPORT: &str =
    "Disconnect devices that the installation does not need, and boot the host again.";

/// What a user can do if the kind of truncation is unknown.
pub(super) const UPDATE_AGENT: &str =
    "Boot the host from a current discovery image, so that it runs the agent of this service.";
