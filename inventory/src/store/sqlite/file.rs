//! The file of a SQLite database, which only its owner can read and only one store can use.

use std::fs::{self, DirBuilder, File, Metadata, OpenOptions, Permissions, TryLockError};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::{fmt, io};

use crate::store::StoreError;

/// A database file locked for this store. No other process and no other store of this process can use it.
#[derive(Debug)]
pub(in crate::store) struct OwnedFile {
    path: PathBuf,
    /// The identity of the locked file, because another file may later replace it at the same path.
    id: FileId,
    lock: File,
}

/// The device and inode numbers of a file.
type FileId = (u64, u64);

impl OwnedFile {
    /// Locks a file. If `create` is set, creates the file first if it does not exist.
    ///
    /// The file contains pull secrets, so only its owner may read it. SQLite creates its auxiliary files with the same
    /// mode.
    pub(super) fn lock(path: &Path, create: bool) -> Result<Self, StoreError> {
        let failed = |source| StoreError::File { path: path.to_owned(), source };
        if create {
            create_empty(path).map_err(failed)?;
        }
        // The path of the lock file must be the same for all symbolic links to the database.
        let path = fs::canonicalize(path).map_err(failed)?;
        let lock = path_with_suffix(&path, "-lock");
        let options = OpenOptions::new().create(true).truncate(false).write(true).mode(0o600).open(&lock);
        let lock = options.map_err(|source| StoreError::File { path: lock, source })?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(StoreError::InUse { path }),
            Err(TryLockError::Error(source)) => return Err(StoreError::File { path, source }),
        }
        for file in [path.clone(), path_with_suffix(&path, "-wal"), path_with_suffix(&path, "-shm")] {
            match restrict_to_owner(&file) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    return Err(StoreError::File { path: file, source: error });
                }
                _ => {}
            }
        }
        let metadata =
            fs::metadata(&path).map_err(|source| StoreError::File { path: path.clone(), source })?;
        let id = file_id(&metadata);
        Ok(Self { path, id, lock })
    }

    /// Returns an error if the path no longer leads to the locked file. Further changes would be lost when the process
    /// ends.
    pub(super) async fn check_in_place(&self) -> Result<(), StoreError> {
        match tokio::fs::metadata(&self.path).await {
            Ok(metadata) if file_id(&metadata) == self.id => Ok(()),
            Err(source) if source.kind() != io::ErrorKind::NotFound => {
                Err(StoreError::File { path: self.path.clone(), source })
            }
            _ => Err(StoreError::Moved { path: self.path.clone() }),
        }
    }

    /// Returns the canonical path of the file.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(in crate::store) fn release(&self) {
        if let Err(error) = self.lock.unlock() {
            tracing::warn!(path = %self.path.display(), %error, "could not release the lock of the database");
        }
    }
}

impl fmt::Display for OwnedFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.path.display().fmt(f)
    }
}

fn file_id(metadata: &Metadata) -> FileId {
    (metadata.dev(), metadata.ino())
}

fn path_with_suffix(path: &Path, end: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(end);
    name.into()
}

/// Creates an empty file, which SQLite opens as an empty database.
fn create_empty(path: &Path) -> io::Result<()> {
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
    match OpenOptions::new().create_new(true).write(true).mode(0o600).open(path) {
        // The new directory entry must survive a power failure too.
        Ok(_) => File::open(directory)?.sync_all(),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(error),
    }
}

fn restrict_to_owner(path: &Path) -> io::Result<()> {
    let mode = fs::metadata(path)?.permissions().mode();
    if mode & 0o077 == 0 { Ok(()) } else { fs::set_permissions(path, Permissions::from_mode(mode & 0o700)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_lock_holds_for_every_name_of_the_file() {
        let directory = tempfile::TempDir::new().unwrap();
        let (path, link) = (directory.path().join("a #?%41.db"), directory.path().join("link"));
        let owned = OwnedFile::lock(&path, true).unwrap();
        assert_eq!(owned.path(), path);
        std::os::unix::fs::symlink(&path, &link).unwrap();
        assert!(matches!(OwnedFile::lock(&link, true), Err(StoreError::InUse { .. })));
        owned.release();
        OwnedFile::lock(&link, false).unwrap();
    }

    #[tokio::test]
    async fn removed_or_replaced_file_is_detected() {
        let directory = tempfile::TempDir::new().unwrap();
        let path = directory.path().join("kindling.db");
        let owned = OwnedFile::lock(&path, true).unwrap();
        owned.check_in_place().await.unwrap();
        fs::rename(&path, directory.path().join("moved.db")).unwrap();
        assert!(matches!(owned.check_in_place().await, Err(StoreError::Moved { .. })));
        fs::write(&path, "").unwrap();
        assert!(matches!(owned.check_in_place().await, Err(StoreError::Moved { .. })));
        fs::rename(directory.path().join("moved.db"), &path).unwrap();
        owned.check_in_place().await.unwrap();
    }

    #[test]
    fn other_users_lose_access_to_the_file() {
        let directory = tempfile::TempDir::new().unwrap();
        let path = directory.path().join("kindling.db");
        fs::write(&path, "").unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o644)).unwrap();
        let _owned = OwnedFile::lock(&path, true).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    }
}
