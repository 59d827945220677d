//! `kindling network check`: whether hosts will have the networks that are meant for them.

use std::process::ExitCode;

use anyhow::Result;
use clap::Args;
use ignition::network::KeyfileCache;
use ignition::network::check::{Report, check};
use ignition::report::Severity;
use serde::Serialize;

use super::read;
use crate::cli::output::{print_bytes, print_json};

const EXIT_CODES: &str = "Exit code: 0 no errors (with --strict, no warnings either), 1 errors, or a file cannot be \
    read, 2 wrong usage.";

#[derive(Debug, Args)]
#[command(after_help = EXIT_CODES)]
pub(in crate::cli) struct Check {
    /// Fail on warnings too
    #[arg(long)]
    strict: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Hosts; - is stdin
    #[arg(value_name = "FILE", required = true)]
    files: Vec<String>,
}

/// What a program gets to read.
#[derive(Serialize)]
struct Summary<'a> {
    hosts: usize,
    errors: usize,
    warnings: usize,
    findings: &'a Report,
}

impl Check {
    pub(super) fn run(self) -> Result<ExitCode> {
        let hosts = read(&self.files)?;
        let report = check(&hosts, &KeyfileCache::default());
        let (errors, warnings) = (report.count(Severity::Error), report.count(Severity::Warning));
        if self.json {
            print_json(&Summary { hosts: hosts.len(), errors, warnings, findings: &report })?;
        } else {
            let count =
                |count: usize, what: &str| format!("{count} {what}{}", if count == 1 { "" } else { "s" });
            let counts = [count(hosts.len(), "host"), count(errors, "error"), count(warnings, "warning")];
            print_bytes(format!("{report}{}\n", counts.join(", ")).as_bytes())?;
        }
        let fails = errors > 0 || self.strict && warnings > 0;
        Ok(if fails { ExitCode::FAILURE } else { ExitCode::SUCCESS })
    }
}
