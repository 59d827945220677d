//! Merges one Ignition config into another, as a machine would at boot:
//! `cargo run -p ignition --example merge -- PARENT CHILD`.
//!
//! Prints the result to stdout, errors and warnings about the configs to stderr, with their lines.

use std::error::Error;
use std::process::ExitCode;
use std::{env, fs};

use ignition::config::Config;
use ignition::lint::check;
use ignition::merge::merge;
use ignition::validate::validate;

/// A result, and what there is to say about where it comes from.
#[derive(Debug)]
pub(crate) struct Merged {
    pub(crate) config: String,
    pub(crate) warnings: String,
}

/// Merges configs, each with its name for messages.
pub(crate) fn merged(parent: (&str, &[u8]), child: (&str, &[u8])) -> Result<Merged, Box<dyn Error>> {
    let mut warnings = String::new();
    let mut read = |(name, text): (&str, &[u8])| -> Result<Config, Box<dyn Error>> {
        // What the parser leaves out, the rules of Ignition, and what they let pass; all with lines.
        let report = check(text);
        if report.is_fatal() {
            return Err(report.to_text(name).into());
        }
        warnings += &report.to_text(name);
        Ok(Config::parse(text)?.config)
    };
    let (parent, child) = (read(parent)?, read(child)?);
    // Two valid configs can merge into an invalid one. Their other findings were shown before.
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
