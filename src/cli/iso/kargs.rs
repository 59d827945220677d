//! `kindling iso kargs`: shows or edits the kernel arguments of an image.

use anyhow::Result;
use clap::{Args, Subcommand};
use isogen::{BaseImage, Edits, KargsEdit, KargsOperations};
use serde_json::json;

use crate::cli::output::{EditOptions, print_json, print_line};

#[derive(Debug, Subcommand)]
pub(in crate::cli) enum Command {
    /// Modify kernel args in an ISO image
    Modify(Modify),
    /// Reset kernel args in an ISO image to defaults
    Reset(Reset),
    /// Show kernel args from an ISO image
    Show(Show),
}

impl Command {
    pub(super) fn run(self) -> Result<()> {
        match self {
            Self::Modify(command) => command.run(),
            Self::Reset(command) => command.run(),
            Self::Show(command) => command.run(),
        }
    }
}

#[derive(Debug, Args)]
pub(in crate::cli) struct Modify {
    /// Kernel argument to append
    #[arg(short, long, value_name = "KARG")]
    append: Vec<String>,
    /// Kernel argument to delete
    #[arg(short, long, value_name = "KARG")]
    delete: Vec<String>,
    /// Kernel argument to replace
    #[arg(short, long, value_name = "KARG=OLDVAL=NEWVAL")]
    replace: Vec<String>,
    #[command(flatten)]
    edit: EditOptions,
}

impl Modify {
    fn run(self) -> Result<()> {
        let operations = KargsOperations { delete: self.delete, append: self.append, replace: self.replace };
        let editing = self.edit.open_image()?;
        editing.write_edited(&Edits::new().kargs(KargsEdit::Current(operations)))
    }
}

#[derive(Debug, Args)]
pub(in crate::cli) struct Reset {
    #[command(flatten)]
    edit: EditOptions,
}

impl Reset {
    fn run(self) -> Result<()> {
        self.edit.open_image()?.write_edited(&Edits::new().kargs(KargsEdit::Reset))
    }
}

#[derive(Debug, Args)]
pub(in crate::cli) struct Show {
    /// Show default kernel args
    #[arg(short, long)]
    default: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// ISO image
    #[arg(value_name = "ISO")]
    input: String,
}

impl Show {
    fn run(self) -> Result<()> {
        let image = BaseImage::open(&self.input)?;
        let kargs = image.require_kargs()?;
        let arguments = if self.default { kargs.default()? } else { kargs.current()? };
        if self.json { print_json(&json!({ "kernel_arguments": arguments })) } else { print_line(arguments) }
    }
}
