//! The cases of findings in configs: `tests/validate/*.json` for Ignition's rules, `tests/lint/*.json` for this crate's
//! rules.
//!
//! A file contains a list of cases. A case has a `config` without its version, which is `spec` (3.3.0 by default), and
//! the expected `findings`, each a severity and a pointer. `%2048%` in a config stands for that many letters x, from
//! 2000 to 3000. A `newer` case is about a rule that Ignition 2.14 does not have.

#![allow(dead_code, reason = "no test program needs all of it")]

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

use ignition::config::Config;
use ignition::report::ConfigReport;
use serde::Deserialize;
use serde_json::Value;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Case {
    pub(crate) name: String,
    #[serde(default = "default_spec")]
    spec: String,
    config: Value,
    findings: BTreeSet<String>,
    #[serde(default)]
    pub(crate) newer: bool,
}

fn default_spec() -> String {
    "3.3.0".to_owned()
}

impl Case {
    pub(crate) fn all(folder: &str) -> Vec<Self> {
        let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests").join(folder);
        let mut files: Vec<PathBuf> =
            fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
        files.sort();
        let read = |path: &PathBuf| -> Vec<Self> {
            serde_json::from_slice(&fs::read(path).unwrap())
                .unwrap_or_else(|error| panic!("{}: {error}", path.display()))
        };
        files.iter().flat_map(read).collect()
    }

    pub(crate) fn text(&self) -> String {
        let mut config = self.config.clone();
        config["ignition"]["version"] = self.spec.as_str().into();
        (2000..3001).fold(config.to_string(), |text, count| match text.contains('%') {
            true => text.replace(&format!("%{count}%"), &"x".repeat(count)),
            false => text,
        })
    }

    pub(crate) fn config(&self) -> Config {
        let parsed = Config::parse(self.text().as_bytes()).unwrap();
        assert!(parsed.warnings.is_empty(), "{}", parsed.warnings.to_text(&self.name));
        parsed.config
    }

    /// Compares a report with the expected findings and describes the difference, if any. Duplicates are allowed.
    pub(crate) fn difference(&self, report: &ConfigReport) -> Option<String> {
        (found(report) != self.findings).then(|| {
            let expected: Vec<&String> = self.findings.iter().collect();
            format!("{}\n  expected {expected:?}\n  found\n{}", self.name, report.to_text("  "))
        })
    }
}

/// Returns the severities and pointers in a report.
pub(crate) fn found(report: &ConfigReport) -> BTreeSet<String> {
    report.findings().iter().map(|finding| format!("{} {}", finding.severity, finding.pointer)).collect()
}

/// Compares the reports on all cases of a folder with the expected findings.
pub(crate) fn check_all(folder: &str, look: impl Fn(&Config) -> ConfigReport) {
    let cases = Case::all(folder);
    assert!(!cases.is_empty());
    let failed: Vec<String> =
        cases.iter().filter_map(|case| case.difference(&look(&case.config()))).collect();
    assert!(failed.is_empty(), "{} of {}:\n{}", failed.len(), cases.len(), failed.join("\n"));
}
