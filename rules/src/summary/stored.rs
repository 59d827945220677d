//! The stored form of a summary: JSON with a version number.

use serde::{Deserialize, Serialize};

use super::error::DamagedSummary;
use super::host_summary::HostSummary;

/// Version of the stored form. It must increase whenever stored summaries must be recreated from the stored replies,
/// because a field is new or has a new meaning.
pub const VERSION: u32 = 1;

/// A summary read from its stored form.
#[derive(Clone, Debug, PartialEq)]
pub enum StoredSummary {
    /// A summary stored with the current version.
    Current(Box<HostSummary>),
    /// The version of an older summary, which must be recreated from the stored replies.
    Older(u32),
    /// The version of a summary stored by a newer release.
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
    /// Returns the stored form of the summary.
    ///
    /// # Errors
    ///
    /// Returns an error if the summary cannot be serialized as JSON.
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

    /// Parses the stored form. If another release has stored it, only the version is parsed.
    ///
    /// # Errors
    ///
    /// Returns an error if the text is not valid JSON of a stored summary.
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
