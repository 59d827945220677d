//! `kindling ignition merge`: several configs as one.

use std::collections::HashSet;
use std::process::ExitCode;

use anyhow::Result;
use clap::Args;
use ignition::document::Document;
use ignition::merge::merge;
use ignition::report::{Report, Severity};
use ignition::spec::Spec;
use ignition::translate::translate;
use ignition::validate::validate;

use super::findings::{EXIT_CODES, FileReport, FindingOptions};
use crate::cli::input::Text;
use crate::cli::output::{print_bytes, write_bytes};

#[derive(Debug, Args)]
#[command(after_help = EXIT_CODES)]
pub(in crate::cli) struct Merge {
    #[command(flatten)]
    findings: FindingOptions,
    /// Write the config to a file instead of stdout, which is - too
    #[arg(short, long, value_name = "path")]
    output: Option<String>,
    /// Write the config over several lines
    #[arg(long)]
    pretty: bool,
    /// Translate the result to this spec version, such as 3.4.0
    ///
    /// Without it, the result has the newest version of the configs.
    #[arg(long, value_name = "version")]
    spec: Option<Spec>,
    /// Ignition config to start from; - is stdin
    #[arg(value_name = "PARENT")]
    parent: String,
    /// Ignition configs to merge into it, in this order
    #[arg(value_name = "CHILD", required = true)]
    children: Vec<String>,
}

/// The name of the result in messages.
const MERGED: &str = "merged";

impl Merge {
    /// Findings go to stderr. Where one is an error, there is no result.
    pub(super) fn run(self) -> Result<ExitCode> {
        let paths: Vec<String> = std::iter::once(&self.parent).chain(&self.children).cloned().collect();
        let (mut reports, documents) = read_all(Text::read_all(&paths)?);
        let merged = documents.into_iter().reduce(|parent, child| merge(&parent, &child));
        if let Some(merged) = merged.filter(|_| !self.findings.is_failure(&reports)) {
            let spec = self.spec.unwrap_or(merged.spec());
            let result = translate(&merged, spec)?;
            let text = if self.pretty { result.to_pretty() } else { format!("{result}\n") };
            reports.push(FileReport { file: MERGED.to_owned(), findings: new_findings(&result, &reports) });
            if !self.findings.is_failure(&reports) {
                self.write(text.as_bytes())?;
            }
        }
        eprint!("{}", self.findings.to_text(&reports)?);
        Ok(self.findings.exit_code(&reports))
    }

    fn write(&self, text: &[u8]) -> Result<()> {
        match self.output.as_deref() {
            None | Some("-") => print_bytes(text),
            path => write_bytes(path, text),
        }
    }
}

/// Reads and validates configs. There is no document for a text that is no config.
fn read_all(texts: Vec<Text>) -> (Vec<FileReport>, Vec<Document>) {
    let mut documents = Vec::new();
    let read = |text: Text| {
        let mut findings = match Document::parse(&text.bytes) {
            Ok(parsed) => {
                let mut report = parsed.warnings;
                report.append(validate(&parsed.document));
                documents.push(parsed.document);
                report
            }
            Err(error) => error.into(),
        };
        findings.locate(&text.bytes);
        FileReport { file: text.name, findings }
    };
    (texts.into_iter().map(read).collect(), documents)
}

/// What is wrong with the result that was not with any of its parts. It has no lines: nobody has seen it yet.
fn new_findings(result: &Document, parts: &[FileReport]) -> Report {
    let known: HashSet<&str> = parts
        .iter()
        .flat_map(|part| part.findings.findings())
        .map(|finding| finding.message.as_str())
        .collect();
    let mut report = validate(result);
    report.retain(|finding| finding.severity == Severity::Error || !known.contains(finding.message.as_str()));
    report
}
