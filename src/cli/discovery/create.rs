//! `kindling discovery create`: makes the images of an infra-env.

use std::process::ExitCode;

use anyhow::Result;
use clap::Args;

use super::apply;
use super::output::{DigestedFiles, OutputOptions, write_outputs};
use super::prepare::{FROM_PLAN, SourceOptions};
use super::{exit_code_after_summary, summary};

pub(super) const EXIT_CODES: &str = "Exit code: 0 all files are written, 1 an error was found and no file is \
    written, 2 wrong usage, 3 all files are written but the summary cannot be printed.";

#[derive(Debug, Args)]
#[command(after_help = EXIT_CODES)]
pub(in crate::cli) struct Create {
    #[command(flatten)]
    source: SourceOptions,
    #[command(flatten)]
    outputs: OutputOptions,
    /// URL from which minimal ISOs and network boots download the root file system
    #[arg(long, value_name = "URL", conflicts_with = "from_plan", help_heading = "Images")]
    rootfs_url: Option<String>,
    /// Print SHA-256 digests of all files, not only of files up to 256 MiB
    #[arg(long, help_heading = "Images")]
    sha256: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl Create {
    pub(super) fn run(self) -> Result<ExitCode> {
        self.outputs.check_paths()?;
        if let Some(plan) = &self.source.from_plan {
            let file = apply::read_plan_file(plan, FROM_PLAN)?;
            let output = self.outputs.only_image_path(file.form())?;
            let base = self.source.base.open(None)?;
            return apply::write_image((&file, plan), &base.image, output, self.json);
        }
        let prepared = self.source.prepare()?;
        let (images, hosts) = (&prepared.images, prepared.draft.hosts.as_slice());
        let outputs = self.outputs.output_files(self.rootfs_url.as_deref(), images, hosts)?;
        let digests = if self.sha256 { DigestedFiles::OfAll } else { DigestedFiles::OfSmall };
        let files = write_outputs(&outputs, &prepared.images, &prepared.cache, digests)?;
        exit_code_after_summary(summary::print_summary(&prepared, &files, self.json))
    }
}
