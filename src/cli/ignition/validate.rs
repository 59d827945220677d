//! `kindling ignition validate`: checks Ignition configs.

use std::process::ExitCode;

use anyhow::Result;
use clap::Args;
use ignition::lint::check;
use ignition::report::{ConfigReport, RuleOrigin};

use super::findings::{EXIT_CODES, FileReport, FindingOptions};
use crate::cli::input::NamedText;
use crate::cli::output::print_bytes;

#[derive(Debug, Args)]
#[command(after_help = EXIT_CODES)]
pub(in crate::cli) struct Validate {
    #[command(flatten)]
    findings: FindingOptions,
    /// Report only problems that Ignition itself reports
    #[arg(long)]
    no_lint: bool,
    /// Ignition configs; - is stdin
    #[arg(value_name = "CONFIG", default_value = "-")]
    configs: Vec<String>,
}

impl Validate {
    pub(super) fn run(self) -> Result<ExitCode> {
        let texts = NamedText::read_all(&self.configs)?;
        let report =
            |text: NamedText| FileReport { findings: self.check_config(&text.bytes), file: text.name };
        let reports: Vec<FileReport> = texts.into_iter().map(report).collect();
        print_bytes(self.findings.to_text(&reports)?.as_bytes())?;
        Ok(self.findings.exit_code(&reports))
    }

    fn check_config(&self, text: &[u8]) -> ConfigReport {
        let mut report = check(text);
        report.retain(|finding| !self.no_lint || finding.origin == RuleOrigin::Ignition);
        report
    }
}
