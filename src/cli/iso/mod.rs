//! `kindling iso`: inspects and edits live ISO images.

mod customize;
mod diff;
mod extract;
mod ignition;
mod inspect;
mod kargs;
mod network;
mod nmstatectl;
mod reset;
mod verify;

use std::process::ExitCode;

use anyhow::Result;
use clap::Subcommand;

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Customize a CoreOS live ISO image
    Customize(Box<customize::Customize>),
    /// Embed an Ignition config in a CoreOS live ISO image
    #[command(subcommand)]
    Ignition(ignition::Command),
    /// Embed network settings in a CoreOS live ISO image
    #[command(subcommand)]
    Network(network::Command),
    /// Modify kernel args in a CoreOS live ISO image
    #[command(subcommand)]
    Kargs(kargs::Command),
    /// Commands to extract files from a CoreOS live ISO image
    #[command(subcommand)]
    Extract(extract::Command),
    /// Restore a CoreOS live ISO image to default settings
    Reset(reset::Reset),
    /// Show the layout and content of an ISO image
    Inspect(inspect::Inspect),
    /// Compare two ISO images, by content and byte by byte
    Diff(diff::Diff),
    /// Check an ISO image for errors
    Verify(verify::Verify),
    /// Embed an Ignition config in an ISO image
    #[command(hide = true)]
    Embed(ignition::DeprecatedEmbed),
    /// Show the embedded Ignition config from an ISO image
    #[command(hide = true)]
    Show(ignition::Show),
    /// Remove an existing embedded Ignition config from an ISO image
    #[command(hide = true)]
    Remove(ignition::Remove),
}

impl Command {
    /// Returns the exit code of a failure. For `diff`, it is 2, because 1 means a difference, as in diff(1) and cmp(1).
    pub(super) fn failure_exit_code(&self) -> ExitCode {
        if matches!(self, Self::Diff(_)) { ExitCode::from(diff::TROUBLE) } else { ExitCode::FAILURE }
    }

    pub(super) fn run(self) -> Result<ExitCode> {
        match self {
            Self::Customize(command) => command.run(),
            Self::Ignition(command) => command.run(),
            Self::Network(command) => command.run(),
            Self::Kargs(command) => command.run(),
            Self::Extract(command) => command.run(),
            Self::Reset(command) => command.run(),
            Self::Inspect(command) => command.run(),
            Self::Diff(command) => return command.run(),
            Self::Verify(command) => return command.run(),
            Self::Embed(command) => command.run(),
            Self::Show(command) => warn_deprecated("show").and_then(|()| command.run()),
            Self::Remove(command) => warn_deprecated("remove").and_then(|()| command.run()),
        }?;
        Ok(ExitCode::SUCCESS)
    }
}

/// Prints a warning about the old name of an `iso ignition` command.
fn warn_deprecated(name: &str) -> Result<()> {
    eprintln!("`iso {name}` is deprecated; use `iso ignition {name}`. Continuing.");
    Ok(())
}
