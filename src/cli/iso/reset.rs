//! `kindling iso reset`: an image as it was published.

use anyhow::Result;
use clap::Args;
use isogen::{Edits, KargsEdit, Packed};

use crate::cli::output::EditOptions;

#[derive(Debug, Args)]
pub(in crate::cli) struct Reset {
    #[command(flatten)]
    edit: EditOptions,
}

impl Reset {
    /// What the Ignition area holds is not looked at: garbage in it is what this command is for.
    pub(super) fn run(self) -> Result<()> {
        let editing = self.edit.open()?;
        let edits = Edits::new().archive(Packed::default());
        let edits = match editing.image.kargs() {
            Some(kargs) if kargs.default().is_ok() => edits.kargs(KargsEdit::Reset),
            _ => edits,
        };
        editing.write(&edits)
    }
}
