//! `kindling pxe ignition`: wraps an Ignition config in a separate initrd image, or unwraps it.

use anyhow::{Context, Result, bail};
use clap::{Args, Subcommand};
use isogen::initrd::{ArchiveLimits, IGNITION_CONFIG};
use isogen::{Archive, Encoding};

use crate::cli::ignition::invalid;
use crate::cli::input;
use crate::cli::output::{print_bytes, write_bytes};

#[derive(Debug, Subcommand)]
pub(in crate::cli) enum Command {
    /// Wrap an Ignition config in an initrd image
    Wrap(Wrap),
    /// Show the wrapped Ignition config in an initrd image
    Unwrap(Unwrap),
}

impl Command {
    pub(super) fn run(self) -> Result<()> {
        match self {
            Self::Wrap(command) => command.run(),
            Self::Unwrap(command) => command.run(),
        }
    }
}

#[derive(Debug, Args)]
pub(in crate::cli) struct Wrap {
    /// Ignition config to wrap [default: stdin]
    #[arg(short, long, value_name = "path")]
    ignition_file: Option<String>,
    /// Write to a file instead of stdout
    #[arg(short, long, value_name = "path")]
    output: Option<String>,
}

impl Wrap {
    fn run(self) -> Result<()> {
        let mut archive = Archive::new();
        let (name, config) = input::read_named_input(self.ignition_file.as_deref())?;
        invalid::warn_if_invalid(name, &config)?;
        archive.insert(IGNITION_CONFIG, config);
        write_bytes(self.output.as_deref(), archive.pack(Encoding::Xz)?.as_bytes())
    }
}

#[derive(Debug, Args)]
pub(in crate::cli) struct Unwrap {
    /// initrd image [default: stdin]
    #[arg(value_name = "initrd")]
    input: Option<String>,
}

impl Unwrap {
    fn run(self) -> Result<()> {
        let (stream, name) = input::open_stream(self.input.as_deref())?;
        let archive =
            Archive::read_matching(stream, ArchiveLimits::INITRD, |member| member == IGNITION_CONFIG);
        match archive.with_context(|| format!("decoding {name}"))?.get(IGNITION_CONFIG) {
            Some(config) => print_bytes(config),
            None => bail!("couldn't find Ignition config in archive ({name})"),
        }
    }
}
