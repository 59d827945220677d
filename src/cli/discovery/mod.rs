//! `kindling discovery`: the images of an infra-env, without a service.

mod apply;
mod base;
mod create;
mod inputs;
mod output;
mod plan;
mod prepare;
mod private_files;
mod summary;

pub(super) use apply::read as read_plan;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Result;
use clap::Subcommand;
use clap::builder::{PathBufValueParser, TypedValueParser};

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Make images
    ///
    /// The infra-env comes from a directory of Kubernetes manifests (InfraEnv, NMStateConfig, Secret, ConfigMap,
    /// ClusterDeployment, AgentClusterInstall, ClusterImageSet), from options, or from both: options count more. All of it
    /// is looked at before anything is written; findings go to stderr, with file and line.
    Create(Box<create::Create>),
    /// Tell what an image would be, and write its plan file
    ///
    /// A plan file has a few KiB: the digest of the live image, and what goes into it. `discovery apply` makes the image of it
    /// wherever the live image is; `iso verify --plan` proves that an image is the one of a plan.
    Plan(Box<plan::PlanCommand>),
    /// Make the image of a plan file
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

/// The exit code of a command that has written all of its files and cannot print its summary.
const UNTOLD: u8 = 3;

/// The exit code after all files are there and the summary was printed, or could not be: that takes no file away.
fn told(summary: Result<()>) -> Result<ExitCode> {
    match summary {
        Err(error) if !super::is_broken_pipe(&error) => {
            let error = error.context("all files are written, and the summary cannot be printed");
            eprintln!("Error: {}", super::message(&error));
            Ok(ExitCode::from(UNTOLD))
        }
        told => told.map(|()| ExitCode::SUCCESS),
    }
}

/// What reads the name of a file to write. The standard output is taken: it has the summary.
fn named_file(what: &'static str) -> impl TypedValueParser<Value = PathBuf> {
    PathBufValueParser::new().try_map(move |path| {
        if path == Path::new("-") {
            Err(format!("{what} are not written to stdout: name a file"))
        } else {
            Ok(path)
        }
    })
}
