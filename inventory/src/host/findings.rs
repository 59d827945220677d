//! Facts from the reports of a host's agent.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use assisted::host::MediaStatus;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::store::ReportKind;
use crate::time::Millis;

/// Facts from the reports of a host's agent. The facts are reset when the agent registers again after a boot.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct HostFindings {
    /// Host name in the inventory report.
    pub hostname: String,
    /// MAC addresses in the inventory report, in lower case.
    pub macs: BTreeSet<String>,
    /// Seconds by which the clock of the host was ahead when this value last changed significantly. `None`: the agent
    /// sends no time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clock_skew: Option<i64>,
    /// Whether the agent has not checked in for too long. `None`: an earlier release wrote the host, so the status of
    /// the host shows whether its agent is silent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub silent: Option<bool>,
    /// Whether the host can read its boot media, if its agent has reported it.
    pub media: Option<MediaStatus>,
    /// The [basis](crate::Settings::assessment_basis) of the last assessment that wrote the host while it had no
    /// cluster. Empty: no such assessment.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub assessed_by: String,
    /// The stored reports, by the name of their [`ReportKind`].
    pub reports: BTreeMap<String, ReportSummary>,
    /// The steps whose last report was refused, by name. The name is empty if the step is unknown.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub refused: BTreeMap<String, RefusedReport>,
}

impl HostFindings {
    /// Returns `true` if a report of this kind is stored.
    #[must_use]
    pub fn has_report(&self, kind: ReportKind) -> bool {
        self.reports.contains_key(kind.as_str())
    }
}

/// Digest and length of a stored report. The digest identifies a repeated report without reading the stored one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ReportSummary {
    /// SHA-256 digest, in hexadecimal.
    pub sha256: String,
    /// Length in bytes.
    pub len: usize,
}

impl ReportSummary {
    /// Returns the summary of a report.
    #[must_use]
    pub fn new(report: &str) -> Self {
        let mut sha256 = String::with_capacity(64);
        for byte in Sha256::digest(report) {
            // Writing to a string cannot fail.
            let _ = write!(sha256, "{byte:02x}");
        }
        Self { sha256, len: report.len() }
    }
}

/// The reason why the last report of a step was refused.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RefusedReport {
    /// Status of the response.
    pub status: u16,
    /// Start of the reason in the response.
    pub reason: String,
    /// Time when the reason was recorded.
    pub recorded_at: Millis,
}
