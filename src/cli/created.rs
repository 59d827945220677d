//! Files of one command: all of them are there at its end, or none.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anyhow::{Context, Result};
use isogen::write::{Access, NewFile};
use tokio::runtime::Builder;
use tokio::signal::unix::{SignalKind, signal};

use super::output::print_path;

/// What was created and has to go again unless everything else is; nothing any more when it stays.
#[derive(Debug)]
pub(super) struct Created(Arc<Mutex<Option<Vec<PathBuf>>>>);

impl Created {
    pub(super) fn new() -> Self {
        Self(Arc::new(Mutex::new(Some(Vec::new()))))
    }

    /// Makes the directory of a file, if it is not there.
    pub(super) fn create_directory(&self, path: &Path) -> Result<()> {
        let Some(parent) = path.parent().filter(|it| !it.as_os_str().is_empty() && !it.exists()) else {
            return Ok(());
        };
        self.create_directory(parent)?;
        let mut created = self.lock();
        std::fs::create_dir(parent).with_context(|| format!("creating directory {}", parent.display()))?;
        created.get_or_insert_default().push(parent.to_owned());
        Ok(())
    }

    /// Gives a file its name. An interrupt comes before or after.
    pub(super) fn commit(&self, file: NewFile, path: &Path) -> Result<()> {
        let mut created = self.lock();
        file.commit()?;
        created.get_or_insert_default().push(path.to_owned());
        Ok(())
    }

    /// Forgets what was created, which stays.
    pub(super) fn keep(&self) {
        *self.lock() = None;
    }

    fn lock(&self) -> MutexGuard<'_, Option<Vec<PathBuf>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Removes what was created, the last first. Tells whether it was to go.
    fn remove(created: &mut Option<Vec<PathBuf>>) -> bool {
        let Some(mut paths) = created.take() else { return false };
        while let Some(path) = paths.pop() {
            // Whoever has put something into a directory meanwhile keeps it.
            let _ = if path.is_dir() { std::fs::remove_dir(&path) } else { std::fs::remove_file(&path) };
        }
        true
    }

    /// From here on, an interrupt removes what was created, and ends the program.
    pub(super) fn remove_at_interrupt(&self) -> Result<()> {
        /// The code of a program that was interrupted.
        const INTERRUPTED: i32 = 130;
        let runtime = Builder::new_current_thread().enable_all().build();
        let runtime = runtime.context("interrupts cannot be waited for")?;
        let mut interrupts = {
            let _entered = runtime.enter();
            signal(SignalKind::interrupt()).context("interrupts cannot be waited for")?
        };
        let created = Arc::clone(&self.0);
        std::thread::spawn(move || {
            if runtime.block_on(interrupts.recv()).is_some() {
                // The lock is held to the end: nothing is created any more.
                let mut created = created.lock().unwrap_or_else(PoisonError::into_inner);
                if Self::remove(&mut created) {
                    eprintln!("Interrupted: nothing was written");
                }
                std::process::exit(INTERRUPTED);
            }
        });
        Ok(())
    }
}

impl Drop for Created {
    fn drop(&mut self) {
        Self::remove(&mut self.lock());
    }
}

/// Writes new files with their directories, and gives their paths when all are there. No name may be taken: all of them are
/// looked at before the first file is written.
pub(super) fn write_files<T>(
    files: Vec<(PathBuf, T)>,
    access: Access,
    write: impl Fn(&NewFile, T) -> Result<()>,
) -> Result<Vec<PathBuf>> {
    for (path, _) in &files {
        if path.symlink_metadata().is_ok() {
            let taken = std::io::Error::from(rustix::io::Errno::EXIST);
            return Err(taken).with_context(|| format!("creating {}", path.display()));
        }
    }
    let created = Created::new();
    let mut paths = Vec::new();
    for (path, contents) in files {
        created.create_directory(&path)?;
        let file = NewFile::create(&path, access)?;
        write(&file, contents).with_context(|| format!("writing {}", path.display()))?;
        created.commit(file, &path)?;
        paths.push(path);
    }
    created.keep();
    Ok(paths)
}

/// Writes files that are in memory, which only their owner may read.
pub(super) fn write_private<T: AsRef<[u8]>>(files: Vec<(PathBuf, T)>) -> Result<Vec<PathBuf>> {
    write_files(files, Access::Private, |file, contents| Ok(file.file().write_all(contents.as_ref())?))
}

/// Prints the paths of files.
pub(super) fn print_paths(paths: &[PathBuf]) -> Result<()> {
    paths.iter().try_for_each(|path| print_path(path))
}
