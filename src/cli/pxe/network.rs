//! `kindling pxe network`: wraps network settings in a separate initrd image, or unwraps them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use clap::{Args, Subcommand};
use isogen::initrd::{ArchiveLimits, NETWORK_DIRECTORY};
use isogen::{Archive, Encoding};

use crate::cli::created_files::{print_paths, write_private};
use crate::cli::input;
use crate::cli::output::{print_bytes, print_line, write_bytes};

#[derive(Debug, Subcommand)]
pub(in crate::cli) enum Command {
    /// Wrap network settings in an initrd image
    Wrap(Wrap),
    /// Extract wrapped network settings from an initrd image
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
    /// NetworkManager keyfile to embed
    #[arg(short, long, required = true, value_name = "path")]
    keyfile: Vec<String>,
    /// Write to a file instead of stdout
    #[arg(short, long, value_name = "path")]
    output: Option<String>,
}

impl Wrap {
    fn run(self) -> Result<()> {
        let mut archive = Archive::new();
        for (name, contents) in read_keyfiles(&self.keyfile)? {
            archive.insert_network_file(&name, contents);
        }
        write_bytes(self.output.as_deref(), archive.pack(Encoding::Xz)?.as_bytes())
    }
}

#[derive(Debug, Args)]
pub(in crate::cli) struct Unwrap {
    #[command(flatten)]
    extraction: ExtractionTarget,
    /// initrd image [default: stdin]
    #[arg(value_name = "initrd")]
    input: Option<String>,
}

impl Unwrap {
    fn run(self) -> Result<()> {
        let (stream, name) = input::open_stream(self.input.as_deref())?;
        let is_network_file = |member: &str| member.starts_with(NETWORK_DIRECTORY);
        let archive = Archive::read_matching(stream, ArchiveLimits::INITRD, is_network_file);
        self.extraction.run(&archive.with_context(|| format!("decoding {name}"))?)
    }
}

/// Reads keyfiles into a map with their file names as keys.
pub(in crate::cli) fn read_keyfiles(paths: &[String]) -> Result<BTreeMap<String, Vec<u8>>> {
    let mut keyfiles = BTreeMap::new();
    for file in input::read_files(paths)? {
        if keyfiles.insert(file.name().to_owned(), file.contents().to_vec()).is_some() {
            bail!("multiple input files named {}", file.name());
        }
    }
    Ok(keyfiles)
}

/// The option for the destination of extracted network files.
#[derive(Debug, Args)]
pub(in crate::cli) struct ExtractionTarget {
    /// Extract to directory instead of stdout
    #[arg(short = 'C', long, value_name = "path", value_parser = input::any_path_parser())]
    directory: Option<PathBuf>,
}

impl ExtractionTarget {
    pub(in crate::cli) fn run(&self, archive: &Archive) -> Result<()> {
        if archive.network_files().next().is_none() {
            bail!("No embedded network settings.");
        }
        match &self.directory {
            Some(directory) => extract_to(directory, archive),
            None => print_members(archive),
        }
    }
}

fn print_members(archive: &Archive) -> Result<()> {
    for (index, (name, contents)) in archive.network_files().enumerate() {
        if index > 0 {
            print_line("")?;
        }
        print_line(format!("########## {name} ##########"))?;
        print_bytes(contents)?;
    }
    Ok(())
}

fn extract_to(directory: &Path, archive: &Archive) -> Result<()> {
    let files =
        archive.network_files().map(|(name, contents)| Ok((input::path_below(directory, name)?, contents)));
    print_paths(&write_private("--directory", files.collect::<Result<_>>()?)?)
}
