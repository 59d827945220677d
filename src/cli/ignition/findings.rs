//! The output of findings as text or JSON, and the exit code that results from them.

use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::Args;
use ignition::report::{ConfigReport, Severity};
use serde::Serialize;

/// The help text about the exit codes of commands that report findings.
pub(super) const EXIT_CODES: &str = "Exit code: 0 no errors (with --strict, no warnings either), 1 errors, or the \
    config cannot be read, 2 wrong usage.";

/// The common options of commands that report findings.
#[derive(Debug, Args)]
pub(super) struct FindingOptions {
    /// Fail on warnings too
    #[arg(long)]
    strict: bool,
    /// Print findings as JSON
    #[arg(long)]
    json: bool,
}

/// A file and the findings about it.
#[derive(Debug, Serialize)]
pub(super) struct FileReport {
    pub(super) file: String,
    pub(super) findings: ConfigReport,
}

impl FindingOptions {
    /// Returns `true` if the command fails because of the findings.
    pub(super) fn is_failure(&self, reports: &[FileReport]) -> bool {
        let fails =
            |report: &ConfigReport| report.is_fatal() || self.strict && report.count(Severity::Warning) > 0;
        reports.iter().any(|it| fails(&it.findings))
    }

    pub(super) fn exit_code(&self, reports: &[FileReport]) -> ExitCode {
        if self.is_failure(reports) { ExitCode::FAILURE } else { ExitCode::SUCCESS }
    }

    /// Formats the reports as text or JSON. The text is empty if there are no findings. Findings quote configs, so the
    /// text escapes control characters for the terminal.
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
