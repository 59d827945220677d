//! `kindling network check`: checks static host network configs.

use std::fmt;
use std::process::ExitCode;

use anyhow::Result;
use clap::Args;
use ignition::network::check::{NetworkFinding, Rule, check_hosts};
use ignition::network::{HostNetwork, KeyfileCache};
use ignition::report::Severity;
use serde::Serialize;

use super::read_hosts;
use crate::cli::grouped_findings::grouped_lines;
use crate::cli::output::{print_bytes, print_json};
use discovery::manifests::HostFiles;
use discovery::{Host, SourceLocation};

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
    /// Files with host network configs; - is stdin
    #[arg(value_name = "FILE", required = true)]
    files: Vec<String>,
}

/// The JSON output.
#[derive(Serialize)]
struct CheckSummary {
    hosts: usize,
    errors: usize,
    warnings: usize,
    findings: Vec<LocatedFinding>,
}

/// A finding with its file. `rule` and `host` are absent if the finding is about a manifest and not about a network.
#[derive(Serialize)]
struct LocatedFinding {
    severity: Severity,
    rule: Option<Rule>,
    host: Option<usize>,
    name: String,
    interface: Option<String>,
    path: String,
    line: Option<usize>,
    message: String,
}

impl LocatedFinding {
    fn from_manifest_finding(finding: &discovery::DiscoveryFinding) -> Self {
        let discovery::DiscoveryFinding { severity, place, message, .. } = finding.clone();
        let SourceLocation { file: name, line, path } = place;
        Self { severity, rule: None, host: None, name, interface: None, path, line, message }
    }

    fn from_network_finding(hosts: &[Host], finding: &NetworkFinding) -> Option<Self> {
        let SourceLocation { file: name, line, path } = hosts.get(finding.host)?.place_of(finding);
        let NetworkFinding { severity, rule, host, interface, message, .. } = finding.clone();
        Some(Self { severity, rule: Some(rule), host: Some(host), name, interface, path, line, message })
    }

    fn place(&self) -> SourceLocation {
        SourceLocation { file: self.name.clone(), line: self.line, path: self.path.clone() }
    }
}

impl fmt::Display for LocatedFinding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = self.place();
        let message = self.message.replace(char::is_control, "\u{fffd}");
        write!(f, "{place} {}: {message}", self.severity)
    }
}

impl Check {
    pub(super) fn run(self) -> Result<ExitCode> {
        let mut files = read_hosts(&self.files)?;
        let cluster = files.cluster();
        let HostFiles { hosts, findings: manifests, .. } = files;
        let networks: Vec<HostNetwork> = hosts.iter().map(|host| host.network.clone()).collect();
        let report = check_hosts(&networks, &cluster, &KeyfileCache::default());
        let of_manifests = manifests.as_slice().iter().map(LocatedFinding::from_manifest_finding);
        let of_hosts = report
            .findings()
            .iter()
            .filter_map(|finding| LocatedFinding::from_network_finding(&hosts, finding));
        let findings: Vec<LocatedFinding> = of_manifests.chain(of_hosts).collect();
        let count = |severity: Severity| findings.iter().filter(|it| it.severity == severity).count();
        let (errors, warnings) = (count(Severity::Error), count(Severity::Warning));
        if self.json {
            print_json(&CheckSummary { hosts: hosts.len(), errors, warnings, findings })?;
        } else {
            let count =
                |count: usize, what: &str| format!("{count} {what}{}", if count == 1 { "" } else { "s" });
            let counts = [count(hosts.len(), "host"), count(errors, "error"), count(warnings, "warning")];
            let lines = grouped_lines(&findings, |finding| {
                ((finding.severity, finding.message.as_str()), finding.place())
            });
            print_bytes(format!("{lines}{}\n", counts.join(", ")).as_bytes())?;
        }
        let fails = errors > 0 || self.strict && warnings > 0;
        Ok(if fails { ExitCode::FAILURE } else { ExitCode::SUCCESS })
    }
}
