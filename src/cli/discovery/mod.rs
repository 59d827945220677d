//! `kindling discovery`: the images of an infra-env, without a service.

mod apply;
mod base;
mod create;
mod inputs;
mod output;
mod plan;
mod prepare;
mod summary;

pub(super) use apply::read as read_plan;

use std::process::ExitCode;

use anyhow::Result;
use clap::Subcommand;

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
