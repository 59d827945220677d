//! Input that image commands embed although it is not a valid Ignition config, as `coreos-installer` does.

use std::fmt::Write as _;

use anyhow::Result;
use ignition::lint::check;
use ignition::report::Severity;

use crate::cli::output::Lines;

/// The most errors of one config that are listed.
const MAX_LISTED: usize = 8;

/// The errors of a config, a line for each, under the name of its file. A valid config has none.
pub(in crate::cli) fn errors(name: &str, config: &[u8]) -> Vec<String> {
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
        errors.push(format!("{more} more error{plural}: `kindling ignition validate` lists all"));
    }
    errors
}

/// Prints a warning to stderr if a config is not valid.
pub(in crate::cli) fn warn(name: &str, config: &[u8]) -> Result<()> {
    let errors = errors(name, config);
    if errors.is_empty() {
        return Ok(());
    }
    let mut out = Lines::default();
    writeln!(out, "warning: {name} is not a valid Ignition config; it is written unchanged")?;
    errors.iter().try_for_each(|error| writeln!(out, "{error}"))?;
    eprint!("{}", out.into_text());
    Ok(())
}
