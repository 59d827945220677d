//! The stored form of a summary: JSON with a version.

use serde::{Deserialize, Serialize};

use super::error::DamagedSummary;
use super::host_summary::HostSummary;

/// Version of the stored form. It increases whenever a summary has to be made again from the stored reports, because
/// it has a new field or a field has a new meaning.
pub const VERSION: u32 = 1;

/// A stored summary.
#[derive(Clone, Debug, PartialEq)]
pub enum StoredSummary {
    /// A summary of this version.
    Current(Box<HostSummary>),
    /// The version of an older summary. It has to be made again from the stored reports.
    Older(u32),
    /// The version of a summary that a newer release has stored.
    Newer(u32),
}

#[derive(Serialize)]
struct Versioned<'a> {
    version: u32,
    summary: &'a HostSummary,
}

#[derive(Deserialize)]
struct StoredVersion {
    version: u32,
}

#[derive(Deserialize)]
struct StoredContent {
    summary: Box<HostSummary>,
}

impl HostSummary {
    /// Returns the stored form.
    ///
    /// # Errors
    ///
    /// Returns an error if the summary cannot be written as JSON.
    ///
    /// # Examples
    ///
    /// ```
    /// use rules::summary::{HostSummary, StoredSummary};
    ///
    /// let summary = HostSummary::default();
    /// let text = summary.to_stored()?;
    /// assert_eq!(HostSummary::from_stored(&text)?, StoredSummary::Current(Box::new(summary)));
    /// assert_eq!(HostSummary::from_stored(r#"{"version": 9, "x": 1}"#)?, StoredSummary::Newer(9));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn to_stored(&self) -> Result<String, serde_json::Error> {
        serde_json::to_string(&Versioned { version: VERSION, summary: self })
    }

    /// Reads the stored form. Only the version of another release's summary is read.
    ///
    /// # Errors
    ///
    /// Returns an error if the text is damaged.
    pub fn from_stored(text: &str) -> Result<StoredSummary, DamagedSummary> {
        let StoredVersion { version } = serde_json::from_str(text).map_err(DamagedSummary)?;
        if version < VERSION {
            return Ok(StoredSummary::Older(version));
        }
        if version > VERSION {
            return Ok(StoredSummary::Newer(version));
        }
        let StoredContent { summary } = serde_json::from_str(text).map_err(DamagedSummary)?;
        Ok(StoredSummary::Current(summary))
    }
}
