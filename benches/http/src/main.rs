//! `cargo run --release -p bench-http`: Kindling beside nginx, or beside any other server of files, over HTTP.
//!
//! Servers and clients share the machine, and take turns: what is told is the ratio of each round. `docs/performance.md` says
//! what is measured, and how to point it at another server.
//!
//! With `bare`, a server that does nothing else, as those that take part: what any server takes at least.
//!
//! With `scale`, Kindling alone: how what it costs grows with what it has. `docs/scale.md` says more.

mod bare;
mod base;
mod bench;
mod certificate;
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
mod plot;
mod process;
mod random;
mod raw;
mod report;
mod scale;
mod servers;
mod slow;
mod traces;
mod usage;
mod work;

use std::io::Write;
use std::process::ExitCode;

use anyhow::Result;
use clap::Parser;

use crate::options::{Mode, Options, ScaleOptions};
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

/// Two runs that differ are no error, and no success either: as `diff` does.
fn run(options: &Options) -> Result<ExitCode> {
    if let Some(Mode::Bare { file, way }) = &options.mode {
        match bare::serve(file, *way)? {}
    }
    interrupt::watch()?;
    if let Some(Mode::Scale(options)) = &options.mode {
        return scale(options);
    }
    if let [first, second] = options.compare.as_slice() {
        let found = compare::compare(&raw::open(first)?, &raw::open(second)?);
        show(&found.text());
        return Ok(if found.differences.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE });
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

/// A reader who has seen enough is no error.
fn show(text: &str) {
    let _ = std::io::stdout().write_all(text.as_bytes());
}
