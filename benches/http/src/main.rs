//! `cargo run --profile dist -p bench-http`: compares Kindling with nginx, or with another file server, over HTTP.
//!
//! Servers and clients share the machine and take turns; the result is the ratio of each round. `docs/performance.md`
//! explains what is measured and how to measure another server.
//!
//! `bare` starts a minimal server, which takes part as a lower bound for any server.
//!
//! `scale` measures only Kindling: how its cost grows with the amount of data. `docs/scale.md` has the details.
//!
//! `agents` measures what 10,000 hosts cost Kindling, and whether they slow its image downloads.

mod agents;
mod bare;
mod base;
mod bench;
mod certificate;
mod chunked;
mod client;
mod compare;
mod exchange;
mod figures;
mod fleet;
mod head;
mod infra_env;
mod interrupt;
mod machine;
mod measure;
mod options;
mod process;
mod random;
mod raw;
mod report;
mod scale;
mod servers;
mod slow;
mod summary;
mod traces;
mod usage;
mod work;

use std::io::Write;
use std::process::ExitCode;

use anyhow::Result;
use clap::Parser;

use crate::options::{AgentsOptions, Mode, Options, ScaleOptions};
use crate::report::Report;

fn main() -> ExitCode {
    match run(&Options::parse()) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("Error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Runs the command. A difference between two runs has its own exit code, as in diff(1).
fn run(options: &Options) -> Result<ExitCode> {
    if let Some(Mode::Bare { file, way }) = &options.mode {
        match bare::serve(file, *way)? {}
    }
    interrupt::watch()?;
    if let Some(Mode::Scale(options)) = &options.mode {
        return scale(options);
    }
    if let Some(Mode::Agents(options)) = &options.mode {
        return agents(options);
    }
    if let [first, second] = options.compare.as_slice() {
        let comparison = compare::compare(&raw::open(first)?, &raw::open(second)?);
        show(&comparison.text());
        return Ok(if comparison.differences.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE });
    }
    let report: Report = match &options.from {
        Some(path) => raw::open(path)?,
        None => bench::run(options)?,
    };
    if let Some(path) = &options.json {
        raw::save(path, &report)?;
    }
    if let Some(docs) = &options.write {
        report.write(docs)?;
    }
    show(&report.markdown());
    Ok(ExitCode::SUCCESS)
}

fn scale(options: &ScaleOptions) -> Result<ExitCode> {
    let report = match &options.from {
        Some(path) => raw::open(path)?,
        None => scale::run(options)?,
    };
    if let Some(path) = &options.json {
        raw::save(path, &report)?;
    }
    if let Some(docs) = &options.write {
        report.write(docs)?;
    }
    show(&report.markdown());
    Ok(ExitCode::SUCCESS)
}

/// Runs the measurements with many hosts. A whole run fails if it misses a bound.
fn agents(options: &AgentsOptions) -> Result<ExitCode> {
    let report = agents::run(options)?;
    if let Some(path) = &options.json {
        raw::save(path, &report)?;
    }
    show(&report.markdown());
    let faults = if options.quick { Vec::new() } else { report.faults() };
    for fault in &faults {
        eprintln!("{fault}");
    }
    Ok(if faults.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Prints a text. A closed pipe is not an error.
fn show(text: &str) {
    let _ = std::io::stdout().write_all(text.as_bytes());
}
