//! `kindling iso network`: the network settings in an image.

use anyhow::{Result, bail};
use clap::{Args, Subcommand};
use isogen::{BaseImage, Edits, Encoding};

use crate::cli::output::EditOptions;
use crate::cli::pxe::network::{Extraction, keyfiles};
use crate::customize::{Needs, capabilities};

#[derive(Debug, Subcommand)]
pub(in crate::cli) enum Command {
    /// Embed network settings in an ISO image
    Embed(Embed),
    /// Extract embedded network settings from an ISO image
    Extract(Extract),
    /// Remove existing network settings from an ISO image
    Remove(Remove),
}

impl Command {
    pub(super) fn run(self) -> Result<()> {
        match self {
            Self::Embed(command) => command.run(),
            Self::Extract(command) => command.run(),
            Self::Remove(command) => command.run(),
        }
    }
}

#[derive(Debug, Args)]
pub(in crate::cli) struct Embed {
    /// NetworkManager keyfile to embed
    #[arg(short, long, required = true, value_name = "path")]
    keyfile: Vec<String>,
    /// Overwrite existing network settings
    #[arg(short, long)]
    force: bool,
    #[command(flatten)]
    edit: EditOptions,
}

impl Embed {
    fn run(self) -> Result<()> {
        let editing = self.edit.open()?;
        Needs { network: true, ..Needs::default() }.check(&capabilities(&editing.image))?;
        let mut archive = editing.image.archive()?;
        if !self.force && archive.network().next().is_some() {
            bail!("{} already has embedded network settings; use -f to force.", editing.name());
        }
        archive.remove_network();
        for (name, contents) in keyfiles(&self.keyfile)? {
            archive.insert_network(&name, contents);
        }
        editing.write(&Edits::new().archive(archive.pack(Encoding::Xz)?))
    }
}

#[derive(Debug, Args)]
pub(in crate::cli) struct Extract {
    #[command(flatten)]
    extraction: Extraction,
    /// ISO image
    #[arg(value_name = "ISO")]
    input: String,
}

impl Extract {
    fn run(self) -> Result<()> {
        self.extraction.run(&BaseImage::open(&self.input)?.archive()?)
    }
}

#[derive(Debug, Args)]
pub(in crate::cli) struct Remove {
    #[command(flatten)]
    edit: EditOptions,
}

impl Remove {
    fn run(self) -> Result<()> {
        let editing = self.edit.open()?;
        let mut archive = editing.image.archive()?;
        archive.remove_network();
        editing.write(&Edits::new().archive(archive.pack(Encoding::Xz)?))
    }
}
