//! The names of an image's files in the directory of the library.
//!
//! | file | content |
//! |---|---|
//! | `rhcos-full-iso-VERSION-ARCH.iso` | the image |
//! | `….iso.json` | the SHA-256 digest of the image, and the length, inode and times of the hashed file |
//! | `….iso.part` | the received bytes; the downloading process holds a lock on this file |
//! | `….iso.part.json` | the URL and version of the image to which the received bytes belong |
//! | `nmstatectl-full-iso-VERSION-ARCH` | the program from the image, packed for an initrd |
//! | `….json` | the digests of that image and of the program |
//!
//! The files of an added image are in a subdirectory of `added/`. The name of the subdirectory is a digest of the
//! image's name and URL.

use std::collections::BTreeSet;
use std::fmt;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use inventory::catalogue::{CpuArchitecture, ImageType, OsImage};
use isogen::Digest;

/// The directory of the images that users added.
const ADDED: &str = "added";

/// The key of an image in the library. Entries of the catalogue with the same key are the same image.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct ImageKey {
    kind: &'static str,
    version: String,
    architecture: CpuArchitecture,
}

impl ImageKey {
    pub(super) fn new(image: &OsImage) -> Self {
        // Base images are never minimal: minimal ISOs are made from full ones.
        let kind = match image.image_type {
            ImageType::Full | ImageType::Minimal => ImageType::Full.as_str(),
            ImageType::Disconnected => ImageType::Disconnected.as_str(),
        };
        Self { kind, version: image.version.clone(), architecture: image.cpu_architecture }
    }
}

impl fmt::Display for ImageKey {
    /// Formats the file name of the image.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "rhcos-{}-{}-{}.iso", self.kind, self.version, self.architecture)
    }
}

/// The paths of the files of one image.
#[derive(Clone, Debug)]
pub(super) struct ImagePaths {
    directory: PathBuf,
    /// Whether only this image uses the directory.
    is_own_directory: bool,
    name: String,
    nmstatectl: String,
}

impl ImagePaths {
    pub(super) fn new(directory: &Path, key: &ImageKey) -> Self {
        Self {
            directory: directory.to_owned(),
            is_own_directory: false,
            name: key.to_string(),
            nmstatectl: format!("nmstatectl-{}-{}-{}", key.kind, key.version, key.architecture),
        }
    }

    /// Returns the paths of an added image. The directory depends on the name and the URL of the image, so no other
    /// image uses it.
    pub(super) fn for_added(directory: &Path, key: &ImageKey, url: &str) -> Self {
        let digest = Digest::from_data(format!("{key} {url}").as_bytes());
        let own = directory.join(ADDED).join(digest.to_string());
        Self { is_own_directory: true, ..Self::new(&own, key) }
    }

    /// Creates the directory if it does not exist.
    pub(super) fn create_directory(&self) -> io::Result<()> {
        fs::create_dir_all(&self.directory)
    }

    /// Returns the file name of the image.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn image_file(&self) -> PathBuf {
        self.directory.join(&self.name)
    }

    pub(super) fn image_record(&self) -> PathBuf {
        self.with_suffix(".json")
    }

    pub(super) fn partial_file(&self) -> PathBuf {
        self.with_suffix(".part")
    }

    pub(super) fn partial_file_record(&self) -> PathBuf {
        self.with_suffix(".part.json")
    }

    pub(super) fn nmstatectl_file(&self) -> PathBuf {
        self.directory.join(&self.nmstatectl)
    }

    pub(super) fn nmstatectl_record(&self) -> PathBuf {
        self.directory.join(format!("{}.json", self.nmstatectl))
    }

    fn with_suffix(&self, suffix: &str) -> PathBuf {
        self.directory.join(format!("{}{suffix}", self.name))
    }

    /// Returns the names of all files that the image may have.
    fn all_names(&self) -> [String; 6] {
        let of_image = |suffix| format!("{}{suffix}", self.name);
        let of_program = |suffix| format!("{}{suffix}", self.nmstatectl);
        [
            of_image(""),
            of_image(".json"),
            of_image(".part"),
            of_image(".part.json"),
            of_program(""),
            of_program(".json"),
        ]
    }

    /// Deletes the files of an added image. Does nothing for an image of the catalogue. Logs a failure.
    pub(super) fn remove_own_directory(&self) {
        if self.is_own_directory {
            remove_directory(&self.directory);
        }
    }

    /// Syncs the directory, so that a renamed file survives a power failure.
    pub(super) fn sync_directory(&self) -> io::Result<()> {
        sync_directory(&self.directory)
    }
}

fn sync_directory(directory: &Path) -> io::Result<()> {
    File::open(directory)?.sync_all()
}

/// The prefix of temporary files.
const TEMPORARY: &str = ".kindling-";

/// Replaces a file atomically. After an error, the old file is unchanged.
pub(super) fn replace_file(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let directory = path.parent().ok_or(io::ErrorKind::InvalidInput)?;
    let mut file = tempfile::Builder::new().prefix(TEMPORARY).tempfile_in(directory)?;
    // The lock protects the temporary file from the pruning of other processes, if the file system supports locks.
    let _ = file.as_file().try_lock();
    file.write_all(bytes)?;
    file.as_file().sync_all()?;
    make_readable(file.as_file())?;
    file.persist(path).map_err(|error| error.error)?;
    sync_directory(directory)
}

/// Makes a temporary file readable for all users. It is private initially, but contains no secrets.
fn make_readable(file: &File) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    file.set_permissions(fs::Permissions::from_mode(0o644))
}

/// Deletes a file. Succeeds if it does not exist.
pub(super) fn remove_if_exists(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Deletes all files of images that are not in `images`. Keeps files whose names the library never uses, because the
/// directory may also contain other data, such as a database.
pub(super) fn remove_unknown_images(directory: &Path, images: &[ImagePaths]) -> io::Result<()> {
    let names: BTreeSet<String> = images.iter().flat_map(ImagePaths::all_names).collect();
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let Ok(name) = entry.file_name().into_string() else { continue };
        let is_ours = ["rhcos-", "nmstatectl-", TEMPORARY].iter().any(|prefix| name.starts_with(prefix));
        if !is_ours || names.contains(&name) || !entry.file_type()?.is_file() {
            continue;
        }
        if is_being_written(&entry.path()) {
            tracing::info!(
                file = name,
                "kept file that is not in the catalogue, another process is writing it"
            );
            continue;
        }
        remove_if_exists(&entry.path())?;
        tracing::info!(file = name, "deleted file that is not in the catalogue");
    }
    Ok(())
}

/// Deletes the files of added images that are not in `images`. No other image can use such files.
pub(super) fn remove_unknown_added(directory: &Path, images: &[ImagePaths]) -> io::Result<()> {
    let entries = match fs::read_dir(directory.join(ADDED)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        entries => entries?,
    };
    for entry in entries {
        let path = entry?.path();
        let is_used = images.iter().any(|image| image.directory == path);
        let is_written = || {
            let files = fs::read_dir(&path).into_iter().flatten().flatten();
            files.into_iter().any(|file| is_being_written(&file.path()))
        };
        if !is_used && !is_written() {
            remove_directory(&path);
        }
    }
    Ok(())
}

fn remove_directory(path: &Path) {
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            tracing::warn!(path = %path.display(), %error, "the files of a removed base image cannot be deleted");
        }
        Err(_) => {}
        Ok(()) => tracing::info!(path = %path.display(), "deleted the files of a removed base image"),
    }
}

/// Returns `true` if the path is a partial or temporary file, and a process holds its lock.
fn is_being_written(path: &Path) -> bool {
    let is_part = path.extension().is_some_and(|extension| extension == "part");
    let name = path.file_name().and_then(|name| name.to_str());
    let is_temporary = name.is_some_and(|name| name.starts_with(TEMPORARY));
    (is_part || is_temporary)
        && File::open(path).is_ok_and(|file| matches!(file.try_lock(), Err(fs::TryLockError::WouldBlock)))
}
