//! A check of the mode of files with private keys.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// Logs a warning if other users can read a file with a private key.
pub(super) fn warn_if_exposed(file: &Path) {
    const READABLE_BY_OTHERS: u32 = 0o044;
    // The caller has already read the file and reported errors.
    let Ok(metadata) = std::fs::metadata(file) else { return };
    let mode = metadata.permissions().mode() & 0o7777;
    if metadata.is_file() && mode & READABLE_BY_OTHERS != 0 {
        tracing::warn!(
            file = %file.display(),
            mode = format_args!("{mode:04o}"),
            "other users can read this private key; set its mode to 0600"
        );
    }
}
