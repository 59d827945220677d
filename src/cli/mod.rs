//! The command line: one file for each command, under the name of its verb.
//!
//! The `iso`, `pxe` and `dev` verbs that `coreos-installer` has take the same options, read the same files and print
//! the same things; under a link of that name, the program calls itself so.

mod auth;
mod boot_test;
mod catalogue;
mod completions;
mod created;
mod demo;
mod dev;
mod discovery;
mod doctor;
mod duration;
mod environment;
mod ignition;
mod input;
mod installer;
mod iso;
mod man;
mod network;
mod output;
mod progress;
mod pxe;
mod serve;
mod servers;
mod settings_file;

use std::ffi::OsString;
use std::io;
use std::path::Path;
use std::process::ExitCode;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};

/// Per-cluster boot images for bare-metal CoreOS and OpenShift installs
#[derive(Debug, Parser)]
#[command(name = "kindling", version, propagate_version = false, disable_help_subcommand = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Commands to manage a CoreOS live ISO image
    #[command(subcommand)]
    Iso(iso::Command),
    /// Commands to manage a CoreOS live PXE image
    #[command(subcommand)]
    Pxe(pxe::Command),
    /// Commands to check and combine Ignition configs
    #[command(subcommand)]
    Ignition(ignition::Command),
    /// Commands to check and translate network configuration
    #[command(subcommand)]
    Network(network::Command),
    /// Commands to make the discovery images of an infra-env, without a service
    #[command(subcommand)]
    Discovery(discovery::Command),
    /// Serve images and the inventory API
    Serve(Box<serve::Serve>),
    /// Serve throw-away data, with commands to try
    Demo(demo::Demo),
    /// Say whether machines can boot from a URL of any server, and which cannot
    Doctor(doctor::Doctor),
    /// Boot an image in QEMU, and wait until its serial console says that it is up
    BootTest(boot_test::Boot),
    /// Commands to make keys and tokens
    #[command(subcommand)]
    Auth(auth::Command),
    /// Print what a shell completes command lines with
    Completions(completions::Completions),
    /// Print the manual page, or write those of all commands
    Man(man::Man),
    /// Commands to look into images and archives
    #[command(subcommand, hide = true)]
    Dev(dev::Command),
}

/// Runs the command that the arguments name, and gives the exit code: 0 done, 1 failed (or, of `iso diff`, `iso
/// verify`, `ignition validate`, `ignition merge`, `network check`, `doctor` and `boot-test`, found something), 2 wrong
/// usage (or, of `iso diff`, failed), 3 of `discovery create` and `discovery apply`: done, and the summary cannot be printed.
pub fn run(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    let cli = match parse(&arguments) {
        Ok(cli) => cli,
        Err(error) => error.exit(),
    };
    let failure = cli.command.failure();
    match cli.command.run(&arguments) {
        Ok(code) => code,
        Err(error) if is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("Error: {}", message(&error));
            failure
        }
    }
}

/// The command line as it is defined, under the name by which we are called.
fn definition(arguments: &[OsString]) -> clap::Command {
    let called = arguments.first().and_then(|path| Path::new(path).file_name());
    match called {
        Some(name) if name == installer::NAME => {
            Cli::command().name(installer::NAME).version(installer::VERSION)
        }
        _ => Cli::command(),
    }
}

fn parse(arguments: &[OsString]) -> Result<Cli, clap::Error> {
    let command = definition(arguments);
    let mut command = settings_file::resolve(environment::resolve(command), arguments)?;
    installer::refuse(&mut command, arguments)?;
    let matches = command.try_get_matches_from_mut(arguments);
    Cli::from_arg_matches(&matches.map_err(|error| environment::explain(error, &command, arguments))?)
}

impl Command {
    /// The exit code where it cannot be done.
    fn failure(&self) -> ExitCode {
        match self {
            Self::Iso(command) => command.failure(),
            _ => ExitCode::FAILURE,
        }
    }

    fn run(self, arguments: &[OsString]) -> anyhow::Result<ExitCode> {
        match self {
            Self::Iso(command) => command.run(),
            Self::Pxe(command) => command.run().map(|()| ExitCode::SUCCESS),
            Self::Ignition(command) => command.run(),
            Self::Network(command) => command.run(),
            Self::Discovery(command) => command.run(),
            Self::Serve(command) => command.run(),
            Self::Demo(command) => command.run(),
            Self::Doctor(command) => command.run(),
            Self::BootTest(command) => command.run(),
            Self::Auth(command) => command.run().map(|()| ExitCode::SUCCESS),
            Self::Completions(command) => command.run(definition(arguments)).map(|()| ExitCode::SUCCESS),
            Self::Man(command) => command.run(definition(arguments)).map(|()| ExitCode::SUCCESS),
            Self::Dev(command) => command.run().map(|()| ExitCode::SUCCESS),
        }
    }
}

/// A reader that has seen enough closes the pipe; that is no failure.
fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let is_pipe = |error: &io::Error| error.kind() == io::ErrorKind::BrokenPipe;
    error.chain().any(|cause| cause.downcast_ref::<io::Error>().is_some_and(is_pipe))
}

/// The error and its causes, a line each, without saying anything twice.
fn message(error: &anyhow::Error) -> String {
    let mut lines: Vec<String> = vec![error.to_string()];
    lines.extend(error.chain().skip(1).map(ToString::to_string));
    lines.dedup_by(|next, before| before.ends_with(next.as_str()));
    let [first, causes @ ..] = lines.as_slice() else { return String::new() };
    let mut text = first.clone();
    if !causes.is_empty() {
        text.push_str("\n\nCaused by:");
        for cause in causes {
            text.push_str("\n    ");
            text.push_str(cause);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_definition_is_sound() {
        Cli::command().debug_assert();
    }

    #[test]
    fn causes_are_listed_once() {
        let error = anyhow::anyhow!("cause").context("context").context("top: context");
        assert_eq!(message(&error), "top: context\n\nCaused by:\n    cause");
    }
}
