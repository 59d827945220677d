//! Opens and hashes image files that already exist in the library or on this machine.

use std::fs::{self, File, Metadata, Permissions};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt, fchown};
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use chrono::Utc;
use isogen::{BaseImage, Digest, Hasher, Source};

use super::base::to_utc;
use super::error::{FetchError, error_chain};
use super::managed_image::ManagedImage;
use super::paths::ImagePaths;
use super::record::{self, ImageRecord};
use super::verify::{self, disk_error};
use crate::base_files::BaseFile;
use isogen::FileStamp;

/// Number of bytes to read in one step while a file is hashed.
const READ_LEN: usize = 1 << 20;
/// The mode of image files in the library.
const MODE: u32 = 0o400;
/// Minimum age of a reliable stamp. It is longer than a clock tick, because on kernels before 6.13, two changes within
/// a tick have the same time.
const TICK: Duration = Duration::from_millis(20);
/// Maximum number of ticks to wait until a file stops changing.
const MAX_TICKS: u32 = 50;

/// A file with a valid base image.
pub(super) struct ExistingImage {
    pub(super) image: BaseImage,
    pub(super) base_file: Arc<BaseFile>,
    /// The stamp of the file before the first byte was read.
    pub(super) stamp: FileStamp,
    /// The digest from the record, if the record matches the file.
    pub(super) digest: Option<Digest>,
    /// The result of the check of the minimal ISO, from the same record. Records of earlier releases do not contain it.
    minimal_verified: Option<bool>,
    file: File,
}

/// Opens the base image at a path, and parses its structures. Does not hash the file. Returns `None` if the file does
/// not exist.
pub(super) fn open_existing(
    path: &Path,
    managed: &Arc<ManagedImage>,
) -> Result<Option<ExistingImage>, FetchError> {
    let paths = &managed.paths;
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(disk_error("opening", path)(error)),
    };
    let metadata = file.metadata().map_err(disk_error("reading", path))?;
    if !metadata.is_file() {
        return Err(disk_error("opening", path)(io::Error::other("not a regular file")));
    }
    if path == paths.image_file() {
        protect_file(path, (&file, &metadata));
    }
    let source = file.try_clone().map_err(disk_error("opening", path))?;
    let source = Source::from_file(source, path.display().to_string());
    let source = source.map_err(|source| FetchError::Structure { source })?;
    // Take the lease and the stamp before the first byte is read.
    let lease = managed.shared.leases.acquire(path, &file)?;
    let stamp = settled_stamp(path, &file)?;
    let image = verify::open_base_image(source, managed.image.cpu_architecture)?;
    let base_file = Arc::new(BaseFile::new(Arc::clone(image.source())));
    if let Some(lease) = lease {
        base_file.hold_lease(lease);
        managed.shared.leases.register(&base_file, managed);
    }
    let record: Option<ImageRecord> = record::read_record(&paths.image_record());
    let record =
        record.filter(|record| record.stamp == stamp.into() && record.file.file_name() == path.file_name());
    let minimal_verified = record.as_ref().and_then(|record| record.minimal_verified);
    if let Some(is_verified) = minimal_verified {
        image.set_minimal_verified(is_verified);
    }
    let digest = record.and_then(|record| record.sha256.parse_digest());
    Ok(Some(ExistingImage { image, base_file, stamp, digest, minimal_verified, file }))
}

/// Makes the user of this process the owner of a file in the library, and makes the file read-only. Does not change
/// symbolic links and files with several hard links, which belong to another program.
fn protect_file(path: &Path, (file, metadata): (&File, &Metadata)) {
    let owner = rustix::process::geteuid().as_raw();
    let is_link = fs::symlink_metadata(path).is_ok_and(|at| at.is_symlink());
    let is_done = metadata.uid() == owner && metadata.mode() & 0o7777 == MODE;
    if is_link || metadata.nlink() > 1 || is_done {
        return;
    }
    let owner_result = if metadata.uid() == owner { Ok(()) } else { fchown(file, Some(owner), None) };
    if let Err(error) = owner_result.and_then(|()| make_read_only(file)) {
        tracing::warn!(file = %path.display(), %error, "cannot change owner and mode of the base image");
    }
}

/// Sets the read-only mode of image files in the library.
pub(super) fn make_read_only(file: &File) -> io::Result<()> {
    file.set_permissions(Permissions::from_mode(MODE))
}

/// Returns the stamp of a file. Waits until the stamp is so old that any later change of the file will change the
/// stamp.
pub(super) fn settled_stamp(path: &Path, file: &File) -> Result<FileStamp, FetchError> {
    for _ in 0..MAX_TICKS {
        let stamp = FileStamp::from_file(file).map_err(disk_error("reading", path))?;
        // The age is `None` if the time is in the future, because the clock was set back, or is out of range. A later
        // change then has a different time.
        let age = to_utc(stamp.changed).and_then(|changed| (Utc::now() - changed).to_std().ok());
        if age.is_none_or(|age| age >= TICK) {
            return Ok(stamp);
        }
        thread::sleep(TICK);
    }
    Err(FetchError::Unstable)
}

impl ExistingImage {
    /// Returns the SHA-256 digest from the record. Returns `None` if the record lacks a result for which the whole file
    /// must be read.
    pub(super) fn recorded_digest(&self) -> Option<Digest> {
        self.digest.filter(|_| self.minimal_verified.is_some())
    }

    /// Checks the description of the minimal ISO. Writes the result and the SHA-256 digest to the record, for the next
    /// start.
    pub(super) fn verify_and_record(
        &self,
        (paths, url): (&ImagePaths, &str),
        path: &Path,
        digest: Digest,
    ) -> Result<(), FetchError> {
        let minimal_verified = Some(verify::has_valid_minimal_description(paths.name(), path, &self.image)?);
        self.require_unchanged()?;
        let record = ImageRecord {
            file: path.to_owned(),
            stamp: self.stamp.into(),
            sha256: digest.into(),
            minimal_verified,
            url: url.to_owned(),
        };
        if let Err(error) = record::write_record(&paths.image_record(), &record) {
            let error = error_chain(&error);
            tracing::warn!(image = paths.name(), error, "cannot write the record of the base image");
        }
        Ok(())
    }

    /// Reads the whole file and returns the SHA-256 digest.
    pub(super) fn hash_file(&self, path: &Path, mut progress: impl FnMut(u64)) -> Result<Digest, FetchError> {
        let len = self.stamp.len;
        let mut hasher = Hasher::new();
        let mut buf = vec![0; READ_LEN];
        let mut offset = 0;
        while offset < len {
            match self.file.read_at(&mut buf, offset) {
                Ok(0) => return Err(FetchError::Unstable),
                Ok(read) => {
                    hasher.update(buf.get(..read).ok_or(FetchError::Unstable)?);
                    offset += read as u64;
                    self.require_unchanged()?;
                    progress(offset);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(disk_error("reading", path)(error)),
            }
        }
        if offset == len { Ok(hasher.finish()) } else { Err(FetchError::Unstable) }
    }

    fn require_unchanged(&self) -> Result<(), FetchError> {
        let is_same = FileStamp::from_file(&self.file).is_ok_and(|stamp| stamp == self.stamp);
        let is_still_leased = self.base_file.stamp().is_ok();
        if is_same && is_still_leased { Ok(()) } else { Err(FetchError::Unstable) }
    }
}
