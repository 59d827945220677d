//! The program name `coreos-installer`: the version that Kindling prints under that name, and the errors for commands
//! that only the original program has.

use std::env;
use std::ffi::OsString;
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

use clap::Command;
use clap::error::ErrorKind;

/// The name under which scripts may run Kindling.
pub(super) const NAME: &str = "coreos-installer";
/// The version of `coreos-installer` whose commands Kindling follows.
pub(super) const VERSION: &str = concat!("0.27.0+kindling.", env!("CARGO_PKG_VERSION"));
/// Commands of `coreos-installer` that Kindling does not provide.
const NOT_PROVIDED: [&str; 3] = ["download", "install", "list-stream"];

/// Returns an error if the command exists only in the original program. The error contains the path of that program.
pub(super) fn refuse_missing_command(
    command: &mut Command,
    arguments: &[OsString],
) -> Result<(), clap::Error> {
    let name = arguments.get(1).and_then(|name| name.to_str());
    let Some(name) = name.filter(|name| command.get_name() == NAME && NOT_PROVIDED.contains(name)) else {
        return Ok(());
    };
    let original = match original_installer() {
        Some(path) => format!("use the original program, {}", path.display()),
        None => format!("no other program named {NAME} was found in PATH"),
    };
    let message = format!("Kindling does not provide `{NAME} {name}`: {original}");
    Err(command.error(ErrorKind::InvalidSubcommand, message))
}

/// Returns the path of the first `coreos-installer` in `PATH` that is not this program.
fn original_installer() -> Option<PathBuf> {
    let identity = |file: &Metadata| (file.dev(), file.ino());
    let own = env::current_exe().and_then(|path| path.metadata()).ok().as_ref().map(identity)?;
    let is_original = |path: &PathBuf| {
        let metadata = path.metadata();
        metadata.is_ok_and(|file| file.is_file() && file.mode() & 0o111 != 0 && identity(&file) != own)
    };
    env::split_paths(&env::var_os("PATH")?).map(|folder| folder.join(NAME)).find(is_original)
}
