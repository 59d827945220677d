//! Runs readers that share no code with this crate, and parses their output.

#![allow(dead_code, reason = "no test program needs all of it")]

#[path = "../../../tests/support/skip.rs"]
mod skip;

use std::collections::BTreeMap;
use std::env;
use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::process::{Command, Stdio};

use isogen::volume::{DirectoryTree, EntryKind};
use skip::report_missing;

/// Returns `true` if all programs are installed. Otherwise prints a notice.
pub(crate) fn are_installed(programs: &[&str]) -> bool {
    let path = env::var_os("PATH").unwrap_or_default();
    let there = |program: &&str| env::split_paths(&path).any(|folder| folder.join(program).is_file());
    let Some(missing) = programs.iter().find(|program| !there(program)) else { return true };
    report_missing(&format!("{missing} is not installed"));
    false
}

/// Runs a program in a folder and returns its output. The program must succeed.
pub(crate) fn run_program(folder: &Path, input: Option<&Path>, command: &[&str]) -> Vec<u8> {
    let stdin = input.map_or_else(Stdio::null, |path| File::open(path).unwrap().into());
    let mut program = Command::new(command[0]);
    let output = program.args(&command[1..]).current_dir(folder).stdin(stdin).output().unwrap();
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}

pub(crate) fn text_lines(bytes: &[u8]) -> Vec<String> {
    std::str::from_utf8(bytes).unwrap().lines().map(str::to_owned).collect()
}

/// A listing of files by path: length and sector of a file, or `None` for a directory.
pub(crate) type FileListing = BTreeMap<String, Option<(u64, u64)>>;

pub(crate) fn list_tree(tree: &DirectoryTree) -> FileListing {
    let entries = tree.entries().map(|(id, entry)| {
        let is_directory = entry.kind == EntryKind::Directory;
        let data = (entry.extent.len(), u64::from(entry.record.sector.0));
        (format!("/{}", tree.path(id)), (!is_directory).then_some(data))
    });
    entries.collect()
}

/// Parses the output of `isoinfo -R -l`: a title for each directory, followed by a line for each entry.
///
/// ```text
/// Directory listing of /coreos/
/// -r--r--r--   1    0    0             382 Jul  9 2023 [    503 00]  kargs.json
/// ```
pub(crate) fn parse_isoinfo(text: &[String]) -> FileListing {
    let mut listing = FileListing::new();
    let mut folder = "";
    for line in text {
        if let Some(title) = line.strip_prefix("Directory listing of ") {
            folder = title.trim_end();
            listing.insert(folder.trim_end_matches('/').to_owned(), None);
        } else if let Some((left, name)) = line.split_once("]  ") {
            let (fields, place) = left.split_once('[').unwrap();
            let len = fields.split_whitespace().nth(4).unwrap().parse().unwrap();
            let sector = place.split_whitespace().next().unwrap().parse().unwrap();
            if !line.starts_with('d') {
                listing.insert(format!("{folder}{}", name.trim_end()), Some((len, sector)));
            }
        }
    }
    // Remove the root directory, which has no name.
    listing.remove("");
    listing.insert("/".to_owned(), None);
    listing
}

/// Parses the output of `xorriso -exec lsdl`: a line for each entry, with the path in quotes.
///
/// ```text
/// -r--r--r--    1 0        0             382 Jul  9  2023 '/coreos/kargs.json'
/// ```
pub(crate) fn parse_xorriso(text: &[String]) -> BTreeMap<String, Option<u64>> {
    let entries = text.iter().filter_map(|line| {
        let (fields, path) = line.strip_suffix('\'')?.split_once('\'')?;
        let len = fields.split_whitespace().nth(4)?.parse().ok()?;
        Some((path.to_owned(), (!line.starts_with('d')).then_some(len)))
    });
    entries.collect()
}

/// Sets the sectors of empty files to 0, because an empty file may have any sector and programs report different
/// sectors.
pub(crate) fn clear_sectors_of_empty_files(listing: &mut FileListing) {
    listing.values_mut().flatten().filter(|(len, _)| *len == 0).for_each(|(_, sector)| *sector = 0);
}

/// Reads the files below a directory by ISO path, with the `iso9660` crate.
pub(crate) fn read_with_iso9660_crate(
    directory: &iso9660::ISODirectory<File>,
    path: &str,
    files: &mut BTreeMap<String, Vec<u8>>,
) {
    for entry in directory.contents() {
        match entry.unwrap_or_else(|error| panic!("{path}: {error}")) {
            // On s390x, the first two records have the same name.
            iso9660::DirectoryEntry::Directory(directory) if directory.identifier.starts_with('.') => {}
            iso9660::DirectoryEntry::Directory(directory) => {
                read_with_iso9660_crate(&directory, &format!("{path}{}/", directory.identifier), files);
            }
            iso9660::DirectoryEntry::File(file) => {
                let mut contents = Vec::new();
                file.read().read_to_end(&mut contents).unwrap();
                files.insert(format!("{path}{}", file.identifier), contents);
            }
        }
    }
}
