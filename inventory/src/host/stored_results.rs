//! The stored form of a host's assessment results.

use rules::disk::DiskReasons;
use rules::validation::HostResults;
use serde::{Deserialize, Serialize};

use super::record::HostRecord;
use crate::error::Error;
use crate::json::to_json_text;
use crate::store::{ReportKind, Reports};

/// Version of the stored form.
const VERSION: u64 = 1;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct AssessmentResults {
    version: u64,
    /// The results of the host's validations.
    pub(crate) validations: HostResults,
    /// The reasons against an installation on each disk of the host, in the order of the inventory report.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) disks: Vec<DiskReasons>,
}

impl AssessmentResults {
    /// Returns results in the version of this release.
    pub(crate) fn new(validations: HostResults, disks: Vec<DiskReasons>) -> Self {
        Self { version: VERSION, validations, disks }
    }

    /// Returns `true` if `other` contains the same results, regardless of measured numbers.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        self.validations.has_same_outcomes(&other.validations) && self.disks == other.disks
    }

    pub(crate) fn to_stored(&self) -> Result<String, Error> {
        to_json_text("the results of an assessment", self)
    }
}

/// Returns the stored results of a host, or `None` if no results of this release's version are stored.
///
/// # Errors
///
/// Returns an internal error if the stored text is damaged.
pub(crate) fn stored_results(
    host: &HostRecord,
    reports: &Reports,
) -> Result<Option<AssessmentResults>, Error> {
    #[derive(Deserialize)]
    struct Version {
        version: u64,
    }
    let Some(text) = reports.get(ReportKind::Results) else { return Ok(None) };
    let parsed = serde_json::from_str(text).and_then(|Version { version }| {
        if version == VERSION { serde_json::from_str(text).map(Some) } else { Ok(None) }
    });
    parsed.map_err(|error| {
        Error::broken(format_args!("the stored results of host {} are damaged: {error}", host.id))
    })
}
