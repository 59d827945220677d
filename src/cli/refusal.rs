//! Refuses inputs because of findings: adds remedies to the findings, prints them, and creates the error.

use ignition::report::Severity;

use super::grouped_findings::report_lines;
use super::output::print_message;
use discovery::{DiscoveryFinding, DiscoveryReport, FindingKind};

/// Adds the options that resolve findings to their messages. The library does not know the options.
pub(super) fn with_remedies(findings: DiscoveryReport) -> DiscoveryReport {
    let with_remedy = |finding: DiscoveryFinding| {
        let remedy = match finding.kind {
            FindingKind::MissingVersion => ": set --openshift-version or spec.osImageVersion",
            FindingKind::AmbiguousInfraEnv => "; choose one with --infra-env",
            _ => return finding,
        };
        let message = format!("{}{remedy}", finding.message);
        DiscoveryFinding::new(finding.severity, finding.place, message).with_kind(finding.kind)
    };
    findings.into_iter().map(with_remedy).collect()
}

/// The error for refused inputs. With `--json`, the findings are part of the JSON output.
#[derive(Debug, thiserror::Error)]
#[error("{summary}")]
pub(super) struct RefusedInputs {
    summary: String,
    pub(super) findings: DiscoveryReport,
}

impl RefusedInputs {
    /// Prints the findings and returns the error. `consequence` is the end of the error message, such as "nothing was
    /// written". If `strict` is `true`, warnings count as errors.
    pub(super) fn print_and_refuse(findings: DiscoveryReport, strict: bool, consequence: &str) -> Self {
        print_message(report_lines(&findings));
        let errors = findings.count(Severity::Error);
        let warnings = if strict { findings.count(Severity::Warning) } else { 0 };
        let warning_summary = match warnings {
            0 => String::new(),
            1 => "1 warning, an error because of --strict".to_owned(),
            _ => format!("{warnings} warnings, errors because of --strict"),
        };
        let parts =
            [if errors > 0 { count_with_noun(errors, "error") } else { String::new() }, warning_summary];
        let counts: Vec<&str> = parts.iter().map(String::as_str).filter(|part| !part.is_empty()).collect();
        let summary = format!("{}; {consequence}", counts.join(", "));
        Self { summary, findings }
    }
}

fn count_with_noun(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}
