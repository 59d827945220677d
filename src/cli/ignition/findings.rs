//! Output of findings as text or JSON, and the exit code that depends on them.

use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::Args;
use ignition::report::{ConfigReport, Severity};
use serde::Serialize;

/// The help text for exit codes of commands that report findings.
pub(super) const EXIT_CODES: &str = "Exit code: 0 no errors (with --strict, no warnings either), 1 errors, or the \
    config cannot be read, 2 wrong usage.";

/// What commands that report findings share.
#[derive(Debug, Args)]
pub(super) struct FindingOptions {
    /// Fail on warnings too
    #[arg(long)]
    strict: bool,
    /// Print findings as JSON
    #[arg(long)]
    json: bool,
}

/// The findings in one file.
#[derive(Debug, Serialize)]
pub(super) struct FileReport {
    pub(super) file: String,
    pub(super) findings: ConfigReport,
}

impl FindingOptions {
    /// Returns whether the findings make the command fail.
    pub(super) fn is_failure(&self, reports: &[FileReport]) -> bool {
        let fails =
            |report: &ConfigReport| report.is_fatal() || self.strict && report.count(Severity::Warning) > 0;
        reports.iter().any(|it| fails(&it.findings))
    }

    pub(super) fn exit_code(&self, reports: &[FileReport]) -> ExitCode {
        if self.is_failure(reports) { ExitCode::FAILURE } else { ExitCode::SUCCESS }
    }

    /// Returns the reports as text or JSON. A text without findings is empty. Findings quote configs, so control
    /// characters are escaped for the terminal.
    pub(super) fn to_text(&self, reports: &[FileReport]) -> Result<String> {
        if self.json {
            return Ok(serde_json::to_string_pretty(reports).context("writing JSON")? + "\n");
        }
        let text: String = reports.iter().map(|it| it.findings.to_text(&it.file)).collect();
        let escape = |character: char| match character {
            '\n' => "\n".to_owned(),
            character if character.is_control() => character.escape_default().to_string(),
            character => character.to_string(),
        };
        Ok(text.chars().map(escape).collect())
    }
}
