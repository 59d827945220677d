//! `kindling network check`: checks the networks of hosts.

use std::fmt;
use std::process::ExitCode;

use anyhow::Result;
use clap::Args;
use ignition::network::check::{Finding, Rule, check_for};
use ignition::network::{HostNetwork, KeyfileCache};
use ignition::report::Severity;
use serde::Serialize;

use super::read;
use crate::cli::output::{print_bytes, print_json};
use crate::discovery::{self, Host, Place};
use crate::manifests::HostFiles;

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

/// The result for programs.
#[derive(Serialize)]
struct Summary {
    hosts: usize,
    errors: usize,
    warnings: usize,
    findings: Vec<Located>,
}

/// A finding with its file. A finding about a manifest that is not the network of a host has no rule and no host.
#[derive(Serialize)]
struct Located {
    severity: Severity,
    rule: Option<Rule>,
    host: Option<usize>,
    name: String,
    interface: Option<String>,
    path: String,
    line: Option<usize>,
    message: String,
}

impl Located {
    fn of_manifest(finding: &discovery::Finding) -> Self {
        let discovery::Finding { severity, place, message, .. } = finding.clone();
        let Place { file: name, line, path } = place;
        Self { severity, rule: None, host: None, name, interface: None, path, line, message }
    }

    fn of_host(hosts: &[Host], finding: &Finding) -> Option<Self> {
        let Place { file: name, line, path } = hosts.get(finding.host)?.place_of(finding);
        let Finding { severity, rule, host, interface, message, .. } = finding.clone();
        Some(Self { severity, rule: Some(rule), host: Some(host), name, interface, path, line, message })
    }
}

impl fmt::Display for Located {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = Place { file: self.name.clone(), line: self.line, path: self.path.clone() };
        let message = self.message.replace(char::is_control, "\u{fffd}");
        write!(f, "{place} {}: {message}", self.severity)
    }
}

impl Check {
    pub(super) fn run(self) -> Result<ExitCode> {
        let mut files = read(&self.files)?;
        let cluster = files.cluster();
        let HostFiles { hosts, findings: manifests, .. } = files;
        let networks: Vec<HostNetwork> = hosts.iter().map(|host| host.network.clone()).collect();
        let report = check_for(&networks, &cluster, &KeyfileCache::default());
        let of_manifests = manifests.as_slice().iter().map(Located::of_manifest);
        let of_hosts = report.findings().iter().filter_map(|finding| Located::of_host(&hosts, finding));
        let findings: Vec<Located> = of_manifests.chain(of_hosts).collect();
        let count = |severity: Severity| findings.iter().filter(|it| it.severity == severity).count();
        let (errors, warnings) = (count(Severity::Error), count(Severity::Warning));
        if self.json {
            print_json(&Summary { hosts: hosts.len(), errors, warnings, findings })?;
        } else {
            let count =
                |count: usize, what: &str| format!("{count} {what}{}", if count == 1 { "" } else { "s" });
            let counts = [count(hosts.len(), "host"), count(errors, "error"), count(warnings, "warning")];
            let lines: String = findings.iter().map(|finding| format!("{finding}\n")).collect();
            print_bytes(format!("{lines}{}\n", counts.join(", ")).as_bytes())?;
        }
        let fails = errors > 0 || self.strict && warnings > 0;
        Ok(if fails { ExitCode::FAILURE } else { ExitCode::SUCCESS })
    }
}
