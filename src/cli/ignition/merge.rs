//! `kindling ignition merge`: merges Ignition configs.

use std::collections::HashSet;
use std::process::ExitCode;

use anyhow::Result;
use clap::Args;
use ignition::config::Config;
use ignition::merge::merge;
use ignition::report::{ConfigReport, Severity};
use ignition::spec::Spec;
use ignition::translate::translate;
use ignition::validate::validate;

use super::findings::{EXIT_CODES, FileReport, FindingOptions};
use crate::cli::input::NamedText;
use crate::cli::output::{print_bytes, write_bytes};

#[derive(Debug, Args)]
#[command(after_help = EXIT_CODES)]
pub(in crate::cli) struct Merge {
    #[command(flatten)]
    findings: FindingOptions,
    /// Write the config to a file; - is stdout [default: -]
    #[arg(short, long, value_name = "path")]
    output: Option<String>,
    /// Pretty-print the config
    #[arg(long)]
    pretty: bool,
    /// Translate the result to this spec version, such as 3.4.0
    ///
    /// By default, the result has the newest spec version among the configs.
    #[arg(long, value_name = "version")]
    spec: Option<Spec>,
    /// Ignition config to start from; - is stdin
    #[arg(value_name = "PARENT")]
    parent: String,
    /// Ignition configs to merge into PARENT, in this order
    #[arg(value_name = "CHILD", required = true)]
    children: Vec<String>,
}

/// The name of the merged config in messages.
const MERGED: &str = "merged";

impl Merge {
    /// Merges the configs and prints findings to stderr. Writes no result if the findings make the command fail.
    pub(super) fn run(self) -> Result<ExitCode> {
        let paths: Vec<String> = std::iter::once(&self.parent).chain(&self.children).cloned().collect();
        let (mut reports, documents) = read_configs(NamedText::read_all(&paths)?);
        let merged = documents.into_iter().reduce(|parent, child| merge(&parent, &child));
        if let Some(merged) = merged.filter(|_| !self.findings.is_failure(&reports)) {
            let spec = self.spec.unwrap_or(merged.spec());
            let result = translate(&merged, spec)?;
            let text = if self.pretty { result.to_pretty() } else { format!("{result}\n") };
            reports.push(FileReport { file: MERGED.to_owned(), findings: new_findings(&result, &reports) });
            if !self.findings.is_failure(&reports) {
                self.write_result(text.as_bytes())?;
            }
        }
        eprint!("{}", self.findings.to_text(&reports)?);
        Ok(self.findings.exit_code(&reports))
    }

    fn write_result(&self, text: &[u8]) -> Result<()> {
        match self.output.as_deref() {
            None | Some("-") => print_bytes(text),
            path => write_bytes(path, text),
        }
    }
}

/// Parses and validates configs. An invalid text results in a report without a config.
fn read_configs(texts: Vec<NamedText>) -> (Vec<FileReport>, Vec<Config>) {
    let mut documents = Vec::new();
    let read = |text: NamedText| {
        let mut findings = match Config::parse(&text.bytes) {
            Ok(parsed) => {
                let mut report = parsed.warnings;
                report.append(validate(&parsed.config));
                documents.push(parsed.config);
                report
            }
            Err(error) => error.into(),
        };
        findings.locate(&text.bytes);
        FileReport { file: text.name, findings }
    };
    (texts.into_iter().map(read).collect(), documents)
}

/// Returns the errors in the merged config, and the other findings that are not already reported for one of its parts.
/// The findings have no line numbers, because the merged config is not in a file.
fn new_findings(result: &Config, parts: &[FileReport]) -> ConfigReport {
    let part_messages: HashSet<&str> = parts
        .iter()
        .flat_map(|part| part.findings.findings())
        .map(|finding| finding.message.as_str())
        .collect();
    let mut report = validate(result);
    report.retain(|finding| {
        finding.severity == Severity::Error || !part_messages.contains(finding.message.as_str())
    });
    report
}
