//! `kindling ignition`: Ignition configs by themselves, without an image.

mod findings;
mod merge;
mod show;
mod validate;

use std::process::ExitCode;

use anyhow::Result;
use clap::Subcommand;

use crate::cli::input;

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Check Ignition configs
    Validate(validate::Validate),
    /// Merge Ignition configs
    Merge(merge::Merge),
    /// Show what an Ignition config does
    Show(show::Show),
}

impl Command {
    pub(super) fn run(self) -> Result<ExitCode> {
        match self {
            Self::Validate(command) => command.run(),
            Self::Merge(command) => command.run(),
            Self::Show(command) => command.run(),
        }
    }
}

/// The name of the standard input among files.
const STDIN: &str = "-";

/// A config as text, under the name that messages have for it.
struct Text {
    name: String,
    bytes: Vec<u8>,
}

impl Text {
    fn read(path: &str) -> Result<Self> {
        let (name, path) = if path == STDIN { ("stdin", None) } else { (path, Some(path)) };
        Ok(Self { name: name.to_owned(), bytes: input::read(path)? })
    }

    /// Reads files in their order. The standard input ends once.
    fn read_all(paths: &[String]) -> Result<Vec<Self>> {
        anyhow::ensure!(
            paths.iter().filter(|path| *path == STDIN).count() <= 1,
            "stdin can be read only once"
        );
        paths.iter().map(|path| Self::read(path)).collect()
    }
}
