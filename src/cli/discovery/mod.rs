//! `kindling discovery`: makes the images of an infra-env without a service.

mod apply;
mod base;
mod create;
mod inputs;
mod output;
mod plan;
mod prepare;
mod private_files;
mod summary;

pub(super) use apply::read_plan_file as read_plan;
pub(super) use base::parse_architecture;
pub(super) use inputs::{SharedInfraEnvOptions, option_text, read_optional_file};

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Result;
use clap::Subcommand;
use clap::builder::{PathBufValueParser, TypedValueParser};

use super::output::{StdoutClosed, print_message};

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Make images
    ///
    /// The infra-env comes from a directory of Kubernetes manifests (InfraEnv, NMStateConfig, Secret, ConfigMap,
    /// ClusterDeployment, AgentClusterInstall, ClusterImageSet), from options, or from both: options override
    /// manifests. Everything is checked before any file is written; findings go to stderr, with file and line.
    Create(Box<create::Create>),
    /// Show the plan of an image, and write a plan file
    ///
    /// A plan file is a few KiB long. It contains the digest of the base image, and the changes to the image.
    /// `discovery apply` makes the image from a plan file and the base image; `iso verify --plan` checks that an image
    /// matches a plan file.
    Plan(Box<plan::PlanCommand>),
    /// Make an image from a plan file
    Apply(apply::Apply),
}

impl Command {
    pub(super) fn run(self) -> Result<ExitCode> {
        match self {
            Self::Create(command) => command.run(),
            Self::Plan(command) => command.run(),
            Self::Apply(command) => command.run(),
        }
    }
}

/// The exit code of a command that wrote all files but could not print its summary.
const SUMMARY_NOT_PRINTED: u8 = 3;

/// Returns the exit code of a command that wrote all files. If the summary could not be printed, prints an error but
/// keeps the files.
fn exit_code_after_summary(summary: Result<()>) -> Result<ExitCode> {
    match summary {
        Err(error) if !error.is::<StdoutClosed>() => {
            let error = error.context("all files are written, but the summary cannot be printed");
            print_message(format_args!("Error: {}\n", super::error_message(&error)));
            Ok(ExitCode::from(SUMMARY_NOT_PRINTED))
        }
        result => result.map(|()| ExitCode::SUCCESS),
    }
}

/// Returns a parser for the path of an output file. The parser rejects `-`, because the summary goes to stdout.
fn output_file_parser(what: &'static str) -> impl TypedValueParser<Value = PathBuf> {
    PathBufValueParser::new().try_map(move |path| {
        if path == Path::new("-") {
            Err(format!("{what} cannot be written to stdout; name a file"))
        } else {
            Ok(path)
        }
    })
}
