//! Raw figures as files, which later runs are compared with and tables are made of.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// # Errors
///
/// When the file cannot be read, or holds something else.
pub(crate) fn open<Report: DeserializeOwned>(path: &Path) -> Result<Report> {
    let about = || format!("reading {}", path.display());
    serde_json::from_str(&fs::read_to_string(path).with_context(about)?).with_context(about)
}

/// # Errors
///
/// When it cannot be written.
pub(crate) fn save(path: &Path, report: &impl Serialize) -> Result<()> {
    let text = serde_json::to_string_pretty(report)? + "\n";
    fs::write(path, text).with_context(|| format!("writing {}", path.display()))
}
