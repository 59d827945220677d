//! `kindling iso reset`: removes all customizations from an image.

use anyhow::Result;
use clap::Args;
use isogen::{Edits, KargsEdit, PackedArchive};

use crate::cli::output::EditOptions;

#[derive(Debug, Args)]
pub(in crate::cli) struct Reset {
    #[command(flatten)]
    edit: EditOptions,
}

impl Reset {
    /// Does not parse the Ignition area, because the command also repairs images with invalid content.
    pub(super) fn run(self) -> Result<()> {
        let editing = self.edit.open_image()?;
        let edits = Edits::new().archive(PackedArchive::default());
        let edits = match editing.image.kargs() {
            Some(kargs) if kargs.default().is_ok() => edits.kargs(KargsEdit::Reset),
            _ => edits,
        };
        editing.write_edited(&edits)
    }
}
