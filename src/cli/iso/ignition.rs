//! `kindling iso ignition`: embeds, shows or removes the Ignition config in an image.

use anyhow::{Result, bail};
use clap::{Args, Subcommand};
use isogen::initrd::IGNITION_CONFIG;
use isogen::{BaseImage, Edits, Encoding};

use crate::cli::ignition::invalid;
use crate::cli::input;
use crate::cli::output::{EditOptions, print_bytes};

#[derive(Debug, Subcommand)]
pub(in crate::cli) enum Command {
    /// Embed an Ignition config in an ISO image
    Embed(Embed),
    /// Show the embedded Ignition config from an ISO image
    Show(Show),
    /// Remove an existing embedded Ignition config from an ISO image
    Remove(Remove),
}

impl Command {
    pub(super) fn run(self) -> Result<()> {
        match self {
            Self::Embed(command) => command.run(),
            Self::Show(command) => command.run(),
            Self::Remove(command) => command.run(),
        }
    }
}

#[derive(Debug, Args)]
pub(in crate::cli) struct Embed {
    /// Overwrite an existing Ignition config
    #[arg(short, long)]
    force: bool,
    /// Ignition config to embed [default: stdin]
    #[arg(short, long, value_name = "path")]
    ignition_file: Option<String>,
    #[command(flatten)]
    edit: EditOptions,
}

impl Embed {
    pub(super) fn run(self) -> Result<()> {
        let (name, config) = input::read_named_input(self.ignition_file.as_deref())?;
        let editing = self.edit.open_image()?;
        let mut archive = editing.image.archive()?;
        if !self.force && archive.get(IGNITION_CONFIG).is_some() {
            bail!("{} already has an embedded Ignition config; use -f to force.", editing.image_name());
        }
        invalid::warn_if_invalid(name, &config)?;
        archive.insert(IGNITION_CONFIG, config);
        editing.write_edited(&Edits::new().archive(archive.pack(Encoding::Xz)?))
    }
}

/// The deprecated form of [`Embed`].
#[derive(Debug, Args)]
pub(in crate::cli) struct DeprecatedEmbed {
    /// Ignition config to embed [default: stdin]
    #[arg(short, long, value_name = "path")]
    config: Option<String>,
    /// Overwrite an existing embedded Ignition config
    #[arg(short, long)]
    force: bool,
    #[command(flatten)]
    edit: EditOptions,
}

impl DeprecatedEmbed {
    pub(super) fn run(self) -> Result<()> {
        super::warn_deprecated("embed")?;
        let Self { config, force, edit } = self;
        Embed { force, ignition_file: config, edit }.run()
    }
}

#[derive(Debug, Args)]
pub(in crate::cli) struct Show {
    /// ISO image
    #[arg(value_name = "ISO")]
    input: String,
}

impl Show {
    pub(super) fn run(self) -> Result<()> {
        let archive = BaseImage::open(&self.input)?.archive()?;
        match archive.get(IGNITION_CONFIG) {
            Some(config) => print_bytes(config),
            None => bail!("No embedded Ignition config."),
        }
    }
}

#[derive(Debug, Args)]
pub(in crate::cli) struct Remove {
    #[command(flatten)]
    edit: EditOptions,
}

impl Remove {
    pub(super) fn run(self) -> Result<()> {
        let editing = self.edit.open_image()?;
        let mut archive = editing.image.archive()?;
        archive.remove(IGNITION_CONFIG);
        editing.write_edited(&Edits::new().archive(archive.pack(Encoding::Xz)?))
    }
}
