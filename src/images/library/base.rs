//! Open base images, which the image server plans and serves artifacts from.

use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use bytes::Bytes;
use chrono::{DateTime, Utc};
use ignition::network::needs_nmstatectl;
use isogen::{BaseImage, Digest, PackedArchive};
use tokio::sync::OnceCell;

use super::dedicated_thread::on_dedicated_thread;
use super::error::{NmstatectlError, error_chain};
use super::paths::{self, ImagePaths};
use super::record::{self, ProgramRecord};
use crate::base_files::BaseFile;
use inventory::catalogue::OsImage;
use isogen::{FileStamp, FileTime};

/// Maximum length of a stored `nmstatectl` archive. A real one is about ten megabytes long.
const MAX_PROGRAM: u64 = 256 << 20;

/// The identity of an [`OpenBaseImage`] in this process. A file gets a new identity each time it is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct BaseImageId(u64);

impl BaseImageId {
    #[cfg(test)]
    pub(crate) const fn from_number(number: u64) -> Self {
        Self(number)
    }

    /// Returns a new unique id.
    fn next() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Self(NEXT.fetch_add(1, Ordering::Relaxed))
    }
}

/// An open base image on this machine. The bytes stay the same for the lifetime of this object, even if another file
/// replaces the file of the image.
pub struct OpenBaseImage {
    id: BaseImageId,
    image: Arc<BaseImage>,
    file: Arc<BaseFile>,
    os_image: OsImage,
    digest: Digest,
    paths: ImagePaths,
    /// The length, inode and times of the file when it was hashed.
    stamp: FileStamp,
    nmstatectl: OnceCell<PackedArchive>,
    /// Whether the library has removed or replaced the image.
    is_released: AtomicBool,
}

impl fmt::Debug for OpenBaseImage {
    /// Omits the URL, which may contain credentials, and the many structures of the image.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut base = f.debug_struct("OpenBaseImage");
        base.field("name", &self.paths.name()).field("digest", &self.digest).field("stamp", &self.stamp);
        base.finish_non_exhaustive()
    }
}

impl OpenBaseImage {
    /// Creates a base image from an open and hashed file.
    pub(super) fn new(
        (image, file): (BaseImage, Arc<BaseFile>),
        os_image: OsImage,
        paths: ImagePaths,
        (digest, stamp): (Digest, FileStamp),
    ) -> Self {
        image.source().set_digest(digest);
        file.require_stamp(stamp);
        Self {
            id: BaseImageId::next(),
            image: Arc::new(image),
            file,
            os_image,
            digest,
            paths,
            stamp,
            nmstatectl: OnceCell::new(),
            is_released: AtomicBool::new(false),
        }
    }

    /// Returns the parsed image, from which artifacts are planned.
    #[must_use]
    pub fn image(&self) -> &Arc<BaseImage> {
        &self.image
    }

    pub(crate) fn id(&self) -> BaseImageId {
        self.id
    }

    /// Returns `true` if the library has removed or replaced the image. Caches must not keep a released image open.
    pub(crate) fn is_released(&self) -> bool {
        self.is_released.load(Ordering::SeqCst)
    }

    pub(super) fn mark_released(&self) {
        self.is_released.store(true, Ordering::SeqCst);
    }

    /// Returns the file, from which image bytes are served.
    pub(crate) fn file(&self) -> &Arc<BaseFile> {
        &self.file
    }

    /// Returns the SHA-256 digest of the image.
    #[must_use]
    pub fn digest(&self) -> Digest {
        self.digest
    }

    /// Returns `true` if the file still has the same bytes as when it was hashed.
    #[must_use]
    pub fn is_unchanged(&self) -> bool {
        self.file.stamp().is_ok()
    }

    /// Returns the time of the last change of the file: the later one of `mtime` and `ctime`, because a process may
    /// have set back `mtime`. Returns `None` if the time is out of range.
    #[must_use]
    pub fn changed_at(&self) -> Option<DateTime<Utc>> {
        to_utc(self.stamp.modified.max(self.stamp.changed))
    }

    pub(super) fn file_stamp(&self) -> FileStamp {
        self.stamp
    }

    /// Returns the program `nmstatectl` from the image, packed as an archive for an initrd. Returns `None` if initrds
    /// of this OpenShift version do not need the program. Extracts the program once and stores it next to the image.
    ///
    /// # Errors
    ///
    /// Returns an error if the program is needed and cannot be extracted.
    pub async fn nmstatectl(&self) -> Result<Option<PackedArchive>, NmstatectlError> {
        if !needs_nmstatectl(&self.os_image.openshift_version) {
            return Ok(None);
        }
        self.nmstatectl.get_or_try_init(|| self.extract_nmstatectl()).await.cloned().map(Some)
    }

    async fn extract_nmstatectl(&self) -> Result<PackedArchive, NmstatectlError> {
        let digest = self.digest;
        let (image, file, paths) = (Arc::clone(&self.image), Arc::clone(&self.file), self.paths.clone());
        let name = || self.paths.name().to_owned();
        let extraction = on_dedicated_thread(move || {
            if let Some(cached) = read_cached_nmstatectl(&paths, digest) {
                return Ok(cached);
            }
            let packed = image.root_filesystem()?.pack_nmstatectl()?;
            require_unchanged(&file)?;
            cache_nmstatectl(&paths, digest, packed.as_bytes());
            Ok(packed)
        });
        match extraction.await {
            Ok(Ok(packed)) => Ok(packed),
            Ok(Err(source)) => Err(NmstatectlError::Extract { image: name(), source }),
            Err(_) => Err(NmstatectlError::GivenUp { image: name() }),
        }
    }
}

/// Converts a file time. Returns `None` if it is out of the range of `DateTime`.
pub(super) fn to_utc(time: FileTime) -> Option<DateTime<Utc>> {
    DateTime::from_timestamp(time.seconds, u32::try_from(time.nanoseconds).ok()?)
}

/// Returns an error if the file may have changed since it was hashed, so that bytes read from it are not reliable.
fn require_unchanged(file: &BaseFile) -> Result<(), isogen::Error> {
    let name = || file.source().name().to_owned();
    file.stamp().map(drop).map_err(|source| isogen::Error::Read { file: name(), offset: 0, source })
}

/// Reads the stored `nmstatectl` archive. Returns `None` if it was extracted from an image with another digest, or is
/// damaged.
fn read_cached_nmstatectl(paths: &ImagePaths, image: Digest) -> Option<PackedArchive> {
    let record: ProgramRecord = record::read_record(&paths.nmstatectl_record())?;
    if record.image.parse_digest() != Some(image) {
        return None;
    }
    let mut bytes = Vec::new();
    let file = File::open(paths.nmstatectl_file()).ok()?;
    file.take(MAX_PROGRAM).read_to_end(&mut bytes).ok()?;
    let is_whole = record.sha256.parse_digest() == Some(Digest::from_data(&bytes));
    is_whole.then(|| PackedArchive::from_encoded(bytes.into()))
}

/// Stores the `nmstatectl` archive for the next start. Only logs a failure, because the program can be extracted again.
fn cache_nmstatectl(paths: &ImagePaths, image: Digest, packed: &Bytes) {
    let path = paths.nmstatectl_file();
    let record = ProgramRecord { image: image.into(), sha256: Digest::from_data(packed).into() };
    let outcome: io::Result<()> = paths::replace_file(&path, packed)
        .and_then(|()| record::write_record(&paths.nmstatectl_record(), &record));
    match outcome {
        Ok(()) => {
            tracing::info!(image = paths.name(), file = %path.display(), len = packed.len(), "nmstatectl stored")
        }
        Err(error) => {
            tracing::warn!(
                image = paths.name(),
                error = error_chain(&error),
                "cannot store nmstatectl in the image library"
            );
        }
    }
}
