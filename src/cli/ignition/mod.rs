//! `kindling ignition`: checks, merges and shows Ignition configs outside of images.

mod findings;
pub(super) mod invalid;
mod merge;
mod show;
mod validate;

use std::process::ExitCode;

use anyhow::Result;
use clap::Subcommand;

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
