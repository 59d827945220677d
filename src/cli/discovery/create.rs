//! `kindling discovery create`.

use std::process::ExitCode;

use anyhow::Result;
use clap::Args;

use super::apply;
use super::output::{Digests, OutputOptions, write};
use super::prepare::{FROM_PLAN, SourceOptions};
use super::{summary, told};

pub(super) const EXIT_CODES: &str = "Exit code: 0 all files are there, 1 an error was found and nothing is there, 2 wrong \
    usage, 3 all files are there and the summary cannot be printed.";

#[derive(Debug, Args)]
#[command(after_help = EXIT_CODES)]
pub(in crate::cli) struct Create {
    #[command(flatten)]
    source: SourceOptions,
    #[command(flatten)]
    outputs: OutputOptions,
    /// Where minimal images and boots over the network fetch the root file system
    #[arg(long, value_name = "URL", conflicts_with = "from_plan", help_heading = "Images")]
    rootfs_url: Option<String>,
    /// Tell the SHA-256 digests of large files too, for which all of them is read; those of up to 256 MiB are told anyway
    #[arg(long, help_heading = "Images")]
    sha256: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl Create {
    pub(super) fn run(self) -> Result<ExitCode> {
        self.outputs.require_directories()?;
        if let Some(plan) = &self.source.from_plan {
            let file = apply::read(plan, FROM_PLAN)?;
            let output = self.outputs.only(file.form())?;
            let base = self.source.base.open(None)?;
            return apply::make((&file, plan), &base.image, output);
        }
        let prepared = self.source.prepare()?;
        let (images, hosts) = (&prepared.images, prepared.draft.hosts.as_slice());
        let outputs = self.outputs.outputs(self.rootfs_url.as_deref(), images, hosts)?;
        let digests = if self.sha256 { Digests::OfAll } else { Digests::OfSmall };
        let written = write(&outputs, &prepared.images, &prepared.cache, digests)?;
        told(summary::print(&prepared, &written, self.json))
    }
}
