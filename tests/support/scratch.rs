//! A private folder for a test.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use super::{KINDLING, ProgramRun, RunOutput};

/// A file that a command has written or kept.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct ScratchFile {
    pub(crate) mode: u32,
    pub(crate) bytes: Vec<u8>,
}

/// A scratch folder, which is removed at the end of the test.
#[derive(Debug)]
pub(crate) struct Scratch {
    folder: TempDir,
}

impl Scratch {
    pub(crate) fn new() -> Self {
        // Use the build folder: the system's temporary folder may be too small, or in memory.
        let base = Path::new(env!("CARGO_TARGET_TMPDIR"));
        fs::create_dir_all(base).unwrap();
        Self { folder: TempDir::with_prefix_in("scratch-", base).unwrap() }
    }

    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, bytes).unwrap();
        path
    }

    #[track_caller]
    pub(crate) fn read(&self, name: &str) -> Vec<u8> {
        fs::read(self.path(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    pub(crate) fn has_file(&self, name: &str) -> bool {
        self.path(name).symlink_metadata().is_ok()
    }

    #[track_caller]
    pub(crate) fn remove(&self, name: &str) {
        let path = self.path(name);
        let removed = if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) };
        removed.unwrap_or_else(|error| panic!("{name}: {error}"));
    }

    /// Returns every regular file, by its path relative to the folder.
    pub(crate) fn files(&self) -> BTreeMap<String, ScratchFile> {
        let mut files = BTreeMap::new();
        collect_files(self.folder(), "", &mut files);
        files
    }

    /// Returns the names of all files, including hidden ones.
    pub(crate) fn names(&self) -> Vec<String> {
        self.files().into_keys().collect()
    }

    /// Prepares a run of Kindling in this folder.
    pub(crate) fn command<S: AsRef<std::ffi::OsStr>>(
        &self,
        arguments: impl IntoIterator<Item = S>,
    ) -> ProgramRun {
        ProgramRun::new(KINDLING, self.folder()).args(arguments)
    }

    /// Runs Kindling in this folder, with arguments that contain no spaces.
    #[track_caller]
    pub(crate) fn run_kindling(&self, line: &str) -> RunOutput {
        self.command(line.split_whitespace()).run()
    }
}

fn collect_files(folder: &Path, prefix: &str, files: &mut BTreeMap<String, ScratchFile>) {
    for entry in fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        let name = format!("{prefix}{}", entry.file_name().to_str().unwrap());
        let kind = entry.file_type().unwrap();
        if kind.is_dir() {
            collect_files(&entry.path(), &format!("{name}/"), files);
        } else if !kind.is_fifo() && !kind.is_symlink() {
            let mode = entry.metadata().unwrap().permissions().mode() & 0o7777;
            files.insert(name, ScratchFile { mode, bytes: fs::read(entry.path()).unwrap() });
        }
    }
}
