//! `kindling discovery create`.

use std::process::ExitCode;

use anyhow::Result;
use clap::Args;

use super::apply;
use super::output::{Digests, OutputOptions, write};
use super::prepare::SourceOptions;
use super::summary;

const EXIT_CODES: &str =
    "Exit code: 0 all images are there, 1 an error was found and nothing is there, 2 wrong usage.";

#[derive(Debug, Args)]
#[command(after_help = EXIT_CODES)]
pub(in crate::cli) struct Create {
    #[command(flatten)]
    source: SourceOptions,
    #[command(flatten)]
    outputs: OutputOptions,
    /// Where minimal images and boots over the network fetch the root file system
    #[arg(long, value_name = "URL", help_heading = "Images")]
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
        if let Some(plan) = &self.source.from_plan {
            let file = apply::read(plan)?;
            let output = self.outputs.only(file.form())?;
            let base = self.source.base.open(None)?;
            return apply::make((&file, plan), &base.image, output);
        }
        let prepared = self.source.prepare()?;
        let hosts: Vec<&str> = prepared.draft.hosts.iter().map(|host| host.name.as_str()).collect();
        let outputs = self.outputs.outputs(self.rootfs_url.as_deref(), &prepared.images, &hosts)?;
        let digests = if self.sha256 { Digests::OfAll } else { Digests::OfSmall };
        let written = write(&outputs, &prepared.images, &prepared.cache, digests)?;
        summary::print(&prepared, &written, self.json)?;
        Ok(ExitCode::SUCCESS)
    }
}
