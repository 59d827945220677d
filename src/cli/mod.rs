//! The command line. Each command is a module of the same name.
//!
//! The `iso`, `pxe` and `dev` commands that also exist in `coreos-installer` are compatible with it: they take the same
//! options, read the same files and print the same output. If the program runs under the name `coreos-installer`,
//! messages contain that name.

mod auth;
mod boot_test;
mod catalogue;
mod completions;
mod connection;
#[cfg(feature = "kube-api")]
mod crd;
mod created_files;
#[cfg(feature = "demo")]
mod demo;
mod dev;
mod directories;
mod discovery;
mod doctor;
mod duration;
mod environment;
mod examples;
mod failure;
#[cfg(feature = "demo")]
mod fixture;
mod grouped_findings;
mod ignition;
mod infra_env;
mod input;
mod installer;
mod iso;
mod listen_address;
mod man;
mod network;
mod output;
mod progress;
mod pxe;
mod refusal;
mod serve;
mod servers;
mod settings_file;
mod shell;
mod simulate;
mod table;

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

use clap::{ArgMatches, CommandFactory, FromArgMatches, Parser, Subcommand};

use output::{StdoutClosed, print_message};

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
    /// Commands to create and show the infra-envs of a service, and their hosts
    #[command(subcommand)]
    InfraEnv(infra_env::Command),
    /// Serve images and the inventory API
    Serve(Box<serve::Serve>),
    /// Serve throw-away data, with commands to try
    #[cfg(feature = "demo")]
    Demo(demo::Demo),
    /// Write a small test image, to try commands without a real base image
    #[cfg(feature = "demo")]
    Fixture(fixture::Fixture),
    /// Simulate hosts that register, poll and reply, against any server
    Simulate(Box<simulate::Simulate>),
    /// Check which clients can boot from a URL, on any server
    Doctor(doctor::Doctor),
    /// Boot an image in QEMU, and wait for a marker on its serial console
    BootTest(boot_test::BootTestOptions),
    /// Commands to make keys and tokens
    #[command(subcommand)]
    Auth(auth::Command),
    /// Print the custom resource definitions of the Kubernetes API
    #[cfg(feature = "kube-api")]
    Crd(crd::Crd),
    /// Print a completion script for a shell
    Completions(completions::Completions),
    /// Print the manual page, or write the pages of all commands
    Man(man::Man),
    /// Commands to inspect images and archives
    #[command(subcommand, hide = true)]
    Dev(dev::Command),
}

/// Runs the command in the arguments, and returns the exit code:
///
/// * 0: success
/// * 1: failure, or findings of `iso diff`, `iso verify`, `ignition validate`, `ignition merge`, `network check`,
///   `doctor` and `boot-test`
/// * 2: wrong usage, or failure of `iso diff`
/// * 3: `discovery create`, `plan` or `apply` wrote all files but could not print its summary
pub fn run(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    let (cli, is_json) = match parse_arguments(&arguments) {
        Ok(parsed) => parsed,
        Err(error) => error.exit(),
    };
    let failure = cli.command.failure_exit_code();
    let result = cli.command.run(&arguments);
    progress::clear_bars();
    match result {
        Ok(code) => code,
        Err(error) if error.is::<StdoutClosed>() => ExitCode::SUCCESS,
        Err(error) => {
            print_message(format_args!("Error: {}\n", error_message(&error)));
            if is_json {
                failure::print_as_json(&error);
            }
            failure
        }
    }
}

/// Returns the definition of the command line. The program name depends on the first argument.
fn command_definition(arguments: &[OsString]) -> clap::Command {
    let program_name = arguments.first().and_then(|path| Path::new(path).file_name());
    let command = match program_name {
        Some(name) if name == installer::NAME => {
            Cli::command().name(installer::NAME).version(installer::VERSION)
        }
        _ => Cli::command(),
    };
    serve::shorten_summary(examples::add_examples(command), arguments)
}

/// Parses a command line. Also returns `true` if it has `--json`.
fn parse_arguments(arguments: &[OsString]) -> Result<(Cli, bool), clap::Error> {
    let command = command_definition(arguments);
    let mut command = settings_file::apply_as_defaults(environment::set_variables(command), arguments)?;
    installer::refuse_missing_command(&mut command, arguments)?;
    let matches = command.try_get_matches_from_mut(arguments);
    let matches = matches.map_err(|error| environment::explain_error(error, &command, arguments))?;
    Ok((Cli::from_arg_matches(&matches)?, has_json_option(&matches)))
}

/// Returns `true` if the subcommand has a `--json` option that is set.
fn has_json_option(matches: &ArgMatches) -> bool {
    match matches.subcommand() {
        Some((_, matches)) => has_json_option(matches),
        None => matches.try_get_one::<bool>("json").is_ok_and(|is_set| is_set == Some(&true)),
    }
}

impl Command {
    /// Returns the exit code of a failure, which depends on the command.
    fn failure_exit_code(&self) -> ExitCode {
        match self {
            Self::Iso(command) => command.failure_exit_code(),
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
            Self::InfraEnv(command) => command.run().map(|()| ExitCode::SUCCESS),
            Self::Serve(command) => command.run(),
            #[cfg(feature = "demo")]
            Self::Demo(command) => command.run(),
            #[cfg(feature = "demo")]
            Self::Fixture(command) => command.run().map(|()| ExitCode::SUCCESS),
            Self::Simulate(command) => command.run(),
            Self::Doctor(command) => command.run(),
            Self::BootTest(command) => command.run(),
            Self::Auth(command) => command.run().map(|()| ExitCode::SUCCESS),
            #[cfg(feature = "kube-api")]
            Self::Crd(command) => command.run().map(|()| ExitCode::SUCCESS),
            Self::Completions(command) => {
                command.run(command_definition(arguments)).map(|()| ExitCode::SUCCESS)
            }
            Self::Man(command) => command.run(command_definition(arguments)).map(|()| ExitCode::SUCCESS),
            Self::Dev(command) => command.run().map(|()| ExitCode::SUCCESS),
        }
    }
}

/// Formats an error and its causes, one per line.
fn error_message(error: &anyhow::Error) -> String {
    let lines = error_lines(error);
    let [first, causes @ ..] = lines.as_slice() else { return String::new() };
    let mut text = first.clone();
    if !causes.is_empty() {
        text.push_str("\n\nCaused by:");
        for cause in causes {
            text.push_str("\n    ");
            text.push_str(cause);
        }
    }
    // The text may contain control characters from a server.
    text.replace(|it: char| it.is_control() && it != '\n' && it != '\t', "\u{fffd}")
}

/// Returns the texts of an error and of its causes. Omits a cause if the previous text ends with it.
fn error_lines(error: &anyhow::Error) -> Vec<String> {
    let mut lines: Vec<String> = error.chain().map(cause_with_advice).collect();
    lines.dedup_by(|next, before| before.ends_with(next.as_str()));
    lines
}

/// Formats an error. Adds the command that resolves it, because errors of libraries do not mention commands.
fn cause_with_advice(error: &(dyn std::error::Error + 'static)) -> String {
    match error.downcast_ref() {
        Some(isogen::Error::Customized { .. }) => format!("{error} Reset it with `iso reset` and try again."),
        Some(isogen::Error::Interrupted { .. }) => format!("{error}; `iso reset` repairs the image"),
        _ => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn definition_passes_debug_assertions() {
        Cli::command().debug_assert();
    }

    #[test]
    fn library_errors_name_the_command_that_helps() {
        let file = || "a.iso".to_owned();
        let customized = isogen::Error::Customized { file: file(), what: "the Ignition area" };
        let text = error_message(&anyhow::Error::new(customized).context("making an image"));
        assert!(
            text.ends_with("(the Ignition area of a.iso). Reset it with `iso reset` and try again."),
            "{text}"
        );
        let text = error_message(&isogen::Error::Interrupted { file: file() }.into());
        let expected =
            "a.iso: an in-place edit was interrupted before it was complete; `iso reset` repairs the image";
        assert_eq!(text, expected);
    }

    #[test]
    fn control_characters_in_errors_are_replaced() {
        let error = anyhow::anyhow!("a\u{1b}[31m\nb").context("top");
        assert_eq!(error_message(&error), "top\n\nCaused by:\n    a\u{fffd}[31m\nb");
    }

    #[test]
    fn closed_socket_is_a_failure_but_closed_stdout_is_not() {
        let broken_pipe = || std::io::Error::from(std::io::ErrorKind::BrokenPipe);
        let error = output::stdout_error(broken_pipe()).context("listing infra-envs");
        assert!(error.is::<StdoutClosed>());
        let error = anyhow::Error::new(broken_pipe()).context("cannot send the request");
        assert!(!error.is::<StdoutClosed>());
        let error = output::stdout_error(std::io::ErrorKind::StorageFull.into());
        assert!(!error.is::<StdoutClosed>());
    }

    #[test]
    fn repeated_causes_are_listed_once() {
        let error = anyhow::anyhow!("cause").context("context").context("top: context");
        assert_eq!(error_message(&error), "top: context\n\nCaused by:\n    cause");
    }
}
