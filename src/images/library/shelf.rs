//! The place of one image in the directory: the names of its files.
//!
//! | file | holds |
//! |---|---|
//! | `rhcos-full-iso-VERSION-ARCH.iso` | the image |
//! | `….iso.json` | its SHA-256, with the length, inode and times of the file that has it |
//! | `….iso.part` | what has come of it; whoever fetches it holds a lock on this file |
//! | `….iso.part.json` | of what the part is a part |
//! | `nmstatectl-VERSION-ARCH` | the program out of the image, packed for an initrd |
//! | `….json` | of which image it is |

use std::collections::BTreeSet;
use std::fmt;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use crate::images::{CpuArchitecture, ImageType, OsImage};

/// What of an image has a file of its own. Entries of a catalogue that agree in it are the same image.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Key {
    kind: &'static str,
    version: String,
    architecture: CpuArchitecture,
}

impl Key {
    pub(super) fn of(image: &OsImage) -> Self {
        // No base is minimal: minimal images are made of full ones.
        let kind = match image.image_type {
            ImageType::Full | ImageType::Minimal => ImageType::Full.as_str(),
            ImageType::Disconnected => ImageType::Disconnected.as_str(),
        };
        Self { kind, version: image.version.clone(), architecture: image.cpu_architecture }
    }

    /// Whether the version can be part of the name of a file.
    pub(super) fn is_name(&self) -> bool {
        let is_harmless = |byte: u8| byte.is_ascii_alphanumeric() || b"._-+~".contains(&byte);
        let len = self.version.len();
        (1..=MOST_VERSION).contains(&len) && self.version.bytes().all(is_harmless)
    }
}

/// With all that is before and behind it, a name on any file system.
const MOST_VERSION: usize = 150;

impl fmt::Display for Key {
    /// The name of its file.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "rhcos-{}-{}-{}.iso", self.kind, self.version, self.architecture)
    }
}

/// Where the files of one image are.
#[derive(Clone, Debug)]
pub(super) struct Shelf {
    directory: PathBuf,
    name: String,
    nmstatectl: String,
}

impl Shelf {
    pub(super) fn new(directory: &Path, key: &Key) -> Self {
        Self {
            directory: directory.to_owned(),
            name: key.to_string(),
            nmstatectl: format!("nmstatectl-{}-{}", key.version, key.architecture),
        }
    }

    /// The name of the image.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn image(&self) -> PathBuf {
        self.directory.join(&self.name)
    }

    pub(super) fn image_record(&self) -> PathBuf {
        self.file(".json")
    }

    pub(super) fn part(&self) -> PathBuf {
        self.file(".part")
    }

    pub(super) fn part_record(&self) -> PathBuf {
        self.file(".part.json")
    }

    pub(super) fn nmstatectl(&self) -> PathBuf {
        self.directory.join(&self.nmstatectl)
    }

    pub(super) fn nmstatectl_record(&self) -> PathBuf {
        self.directory.join(format!("{}.json", self.nmstatectl))
    }

    fn file(&self, suffix: &str) -> PathBuf {
        self.directory.join(format!("{}{suffix}", self.name))
    }

    /// The names of all files that it may have.
    fn names(&self) -> [String; 6] {
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

    /// Makes it last that a name of the directory names another file.
    pub(super) fn sync_directory(&self) -> io::Result<()> {
        sync_directory(&self.directory)
    }
}

fn sync_directory(directory: &Path) -> io::Result<()> {
    File::open(directory)?.sync_all()
}

/// What temporary files begin with.
const TEMPORARY: &str = ".kindling-";

/// Writes a file as a whole or not at all.
pub(super) fn write_whole(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let directory = path.parent().unwrap_or(Path::new("."));
    let mut file = tempfile::Builder::new().prefix(TEMPORARY).tempfile_in(directory)?;
    // Where there are no locks, nobody prunes at this very moment.
    let _ = file.as_file().try_lock();
    file.write_all(bytes)?;
    file.as_file().sync_all()?;
    readable(file.as_file())?;
    file.persist(path).map_err(|error| error.error)?;
    sync_directory(directory)
}

/// Others may read what is no secret: temporary files begin as private ones.
fn readable(file: &File) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    file.set_permissions(fs::Permissions::from_mode(0o644))
}

/// Deletes a file, if there is one.
pub(super) fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Deletes the files of images that are on none of the shelves. What bears a name that no library gives stays: the
/// directory may be that of a database as well.
pub(super) fn prune<'a>(directory: &Path, shelves: impl Iterator<Item = &'a Shelf>) -> io::Result<()> {
    let known: BTreeSet<String> = shelves.flat_map(Shelf::names).collect();
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let Ok(name) = entry.file_name().into_string() else { continue };
        let is_ours = ["rhcos-", "nmstatectl-", TEMPORARY].iter().any(|prefix| name.starts_with(prefix));
        if !is_ours || known.contains(&name) || !entry.file_type()?.is_file() {
            continue;
        }
        if is_being_written(&entry.path()) {
            tracing::info!(file = name, "kept, as somebody is writing it");
            continue;
        }
        remove(&entry.path())?;
        tracing::info!(file = name, "deleted, as no image of the catalogue has it");
    }
    Ok(())
}

/// Whether somebody has the lock of a part or of a temporary file.
fn is_being_written(path: &Path) -> bool {
    let is_part = path.extension().is_some_and(|extension| extension == "part");
    let name = path.file_name().and_then(|name| name.to_str());
    let is_temporary = name.is_some_and(|name| name.starts_with(TEMPORARY));
    (is_part || is_temporary)
        && File::open(path).is_ok_and(|file| matches!(file.try_lock(), Err(fs::TryLockError::WouldBlock)))
}
