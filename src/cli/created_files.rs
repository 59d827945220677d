//! The output files of a command. If the command fails or is interrupted, the files that it created are removed.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anyhow::{Context, Result, bail};
use isogen::write::{FileAccess, NewFile, explain_full_disk};
use tokio::runtime::Builder;
use tokio::signal::unix::{SignalKind, signal};

use super::directories::check_directory;
use super::output::print_path;
use super::progress::without_bars;

/// The files and directories that a command has created. They are removed unless the command completes. `None` after
/// the command completed or removed them.
#[derive(Debug)]
pub(super) struct CreatedFiles(Arc<Mutex<Option<Vec<PathBuf>>>>);

impl CreatedFiles {
    pub(super) fn new() -> Self {
        Self(Arc::new(Mutex::new(Some(Vec::new()))))
    }

    /// Creates the directory of a file if it does not exist. `option` is the option with the path, for messages.
    pub(super) fn create_directory(&self, option: &str, path: &Path) -> Result<()> {
        let Some(parent) = path.parent().filter(|it| !it.as_os_str().is_empty() && !it.exists()) else {
            return Ok(());
        };
        check_directory(option, parent)?;
        self.create_directory(option, parent)?;
        let mut created = self.lock();
        std::fs::create_dir(parent).with_context(|| format!("creating directory {}", parent.display()))?;
        created.get_or_insert_default().push(parent.to_owned());
        Ok(())
    }

    /// Renames a file to its final name. Holds the lock, so that an interrupt is handled before or after the rename.
    pub(super) fn commit(&self, file: NewFile, path: &Path) -> Result<()> {
        let mut created = self.lock();
        file.commit()?;
        created.get_or_insert_default().push(path.to_owned());
        Ok(())
    }

    /// Keeps all created files and directories.
    pub(super) fn keep_all(&self) {
        *self.lock() = None;
    }

    fn lock(&self) -> MutexGuard<'_, Option<Vec<PathBuf>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Removes the created files and directories in reverse order. Returns `false` if they are to be kept.
    fn remove_created(created: &mut Option<Vec<PathBuf>>) -> bool {
        let Some(mut paths) = created.take() else { return false };
        while let Some(path) = paths.pop() {
            // Removing a directory fails if another process has created a file in it.
            let _ = if path.is_dir() { std::fs::remove_dir(&path) } else { std::fs::remove_file(&path) };
        }
        true
    }

    /// Handles SIGINT from now on: removes the created files and directories, and exits.
    pub(super) fn remove_at_interrupt(&self) -> Result<()> {
        /// The conventional exit code after SIGINT: 128 plus the number of the signal.
        const INTERRUPTED: i32 = 130;
        let runtime = Builder::new_current_thread().enable_all().build();
        let runtime = runtime.context("cannot listen for signals")?;
        let mut interrupts = {
            let _entered = runtime.enter();
            signal(SignalKind::interrupt()).context("cannot listen for signals")?
        };
        let created = Arc::clone(&self.0);
        std::thread::spawn(move || {
            if runtime.block_on(interrupts.recv()).is_none() {
                return;
            }
            // Hold the lock until the exit, so that the command cannot create more files.
            let mut created = created.lock().unwrap_or_else(PoisonError::into_inner);
            let is_removed = Self::remove_created(&mut created);
            // Prevents progress bars from being drawn again before the exit.
            without_bars(|| {
                if is_removed {
                    eprintln!("Interrupted: nothing was written");
                }
                std::process::exit(INTERRUPTED)
            });
        });
        Ok(())
    }
}

impl Drop for CreatedFiles {
    fn drop(&mut self) {
        Self::remove_created(&mut self.lock());
    }
}

/// Returns an error if a path exists. `option` is the option or argument with the path, for messages.
pub(super) fn require_absent(option: &str, path: &Path) -> Result<()> {
    let Ok(metadata) = path.symlink_metadata() else { return Ok(()) };
    let path = path.display();
    if metadata.is_dir() {
        bail!("cannot create {path}: File exists, and is a directory; use another path for {option}");
    }
    bail!("cannot create {path}: File exists; remove it, or use another path for {option}");
}

/// Creates a new file. `option` is the option or argument with the path, for messages.
pub(super) fn create_file(option: &str, path: &Path, access: FileAccess) -> Result<NewFile> {
    require_absent(option, path)?;
    Ok(NewFile::create(path, access)?)
}

/// Writes new files, and creates missing parent directories. Returns the paths after all files are written. Fails
/// before the first write if a file exists.
pub(super) fn write_files<T>(
    option: &str,
    files: Vec<(PathBuf, T)>,
    access: FileAccess,
    write: impl Fn(&NewFile, T) -> Result<()>,
) -> Result<Vec<PathBuf>> {
    for (path, _) in &files {
        path.parent().map_or(Ok(()), |parent| check_directory(option, parent))?;
        require_absent(option, path)?;
    }
    let created = CreatedFiles::new();
    let mut paths = Vec::new();
    for (path, contents) in files {
        created.create_directory(option, &path)?;
        let file = NewFile::create(&path, access)?;
        write(&file, contents).with_context(|| format!("writing {}", path.display()))?;
        created.commit(file, &path)?;
        paths.push(path);
    }
    created.keep_all();
    Ok(paths)
}

/// Writes new files with mode 0600, like [`write_files`].
pub(super) fn write_private<T: AsRef<[u8]>>(option: &str, files: Vec<(PathBuf, T)>) -> Result<Vec<PathBuf>> {
    write_files(option, files, FileAccess::Private, |file, contents| write_all(file, contents.as_ref()))
}

pub(super) fn write_all(file: &NewFile, contents: &[u8]) -> Result<()> {
    let result = file.file().write_all(contents);
    Ok(result.map_err(|error| explain_full_disk(error, file.file(), contents.len() as u64))?)
}

pub(super) fn print_paths(paths: &[PathBuf]) -> Result<()> {
    paths.iter().try_for_each(|path| print_path(path))
}
