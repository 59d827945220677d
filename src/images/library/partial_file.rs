//! Partial files: the received bytes of incomplete downloads.
//!
//! A [`PartialFile`] locks the file, so that no other process writes to it. If the process dies, no written bytes are
//! lost. A power failure loses at most the bytes that were not synced to the disk. A download resumes only if the
//! record proves that the received bytes belong to the same version of the image.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::sync::Arc;

use inventory::catalogue::OsImage;
use isogen::write::explain_full_disk;
use isogen::{BaseImage, Digest, Hasher, Source};
use rustix::fs::FallocateFlags;

use super::error::FetchError;
use super::managed_image::ManagedImage;
use super::open_existing;
use super::paths::{self, ImagePaths};
use super::record::{self, PartRecord, RemoteVersion};
use super::verify::{self, disk_error};
use crate::base_files::BaseFile;
use isogen::FileStamp;

/// Maximum number of bytes that a power failure can lose. Downloading them again takes a second or two.
const MAX_UNSAVED: u64 = 64 << 20;
/// Number of bytes to read in one step while a partial file is hashed.
const READ_LEN: usize = 1 << 20;

/// The result of an attempt to lock a partial file.
pub(super) enum PartClaim {
    /// This process has the lock.
    Ours(Box<PartialFile>),
    /// Another process has the lock and has received `have` bytes.
    Others { have: u64, total: Option<u64> },
}

/// The locked file with the received bytes of an image.
#[derive(Debug)]
pub(super) struct PartialFile {
    paths: ImagePaths,
    file: File,
    origin: Option<RemoteVersion>,
    have: u64,
    durable: u64,
    hasher: Hasher,
}

/// A completely downloaded and verified image.
pub(super) struct CompleteImage {
    pub(super) image: BaseImage,
    pub(super) base_file: Arc<BaseFile>,
    pub(super) digest: Digest,
    pub(super) stamp: FileStamp,
}

impl PartialFile {
    /// Locks the partial file of an image. Keeps the received bytes if the record matches the URL, and discards them
    /// otherwise.
    pub(super) fn claim(paths: &ImagePaths, url: &str) -> Result<PartClaim, FetchError> {
        let path = paths.partial_file();
        let failed = disk_error("opening", &path);
        paths.create_directory().map_err(&failed)?;
        loop {
            let file = OpenOptions::new()
                .read(true)
                .write(true)
                .create(true)
                .mode(0o600)
                .truncate(false)
                .open(&path)
                .map_err(&failed)?;
            match file.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => {
                    let have = file.metadata().map_err(&failed)?.len();
                    let record: Option<PartRecord> = record::read_record(&paths.partial_file_record());
                    return Ok(PartClaim::Others { have, total: record.map(|record| record.origin.len) });
                }
                Err(TryLockError::Error(error)) => return Err(disk_error("locking", &path)(error)),
            }
            // Check the path again, because the previous owner of the lock may have renamed or deleted the file before
            // it released the lock.
            if is_file_at(&file, &path) {
                return Self::resume(paths, file, url).map(|part| PartClaim::Ours(Box::new(part)));
            }
        }
    }

    fn resume(paths: &ImagePaths, file: File, url: &str) -> Result<Self, FetchError> {
        let path = paths.partial_file();
        let len = file.metadata().map_err(disk_error("reading", &path))?.len();
        let record: Option<PartRecord> = record::read_record(&paths.partial_file_record());
        let record = record.filter(|record| record.origin.url == url && len <= record.origin.len);
        let mut part =
            Self { paths: paths.clone(), file, origin: None, have: 0, durable: 0, hasher: Hasher::new() };
        let Some(record) = record else {
            part.wipe()?;
            return Ok(part);
        };
        let is_same_start = record.boot.is_some() && record.boot == record::boot_id();
        part.have = if is_same_start { len } else { len.min(record.durable) };
        part.durable = record.durable.min(part.have);
        part.origin = Some(record.origin);
        part.file.set_len(part.have).map_err(disk_error("shortening", &path))?;
        part.hash_received().map_err(disk_error("reading", &path))?;
        Ok(part)
    }

    fn hash_received(&mut self) -> io::Result<()> {
        let mut reader = (&self.file).take(self.have);
        let mut buf = vec![0; READ_LEN];
        let mut hashed = 0;
        loop {
            match reader.read(&mut buf) {
                Ok(0) => break,
                Ok(len) => {
                    self.hasher.update(buf.get(..len).ok_or(io::ErrorKind::InvalidData)?);
                    hashed += len as u64;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        if hashed == self.have { Ok(()) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
    }

    /// Returns the number of bytes received so far.
    pub(super) fn received_len(&self) -> u64 {
        self.have
    }

    /// Returns `true` if all bytes are received.
    pub(super) fn is_complete(&self) -> bool {
        self.origin.as_ref().is_some_and(|origin| origin.len == self.have)
    }

    /// Returns the version of the image to which the received bytes belong.
    pub(super) fn remote_version(&self) -> Option<&RemoteVersion> {
        self.origin.as_ref()
    }

    /// Discards the received bytes.
    pub(super) fn wipe(&mut self) -> Result<(), FetchError> {
        let (path, record) = (self.paths.partial_file(), self.paths.partial_file_record());
        // Delete the record first: bytes without a record are never resumed.
        paths::remove_if_exists(&record).map_err(disk_error("deleting", &record))?;
        self.file.set_len(0).map_err(disk_error("emptying", &path))?;
        (self.origin, self.have, self.durable, self.hasher) = (None, 0, 0, Hasher::new());
        Ok(())
    }

    /// Starts the download of a version of the image at its first byte.
    pub(super) fn begin_version(&mut self, origin: &RemoteVersion) -> Result<(), FetchError> {
        if self.have > 0 || self.origin.is_some() {
            self.wipe()?;
        }
        self.reserve_space(origin.len)?;
        self.origin = Some(origin.clone());
        self.save_record()
    }

    /// Reserves disk space, to detect a full disk before gigabytes are downloaded. If the file system cannot reserve
    /// space, a later write fails instead.
    fn reserve_space(&self, len: u64) -> Result<(), FetchError> {
        let path = self.paths.partial_file();
        match rustix::fs::fallocate(&self.file, FallocateFlags::KEEP_SIZE, 0, len) {
            Err(rustix::io::Errno::OPNOTSUPP | rustix::io::Errno::NOSYS | rustix::io::Errno::INVAL)
            | Ok(()) => Ok(()),
            Err(error) => {
                let error = explain_full_disk(error.into(), &self.file, len);
                Err(disk_error("reserving space for", &path)(error))
            }
        }
    }

    fn save_record(&self) -> Result<(), FetchError> {
        let Some(origin) = self.origin.clone() else { return Ok(()) };
        let path = self.paths.partial_file_record();
        let part = PartRecord { origin, durable: self.durable, boot: record::boot_id() };
        record::write_record(&path, &part).map_err(disk_error("writing", &path))
    }

    /// Appends received bytes. Syncs them to the disk and updates the record from time to time.
    pub(super) fn append(&mut self, bytes: &[u8]) -> Result<(), FetchError> {
        let total = self.total_len();
        let have = self.have + bytes.len() as u64;
        if have > total {
            return Err(FetchError::TooLong { total });
        }
        let path = self.paths.partial_file();
        let result = self.file.write_all_at(bytes, self.have);
        let result = result.map_err(|error| explain_full_disk(error, &self.file, total));
        result.map_err(disk_error("writing", &path))?;
        self.hasher.update(bytes);
        let before = self.have;
        self.have = have;
        if before < verify::RECOGNIZABLE && (have >= verify::RECOGNIZABLE || have == total) {
            self.reject_error_page()?;
        }
        if have - self.durable >= MAX_UNSAVED {
            self.file.sync_data().map_err(disk_error("writing", &path))?;
            self.durable = have;
            self.save_record()?;
        }
        Ok(())
    }

    /// Returns an error if the received bytes are not the start of an ISO image. This detects an HTML error page with
    /// status 200 before all of it is downloaded.
    fn reject_error_page(&self) -> Result<(), FetchError> {
        let path = self.paths.partial_file();
        let mut mark = [0; verify::MARK.len()];
        let read = if self.have < verify::RECOGNIZABLE {
            Ok(())
        } else {
            self.file.read_exact_at(&mut mark, verify::MARK_AT)
        };
        read.map_err(disk_error("reading", &path))?;
        if mark == verify::MARK {
            return Ok(());
        }
        let mut start = [0; 128];
        let len = self.file.read_at(&mut start, 0).map_err(disk_error("reading", &path))?;
        Err(FetchError::NotAnImage { found: verify::start_for_message(start.get(..len).unwrap_or_default()) })
    }

    fn total_len(&self) -> u64 {
        self.origin.as_ref().map_or(0, |origin| origin.len)
    }

    /// Verifies the complete file, renames it to the name of the image, and opens the image.
    pub(super) fn verify_and_publish(
        mut self,
        slot: &Arc<ManagedImage>,
    ) -> Result<CompleteImage, FetchError> {
        let result = self.make_image(&slot.image);
        let digest = result.inspect_err(|_| self.discard())?;
        // The rename has succeeded, so the file must not be discarded after an error below.
        let path = self.paths.image_file();
        let published_stamp = open_existing::settled_stamp(&path, &self.file)?;
        // Close the writable handle, because the kernel does not grant a lease while it is open.
        self.file = File::open(&path).map_err(disk_error("opening", &path))?;
        let existing = open_existing::open_existing(&path, slot)?.ok_or(FetchError::Unstable)?;
        // A different stamp means that another process may have written to the file in the meantime.
        if existing.stamp != published_stamp && existing.hash_file(&path, |_| ())? != digest {
            return Err(FetchError::Unstable);
        }
        let url = self.origin.as_ref().map_or("", |origin| &origin.url);
        existing.verify_and_record((&self.paths, url), &path, digest)?;
        Ok(CompleteImage {
            image: existing.image,
            base_file: existing.base_file,
            digest,
            stamp: existing.stamp,
        })
    }

    /// Verifies the complete file, renames it to the name of the image, and returns the digest.
    fn make_image(&mut self, image: &OsImage) -> Result<Digest, FetchError> {
        let (path, image_path) = (self.paths.partial_file(), self.paths.image_file());
        let total = self.total_len();
        if self.have != total {
            return Err(FetchError::Truncated { have: self.have, total, source: None });
        }
        if total == 0 {
            self.reject_error_page()?;
        }
        let digest = std::mem::take(&mut self.hasher).finish();
        if let Some(expected) = image.sha256.filter(|expected| *expected != digest) {
            return Err(FetchError::Digest { expected, found: digest });
        }
        let reader = File::open(&path).map_err(disk_error("opening", &path))?;
        let source = Source::from_file(reader, image_path.display().to_string());
        let source = source.map_err(|source| FetchError::Structure { source })?;
        verify::open_base_image(source, image.cpu_architecture)?;
        self.file.sync_all().map_err(disk_error("writing", &path))?;
        fs::rename(&path, &image_path).map_err(disk_error("renaming", &path))?;
        // The image is complete. Only log a failure of the remaining steps.
        let cleanup = open_existing::make_read_only(&self.file)
            .and_then(|()| self.paths.sync_directory())
            .and_then(|()| paths::remove_if_exists(&self.paths.partial_file_record()));
        if let Err(error) = cleanup {
            tracing::warn!(image = self.paths.name(), %error, "cannot clean up in the image library");
        }
        Ok(digest)
    }

    /// Keeps the file for the next attempt, or deletes it if it is empty.
    pub(super) fn keep_for_next_attempt(mut self) {
        if self.have == 0 {
            self.discard();
        }
    }

    /// Deletes the received bytes and the file. If the file cannot be deleted, it remains empty and without a record,
    /// so that it is not resumed.
    pub(super) fn discard(&mut self) {
        let outcome = self.wipe().and_then(|()| {
            let path = self.paths.partial_file();
            if is_file_at(&self.file, &path) {
                paths::remove_if_exists(&path).map_err(disk_error("deleting", &path))
            } else {
                Ok(())
            }
        });
        if let Err(error) = outcome {
            tracing::warn!(
                image = self.paths.name(),
                error = super::error::error_chain(&error),
                "cannot delete a partial download"
            );
        }
    }
}

/// Returns `true` if the path still leads to the open file.
fn is_file_at(file: &File, path: &std::path::Path) -> bool {
    let id = |metadata: fs::Metadata| (metadata.dev(), metadata.ino());
    match (file.metadata(), fs::metadata(path)) {
        (Ok(file), Ok(path)) => id(file) == id(path),
        _ => false,
    }
}
