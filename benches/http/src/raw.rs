//! Files with raw measurements, for tables and for comparison with later runs.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// # Errors
///
/// Returns an error if the file cannot be read or parsed.
pub(crate) fn open<Report: DeserializeOwned>(path: &Path) -> Result<Report> {
    let about = || format!("reading {}", path.display());
    serde_json::from_str(&fs::read_to_string(path).with_context(about)?).with_context(about)
}

/// # Errors
///
/// Returns an error if the file cannot be written.
pub(crate) fn save(path: &Path, report: &impl Serialize) -> Result<()> {
    let text = serde_json::to_string_pretty(report)? + "\n";
    fs::write(path, text).with_context(|| format!("writing {}", path.display()))
}
