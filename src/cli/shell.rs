//! Text for commands that a user can paste into a shell: quoted paths, and the name or path of this program.

use std::ffi::OsStr;
use std::path::Path;
use std::{env, fs};

/// The file name of the program.
const NAME: &str = "kindling";

/// Returns a path quoted for a shell.
pub(super) fn shell_quoted(path: &Path) -> String {
    let text = path.to_string_lossy();
    let is_plain = |character: char| character.is_ascii_alphanumeric() || "-_./+:@%,=".contains(character);
    if text.chars().all(is_plain) && !text.is_empty() {
        text.into_owned()
    } else {
        format!("'{}'", text.replace('\'', "'\\''"))
    }
}

/// Returns the command that runs this program from the current directory. This is `kindling` if the shell finds this
/// program under that name in the search path, and otherwise a path.
pub(super) fn program_command() -> String {
    let Ok(program) = env::current_exe() else { return NAME.to_owned() };
    let search_path = env::var_os("PATH").unwrap_or_default();
    let directory = env::current_dir().ok();
    command_for(&program, &search_path, directory.as_deref())
}

fn command_for(program: &Path, search_path: &OsStr, directory: Option<&Path>) -> String {
    let mut in_path = env::split_paths(search_path).map(|folder| folder.join(NAME));
    let first_in_path = in_path.find(|path| path.is_file()).and_then(|path| fs::canonicalize(path).ok());
    if first_in_path
        .is_some_and(|first_in_path| fs::canonicalize(program).is_ok_and(|program| program == first_in_path))
    {
        return NAME.to_owned();
    }
    match directory.and_then(|directory| program.strip_prefix(directory).ok()) {
        // Without a slash, a shell would search for the program in the search path.
        Some(relative) if relative.components().count() == 1 => shell_quoted(&Path::new(".").join(relative)),
        Some(relative) => shell_quoted(relative),
        None => shell_quoted(program),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn program_in_search_path_is_named_without_its_directory() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let [empty, bin] = ["empty", "bin"].map(|name| root.join(name));
        fs::create_dir(&empty).unwrap();
        fs::create_dir(&bin).unwrap();
        let program = bin.join("kindling");
        fs::write(&program, "").unwrap();
        let path = env::join_paths([&empty, &bin]).unwrap();
        assert_eq!(command_for(&program, &path, Some(&root)), "kindling");
        // Another program with the same name comes first in the search path.
        fs::write(empty.join("kindling"), "").unwrap();
        assert_eq!(command_for(&program, &path, Some(&root)), "bin/kindling");
    }

    #[test]
    fn program_outside_the_search_path_is_named_by_its_shortest_path() {
        let command = |directory| {
            command_for(Path::new("/src/a b/kindling"), OsStr::new(""), Some(Path::new(directory)))
        };
        assert_eq!(command("/src"), "'a b/kindling'");
        assert_eq!(command("/src/a b"), "./kindling");
        assert_eq!(command("/home"), "'/src/a b/kindling'");
    }
}
