//! `kindling iso extract`: extracts boot files or a minimal ISO from an image.

use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use clap::{Args, Subcommand};
use isogen::write::{FileAccess, NewFile};
use isogen::{BaseImage, Edits, LayoutStrategy, Plan, Segment};

use super::nmstatectl::Nmstatectl;
use crate::cli::created_files::{create_file, print_paths, write_files};
use crate::cli::input::any_path_parser;
use crate::cli::output::{refuse_terminal, write_stdout};

#[derive(Debug, Subcommand)]
pub(in crate::cli) enum Command {
    /// Extract PXE files from an ISO image
    Pxe(Pxe),
    /// Extract a minimal ISO from a CoreOS live ISO image
    MinimalIso(MinimalIso),
    /// Extract nmstatectl from the rootfs of an ISO image, as an initrd image
    Nmstatectl(Nmstatectl),
}

impl Command {
    pub(super) fn run(self) -> Result<()> {
        match self {
            Self::Pxe(command) => command.run(),
            Self::MinimalIso(command) => command.run(),
            Self::Nmstatectl(command) => command.run(),
        }
    }
}

#[derive(Debug, Args)]
pub(in crate::cli) struct Pxe {
    /// Output directory
    #[arg(short, long, value_name = "PATH", default_value = ".", value_parser = any_path_parser())]
    output_dir: PathBuf,
    /// ISO image
    #[arg(value_name = "ISO", value_parser = any_path_parser())]
    input: PathBuf,
}

impl Pxe {
    fn run(self) -> Result<()> {
        let image = BaseImage::open(&self.input)?;
        let Ok(files) = image.pxe_files() else {
            bail!("Unrecognized CoreOS ISO image: {} has no images/pxeboot.", self.input.display());
        };
        let stem = self.input.file_stem().context("the image's path has no file name")?.to_string_lossy();
        let path = |name: &str| self.output_dir.join(format!("{stem}-{name}"));
        let files = files.into_iter().map(|file| (path(&file.name), file.plan)).collect();
        let paths =
            write_files("--output-dir", files, FileAccess::Shared, |file, plan| Ok(file.write_plan(&plan)?))?;
        print_paths(&paths)
    }
}

#[derive(Debug, Args)]
pub(in crate::cli) struct MinimalIso {
    /// Extract rootfs image as well
    #[arg(long, value_name = "PATH")]
    output_rootfs: Option<PathBuf>,
    /// Inject rootfs URL karg into minimal ISO
    #[arg(long, value_name = "URL")]
    rootfs_url: Option<String>,
    /// Make the minimal ISO with a new layout if the image does not describe it, describes it
    /// wrongly, or has too little space for the URL
    #[arg(long)]
    relayout: bool,
    /// Print the number of shared and new bytes of the minimal ISO to stderr
    #[arg(long)]
    stats: bool,
    /// ISO image
    #[arg(value_name = "ISO")]
    input: String,
    /// Minimal ISO output file
    #[arg(value_name = "OUTPUT_ISO", default_value = "-")]
    output: String,
}

impl MinimalIso {
    fn run(self) -> Result<()> {
        let to_stdout = self.output == "-";
        let image = BaseImage::open(&self.input)?;
        image.require_kargs()?;
        image.require_pristine()?;
        if to_stdout {
            refuse_terminal()?;
        }
        let rootfs = self.output_rootfs.map(|path| -> Result<NewFile> {
            let file = create_file("--output-rootfs", &path, FileAccess::Shared)?;
            file.write_plan(&image.rootfs()?)?;
            Ok(file)
        });
        let rootfs = rootfs.transpose()?;
        // Create the output before the work, to fail early if the file exists. It gets its name at the end.
        let output = (!to_stdout)
            .then(|| create_file("OUTPUT_ISO", self.output.as_ref(), FileAccess::Private))
            .transpose()?;
        let rootfs_url = self.rootfs_url.as_deref();
        let edits = Edits::new().minimal(rootfs_url);
        if !self.relayout {
            image.verify_minimal()?;
            if let LayoutStrategy::Relayout(reason) = image.layout_strategy(&edits)? {
                bail!("{}: {reason}; use --relayout to make a minimal ISO with a new layout", self.input);
            }
        }
        let plan = image.plan(&edits)?;
        if self.stats {
            print_stats(&plan);
        }
        match output {
            Some(file) => {
                file.write_plan(&plan)?;
                rootfs.map(NewFile::commit).transpose()?;
                file.commit()?;
            }
            None => {
                rootfs.map(NewFile::commit).transpose()?;
                write_stdout(&plan)?;
            }
        }
        Ok(())
    }
}

/// Prints how many bytes come from the base image, and how many are new.
fn print_stats(plan: &Plan) {
    let count = |is_counted: fn(&Segment) -> bool| -> u64 {
        plan.layout().iter().map(|placed| &placed.segment).filter(|it| is_counted(it)).map(Segment::len).sum()
    };
    let shared = count(|segment| matches!(segment, Segment::Base(_)));
    let emitted = count(|segment| matches!(segment, Segment::Bytes(_)));
    let zeros = count(|segment| matches!(segment, Segment::Zero(_)));
    let segments = plan.layout().len();
    eprintln!(
        "{} bytes in {segments} segments: {shared} shared with the base, {emitted} emitted, {zeros} zeros",
        plan.len()
    );
}
