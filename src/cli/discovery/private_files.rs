//! Output files with mode 0600, and the command that allows a web server to read them.

use std::fmt;

use isogen::write::FileAccess;
use serde::Serialize;

use super::output::WrittenFiles;
use crate::cli::shell::shell_quoted;

/// Maximum number of files to list in the command.
const MAX_NAMED: usize = 8;

/// The note about output files that only their owner can read.
#[derive(Debug, Serialize)]
pub(super) struct PrivateFiles {
    mode: &'static str,
    reason: &'static str,
    /// The command that allows the group of a web server to read the files.
    share_with_group: String,
}

impl PrivateFiles {
    /// Returns the note about the private files among `outputs`, or `None` if all files are public.
    pub(super) fn new(outputs: &[WrittenFiles]) -> Option<Self> {
        let private = outputs.iter().filter(|file| file.access == FileAccess::Private);
        let paths: Vec<String> = private.map(|file| shell_quoted(&file.path)).collect();
        let files = match paths.len() {
            0 => return None,
            1..=MAX_NAMED => paths.join(" "),
            _ => "FILE...".to_owned(),
        };
        Some(Self {
            mode: "0600",
            reason: "they contain the pull secret",
            share_with_group: format!("chgrp GROUP {files} && chmod 640 {files}"),
        })
    }
}

impl fmt::Display for PrivateFiles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { mode, reason, share_with_group } = self;
        writeln!(f, "Files with mode {mode} can be read by their owner only: {reason}.")?;
        writeln!(f, "A web server that runs as another user returns 403 until its group can read them:")?;
        writeln!(f, "  {share_with_group}")
    }
}
