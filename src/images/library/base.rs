//! An image that can be used.

use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::sync::Arc;

use bytes::Bytes;
use chrono::{DateTime, Utc};
use ignition::network::needs_nmstatectl;
use isogen::{BaseImage, Digest, Extent, Packed};
use tokio::sync::OnceCell;

use super::apart::apart;
use super::error::{NmstatectlError, chain};
use super::record::{self, ProgramRecord};
use super::shelf::{self, Shelf};
use crate::http::zerocopy::{Available, BaseFile, FileStamp, FileTime};
use crate::images::OsImage;

/// The longest packed program that is read back: it has some ten megabytes.
const MAX_PROGRAM: u64 = 256 << 20;

/// A live image on this machine, opened. It stays what it is as long as somebody has it, even if its file is replaced by
/// another one.
pub struct Base {
    image: Arc<BaseImage>,
    file: Arc<BaseFile>,
    os_image: OsImage,
    digest: Option<Digest>,
    shelf: Shelf,
    /// The state of the file when it was hashed; `None` while it is downloaded.
    stamp: Option<FileStamp>,
    nmstatectl: OnceCell<Packed>,
}

impl fmt::Debug for Base {
    /// Without the URL, which may have credentials, and the thousand structures of an image.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut base = f.debug_struct("Base");
        base.field("name", &self.shelf.name()).field("digest", &self.digest).field("stamp", &self.stamp);
        base.finish_non_exhaustive()
    }
}

impl Base {
    /// An image of which everything is known.
    pub(super) fn complete(
        (image, file): (BaseImage, Arc<BaseFile>),
        os_image: OsImage,
        shelf: Shelf,
        (digest, stamp): (Digest, FileStamp),
    ) -> Self {
        image.source().set_digest(digest);
        file.require(stamp);
        let (digest, stamp) = (Some(digest), Some(stamp));
        Self { image: Arc::new(image), file, os_image, digest, shelf, stamp, nmstatectl: OnceCell::new() }
    }

    /// An image that is still coming.
    pub(super) fn arriving(
        (image, file): (BaseImage, Arc<BaseFile>),
        os_image: OsImage,
        shelf: Shelf,
    ) -> Self {
        let digest = os_image.sha256;
        if let Some(digest) = digest {
            image.source().set_digest(digest);
        }
        Self {
            image: Arc::new(image),
            file,
            os_image,
            digest,
            shelf,
            stamp: None,
            nmstatectl: OnceCell::new(),
        }
    }

    /// The image, to plan with.
    #[must_use]
    pub fn image(&self) -> &Arc<BaseImage> {
        &self.image
    }

    /// Returns the file as it is served.
    pub(crate) fn file(&self) -> &Arc<BaseFile> {
        &self.file
    }

    /// Returns what to wait for before an extent is read; `None` if it can be read now. Reading bytes that are not downloaded yet fails
    /// with [`WouldBlock`](io::ErrorKind::WouldBlock).
    #[must_use]
    pub fn available(&self, extent: Extent) -> Option<Available> {
        self.file.available(extent)
    }

    /// The entry of the catalogue that it is of.
    #[must_use]
    pub fn os_image(&self) -> &OsImage {
        &self.os_image
    }

    /// Its SHA-256. It is unknown only while the image is still coming and the catalogue does not tell it; then, whatever
    /// asks the source for its digest waits for all bytes.
    #[must_use]
    pub fn digest(&self) -> Option<Digest> {
        self.digest
    }

    /// Whether all of it is there.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.stamp.is_some()
    }

    /// Reports whether its file still has the bytes that were hashed.
    #[must_use]
    pub fn is_unchanged(&self) -> bool {
        self.file.stamp().is_ok()
    }

    /// The time of the last change of its file: a later one than `mtime` if a process has set that.
    #[must_use]
    pub fn changed_at(&self) -> Option<DateTime<Utc>> {
        self.stamp.and_then(|stamp| utc(stamp.modified.max(stamp.changed)))
    }

    pub(super) fn stamp(&self) -> Option<FileStamp> {
        self.stamp
    }

    /// The program `nmstatectl` of the image, packed for an initrd; none for versions of OpenShift whose initrd needs
    /// none. It is taken out of the image once, when all of it is there, and kept beside it.
    ///
    /// # Errors
    ///
    /// When it is needed, and cannot be taken out.
    pub async fn nmstatectl(&self) -> Result<Option<Packed>, NmstatectlError> {
        if !needs_nmstatectl(&self.os_image.openshift_version) {
            return Ok(None);
        }
        self.nmstatectl.get_or_try_init(|| self.take_nmstatectl()).await.cloned().map(Some)
    }

    async fn take_nmstatectl(&self) -> Result<Packed, NmstatectlError> {
        let source = self.image.source();
        if let Some(available) = Extent::new(0, source.len()).and_then(|all| self.available(all)) {
            available.await;
        }
        // What came from an image that may yet turn out bad is not kept.
        let digest = self.digest.filter(|_| self.is_complete());
        let (image, file, shelf) = (Arc::clone(&self.image), Arc::clone(&self.file), self.shelf.clone());
        let name = || self.shelf.name().to_owned();
        let taken = apart(move || {
            if let Some(kept) = digest.and_then(|digest| kept(&shelf, digest)) {
                return Ok(kept);
            }
            let packed = image.root_filesystem()?.pack_nmstatectl()?;
            require_unchanged(&file)?;
            if let Some(digest) = digest {
                keep(&shelf, digest, packed.as_bytes());
            }
            Ok(packed)
        });
        match taken.await {
            Ok(Ok(packed)) => Ok(packed),
            Ok(Err(source)) => Err(NmstatectlError::Extract { image: name(), source }),
            Err(_) => Err(NmstatectlError::GivenUp { image: name() }),
        }
    }
}

/// `None` for a time that no calendar has.
pub(super) fn utc(time: FileTime) -> Option<DateTime<Utc>> {
    DateTime::from_timestamp(time.seconds, u32::try_from(time.nanoseconds).ok()?)
}

/// Returns an error if bytes of a file may have been read that are not those of its digest.
fn require_unchanged(file: &BaseFile) -> Result<(), isogen::Error> {
    let name = || file.source().name().to_owned();
    file.stamp().map(drop).map_err(|source| isogen::Error::Read { file: name(), offset: 0, source })
}

/// The program that was taken out of this very image earlier.
fn kept(shelf: &Shelf, image: Digest) -> Option<Packed> {
    let record: ProgramRecord = record::read(&shelf.nmstatectl_record())?;
    if record.image.digest() != Some(image) {
        return None;
    }
    let mut bytes = Vec::new();
    let file = File::open(shelf.nmstatectl()).ok()?;
    file.take(MAX_PROGRAM).read_to_end(&mut bytes).ok()?;
    let is_whole = record.sha256.digest() == Some(Digest::of(&bytes));
    is_whole.then(|| Packed::from_encoded(bytes.into()))
}

/// Keeps it for the next start. It works without as well.
fn keep(shelf: &Shelf, image: Digest, packed: &Bytes) {
    let path = shelf.nmstatectl();
    let record = ProgramRecord { image: image.into(), sha256: Digest::of(packed).into() };
    let written: io::Result<()> =
        shelf::write_whole(&path, packed).and_then(|()| record::write(&shelf.nmstatectl_record(), &record));
    match written {
        Ok(()) => {
            tracing::info!(image = shelf.name(), file = %path.display(), len = packed.len(), "nmstatectl is kept")
        }
        Err(error) => {
            tracing::warn!(
                image = shelf.name(),
                error = chain(&error),
                "nmstatectl cannot be kept beside its image"
            );
        }
    }
}
