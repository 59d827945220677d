//! `kindling iso network`: embeds, extracts or removes the network settings in an image.

use anyhow::{Result, bail};
use clap::{Args, Subcommand};
use isogen::{BaseImage, Edits, Encoding};

use crate::cli::output::EditOptions;
use crate::cli::pxe::network::{ExtractionTarget, read_keyfiles};
use crate::customize::{RequiredFeatures, capabilities};

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
        let editing = self.edit.open_image()?;
        RequiredFeatures { network: true, ..RequiredFeatures::default() }
            .check(&capabilities(&editing.image))?;
        let mut archive = editing.image.archive()?;
        if !self.force && archive.network_files().next().is_some() {
            bail!("{} already has embedded network settings; use -f to force.", editing.image_name());
        }
        archive.remove_network_files();
        for (name, contents) in read_keyfiles(&self.keyfile)? {
            archive.insert_network_file(&name, contents);
        }
        editing.write_edited(&Edits::new().archive(archive.pack(Encoding::Xz)?))
    }
}

#[derive(Debug, Args)]
pub(in crate::cli) struct Extract {
    #[command(flatten)]
    extraction: ExtractionTarget,
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
        let editing = self.edit.open_image()?;
        let mut archive = editing.image.archive()?;
        archive.remove_network_files();
        editing.write_edited(&Edits::new().archive(archive.pack(Encoding::Xz)?))
    }
}
