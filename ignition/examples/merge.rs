//! Merges one Ignition config over another, like a machine at boot: `cargo run -p ignition --example merge -- PARENT
//! CHILD`.
//!
//! Prints the result to stdout. Prints errors and warnings about the configs to stderr, with their lines.

use std::error::Error;
use std::process::ExitCode;
use std::{env, fs};

use ignition::config::Config;
use ignition::lint::check;
use ignition::merge::merge;
use ignition::validate::validate;

/// A merged config, and the warnings about its parent and child.
#[derive(Debug)]
pub(crate) struct Merged {
    pub(crate) config: String,
    pub(crate) warnings: String,
}

/// Merges two configs, each with a name for messages.
pub(crate) fn merged(parent: (&str, &[u8]), child: (&str, &[u8])) -> Result<Merged, Box<dyn Error>> {
    let mut warnings = String::new();
    let mut read = |(name, text): (&str, &[u8])| -> Result<Config, Box<dyn Error>> {
        // The report contains unknown keys, violations of Ignition's rules and probable mistakes, all with lines.
        let report = check(text);
        if report.is_fatal() {
            return Err(report.to_text(name).into());
        }
        warnings += &report.to_text(name);
        Ok(Config::parse(text)?.config)
    };
    let (parent, child) = (read(parent)?, read(child)?);
    // Merging two valid configs can result in an invalid config. Report only errors of the result, because the reports
    // of the inputs already contain the other findings.
    let config = merge(&parent, &child);
    let report = validate(&config);
    if report.is_fatal() {
        return Err(report.to_text("merged").into());
    }
    Ok(Merged { config: config.to_pretty(), warnings })
}

fn run() -> Result<(), Box<dyn Error>> {
    let paths: Vec<String> = env::args().skip(1).collect();
    let [parent, child] = paths.as_slice() else { return Err("usage: merge PARENT CHILD".into()) };
    let merged = merged((parent, &fs::read(parent)?), (child, &fs::read(child)?))?;
    eprint!("{}", merged.warnings);
    print!("{}", merged.config);
    Ok(())
}

fn main() -> ExitCode {
    let Err(error) = run() else { return ExitCode::SUCCESS };
    eprintln!("{}", error.to_string().trim_end());
    ExitCode::FAILURE
}
