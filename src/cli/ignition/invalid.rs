//! Warnings about invalid Ignition configs. Like `coreos-installer`, the image commands embed an invalid config anyway.

use std::fmt::Write as _;

use anyhow::Result;
use ignition::lint::check;
use ignition::report::Severity;

use crate::cli::output::EscapedLines;

/// Maximum number of errors to list for one config.
const MAX_LISTED: usize = 8;

/// Returns the errors of a config, each as a line with the name of the file.
pub(in crate::cli) fn config_errors(name: &str, config: &[u8]) -> Vec<String> {
    if config.trim_ascii().is_empty() {
        return vec![format!("{name}: error: the file is empty")];
    }
    let mut report = check(config);
    report.retain(|finding| finding.severity == Severity::Error);
    let text = report.to_text(name);
    let mut errors: Vec<String> = text.lines().take(MAX_LISTED).map(str::to_owned).collect();
    let more = text.lines().count() - errors.len();
    if more > 0 {
        let plural = if more == 1 { "" } else { "s" };
        errors.push(format!("{more} more error{plural}; `kindling ignition validate` lists all"));
    }
    errors
}

/// Prints a warning to stderr if a config is invalid.
pub(in crate::cli) fn warn_if_invalid(name: &str, config: &[u8]) -> Result<()> {
    let errors = config_errors(name, config);
    if errors.is_empty() {
        return Ok(());
    }
    let mut out = EscapedLines::default();
    writeln!(out, "warning: {name} is not a valid Ignition config; it is written unchanged")?;
    errors.iter().try_for_each(|error| writeln!(out, "{error}"))?;
    eprint!("{}", out.into_text());
    Ok(())
}
