//! Parts: incomplete uploads in a directory.
//!
//! An upload is written next to its file, under the file's name with `#` and a number. A complete upload is renamed. If
//! the process is killed, the part stays. Several processes may share a directory. While another process uses the
//! directory, only old parts are removed.

use std::fs::{self, DirEntry, File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::Duration;

/// The lock file of the directory. The names of the store's files never start with a dot.
const LOCK: &str = ".in-use";

/// Age after which a part without new writes is abandoned. Stalled clients are disconnected long before.
const OLD: Duration = Duration::from_secs(24 * 60 * 60);

/// Takes a shared lock on a directory, and removes abandoned parts. Dropping the returned file releases the lock.
pub(super) fn lock_directory(directory: &Path) -> io::Result<File> {
    let options =
        OpenOptions::new().create(true).truncate(false).write(true).mode(0o600).open(directory.join(LOCK));
    let lock = options?;
    let is_alone = match lock.try_lock() {
        Ok(()) => true,
        Err(TryLockError::WouldBlock) => false,
        Err(TryLockError::Error(error)) => return Err(error),
    };
    let is_useless = |entry: &DirEntry| is_part(entry) && (is_alone || is_old(entry));
    if let Err(error) = remove(directory, &is_useless) {
        tracing::warn!(%error, directory = %directory.display(), "could not remove incomplete uploads");
    }
    lock.lock_shared()?;
    Ok(lock)
}

fn remove(directory: &Path, is_useless: &impl Fn(&DirEntry) -> bool) -> io::Result<()> {
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            remove(&entry.path(), is_useless)?;
        } else if is_useless(&entry) {
            tracing::info!(part = %entry.path().display(), "removing an incomplete upload");
            fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

/// Returns `true` if a file has the name of a part. No complete file has such a name.
fn is_part(entry: &DirEntry) -> bool {
    let name = entry.file_name();
    let number = name.to_str().and_then(|name| name.rsplit_once('#')).map(|(_, number)| number);
    number.is_some_and(|number| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()))
}

fn is_old(entry: &DirEntry) -> bool {
    let age = entry.metadata().and_then(|metadata| metadata.modified()).map(|time| time.elapsed());
    age.is_ok_and(|age| age.is_ok_and(|age| age > OLD))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::fs::FileTimes;
    use std::time::SystemTime;

    use tempfile::TempDir;

    use super::*;

    fn write(directory: &TempDir, names: &[&str]) {
        for name in names {
            let path = directory.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, name).unwrap();
        }
    }

    fn names(directory: &TempDir) -> BTreeSet<String> {
        let entries = fs::read_dir(directory.path().join("a")).unwrap();
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }

    #[test]
    fn parts_are_removed_unless_another_process_may_write_them() {
        let directory = TempDir::new().unwrap();
        let first = lock_directory(directory.path()).unwrap();
        write(&directory, &["a/file", "a/file#1", "a/file#22", "a/other#x", "a/#"]);
        let old = directory.path().join("a/old#1");
        fs::write(&old, "").unwrap();
        let file = File::options().write(true).open(&old).unwrap();
        #[expect(clippy::disallowed_methods, reason = "the age of a file is by the clock")]
        let long_ago = SystemTime::now() - 2 * OLD;
        file.set_times(FileTimes::new().set_modified(long_ago)).unwrap();
        let second = lock_directory(directory.path()).unwrap();
        assert_eq!(
            names(&directory),
            ["#", "file", "file#1", "file#22", "other#x"].map(str::to_owned).into()
        );
        drop((first, second));
        let _third = lock_directory(directory.path()).unwrap();
        assert_eq!(names(&directory), ["#", "file", "other#x"].map(str::to_owned).into());
    }
}
