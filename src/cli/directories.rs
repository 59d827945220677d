//! Checks of directories from options. The checks do not create directories, because the modules that use them create
//! them with different modes.

use std::path::Path;

use anyhow::{Result, bail};
use rustix::fs::{Access, AtFlags, CWD, accessat};
use rustix::io::Errno;

/// Returns an error if the directory in an option does not exist and cannot be created.
pub(super) fn check_directory(option: &str, path: &Path) -> Result<()> {
    check(option, path, path.is_dir())
}

/// Returns an error if the program cannot create files in the directory in an option.
pub(super) fn check_writable_directory(option: &str, path: &Path) -> Result<()> {
    check(option, path, false)
}

fn check(option: &str, path: &Path, may_be_read_only: bool) -> Result<()> {
    let existing = path.ancestors().find(|path| path.symlink_metadata().is_ok()).unwrap_or(Path::new("."));
    let at = existing.display();
    let reason = if !existing.exists() {
        format!("{at} is a symbolic link whose target does not exist; create the target")
    } else if !existing.is_dir() {
        format!("{at} is not a directory; remove it")
    } else if !may_be_read_only
        && let Err(error) = accessat(CWD, existing, Access::WRITE_OK | Access::EXEC_OK, AtFlags::EACCESS)
    {
        access_problem(existing, error)
    } else {
        return Ok(());
    };
    bail!("cannot use directory {}: {reason}, or use another path for {option}", path.display())
}

/// Returns the reason why the program cannot create files in an existing directory, with advice.
fn access_problem(directory: &Path, error: Errno) -> String {
    let at = directory.display();
    match error {
        Errno::ROFS => format!("{at} is on a read-only file system; mount a writable one"),
        _ => format!("this user cannot create files in {at}: {error}; change its permissions"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn read_only_file_system_error_does_not_suggest_permissions() {
        let problem = |error| access_problem(Path::new("/data"), error);
        assert_eq!(problem(Errno::ROFS), "/data is on a read-only file system; mount a writable one");
        assert!(problem(Errno::ACCESS).ends_with("; change its permissions"));
    }
}
