//! The part of an image that is there, while the rest is coming.
//!
//! Whoever holds a [`Part`] has the lock of its file: no other process writes to it. What is lost with the process is at
//! most what the disk does not have; what is resumed is what a record says to be of the same version of the image.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::sync::Arc;

use isogen::{BaseImage, Digest, Hasher, Source};
use rustix::fs::FallocateFlags;

use super::adopt;
use super::arrival::Arrival;
use super::error::FetchError;
use super::record::{self, Origin, PartRecord};
use super::shelf::{self, Shelf};
use super::slot::Slot;
use super::verify::{self, disk};
use crate::http::zerocopy::{BaseFile, FileStamp};

/// So many bytes may be lost with the power: it takes a second or two to fetch them again.
const MOST_UNSAVED: u64 = 64 << 20;
/// What is read at once to hash what was there.
const READ_LEN: usize = 1 << 20;

/// What came of trying to take a part.
pub(super) enum Claim {
    /// It is ours.
    Ours(Box<Part>),
    /// Another process has it, and so much came of it.
    Others { have: u64, total: Option<u64> },
}

/// What has come of an image.
#[derive(Debug)]
pub(super) struct Part {
    shelf: Shelf,
    file: File,
    origin: Option<Origin>,
    have: u64,
    durable: u64,
    hasher: Hasher,
    arrival: Arc<Arrival>,
    /// Whether somebody reads it already.
    is_announced: bool,
}

/// A part for readers.
pub(super) struct Announced {
    pub(super) file: File,
    pub(super) origin: Origin,
    pub(super) arrival: Arc<Arrival>,
}

/// A complete image.
pub(super) struct Complete {
    pub(super) image: BaseImage,
    pub(super) base_file: Arc<BaseFile>,
    pub(super) digest: Digest,
    pub(super) stamp: FileStamp,
}

impl Part {
    /// Takes the part of an image from a URL, with what is there of it.
    pub(super) fn claim(shelf: &Shelf, url: &str) -> Result<Claim, FetchError> {
        let path = shelf.part();
        let failed = disk("opening", &path);
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
                    let record: Option<PartRecord> = record::read(&shelf.part_record());
                    return Ok(Claim::Others { have, total: record.map(|record| record.origin.len) });
                }
                Err(TryLockError::Error(error)) => return Err(disk("locking", &path)(error)),
            }
            // Whoever had the lock may have made it the image, or deleted it.
            if is_at(&file, &path) {
                return Self::resume(shelf, file, url).map(|part| Claim::Ours(Box::new(part)));
            }
        }
    }

    fn resume(shelf: &Shelf, file: File, url: &str) -> Result<Self, FetchError> {
        let path = shelf.part();
        let len = file.metadata().map_err(disk("reading", &path))?.len();
        let record: Option<PartRecord> = record::read(&shelf.part_record());
        let record = record.filter(|record| record.origin.url == url && len <= record.origin.len);
        let mut part = Self {
            shelf: shelf.clone(),
            file,
            origin: None,
            have: 0,
            durable: 0,
            hasher: Hasher::new(),
            arrival: Arc::default(),
            is_announced: false,
        };
        let Some(record) = record else {
            part.wipe()?;
            return Ok(part);
        };
        let is_same_start = record.boot.is_some() && record.boot == record::boot();
        part.have = if is_same_start { len } else { len.min(record.durable) };
        part.durable = record.durable.min(part.have);
        part.origin = Some(record.origin);
        part.file.set_len(part.have).map_err(disk("shortening", &path))?;
        part.hash_what_is_there().map_err(disk("reading", &path))?;
        part.arrival.advance(part.have);
        Ok(part)
    }

    fn hash_what_is_there(&mut self) -> io::Result<()> {
        let mut reader = (&self.file).take(self.have);
        let mut buf = vec![0; READ_LEN];
        let mut hashed = 0;
        loop {
            match reader.read(&mut buf) {
                Ok(0) => break,
                Ok(len) => {
                    self.hasher.update(buf.get(..len).unwrap_or_default());
                    hashed += len as u64;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        if hashed == self.have { Ok(()) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
    }

    /// The bytes that are there.
    pub(super) fn have(&self) -> u64 {
        self.have
    }

    /// Whether that is all of them.
    pub(super) fn is_complete(&self) -> bool {
        self.origin.as_ref().is_some_and(|origin| origin.len == self.have)
    }

    /// The version of the image that they are of.
    pub(super) fn origin(&self) -> Option<&Origin> {
        self.origin.as_ref()
    }

    /// What it takes to read it while it comes; once for each version of the image.
    pub(super) fn announce(&mut self) -> Result<Option<Announced>, FetchError> {
        let Some(origin) = self.origin.clone().filter(|_| !self.is_announced) else { return Ok(None) };
        self.is_announced = true;
        Ok(Some(Announced { file: self.reader()?, origin, arrival: Arc::clone(&self.arrival) }))
    }

    fn reader(&self) -> Result<File, FetchError> {
        let path = self.shelf.part();
        File::open(&path).map_err(disk("opening", &path))
    }

    /// Throws away what is there.
    pub(super) fn wipe(&mut self) -> Result<(), FetchError> {
        let (path, record) = (self.shelf.part(), self.shelf.part_record());
        self.arrival.fail("the image has changed where it comes from");
        (self.arrival, self.is_announced) = (Arc::default(), false);
        // The record first: without it, bytes are those of no image.
        shelf::remove(&record).map_err(disk("deleting", &record))?;
        self.file.set_len(0).map_err(disk("emptying", &path))?;
        (self.origin, self.have, self.durable, self.hasher) = (None, 0, 0, Hasher::new());
        Ok(())
    }

    /// Makes room for a version of the image, from its first byte on.
    pub(super) fn begin(&mut self, origin: &Origin) -> Result<(), FetchError> {
        if self.have > 0 || self.origin.is_some() {
            self.wipe()?;
        }
        self.reserve(origin.len)?;
        self.origin = Some(origin.clone());
        self.save_record()
    }

    /// A disk that is too small is one before gigabytes have come. File systems that cannot reserve find out later.
    fn reserve(&self, len: u64) -> Result<(), FetchError> {
        let path = self.shelf.part();
        match rustix::fs::fallocate(&self.file, FallocateFlags::KEEP_SIZE, 0, len) {
            Err(rustix::io::Errno::OPNOTSUPP | rustix::io::Errno::NOSYS | rustix::io::Errno::INVAL)
            | Ok(()) => Ok(()),
            Err(error) => Err(disk("reserving the length of the image for", &path)(error.into())),
        }
    }

    fn save_record(&self) -> Result<(), FetchError> {
        let Some(origin) = self.origin.clone() else { return Ok(()) };
        let path = self.shelf.part_record();
        let part = PartRecord { origin, durable: self.durable, boot: record::boot() };
        record::write(&path, &part).map_err(disk("writing", &path))
    }

    /// Takes the next bytes.
    pub(super) fn push(&mut self, bytes: &[u8]) -> Result<(), FetchError> {
        let total = self.total();
        let have = self.have + bytes.len() as u64;
        if have > total {
            return Err(FetchError::TooLong { total });
        }
        let path = self.shelf.part();
        self.file.write_all_at(bytes, self.have).map_err(disk("writing", &path))?;
        self.hasher.update(bytes);
        let before = self.have;
        self.have = have;
        if before < verify::RECOGNIZABLE && (have >= verify::RECOGNIZABLE || have == total) {
            self.recognize()?;
        }
        self.arrival.advance(have);
        if have - self.durable >= MOST_UNSAVED {
            self.file.sync_data().map_err(disk("writing", &path))?;
            self.durable = have;
            self.save_record()?;
        }
        Ok(())
    }

    /// An error page with status 200 shall be told before all of something else has come.
    fn recognize(&self) -> Result<(), FetchError> {
        let path = self.shelf.part();
        let mut mark = [0; verify::MARK.len()];
        let read = if self.have < verify::RECOGNIZABLE {
            Ok(())
        } else {
            self.file.read_exact_at(&mut mark, verify::MARK_AT)
        };
        read.map_err(disk("reading", &path))?;
        if mark == verify::MARK {
            return Ok(());
        }
        let mut start = [0; 128];
        let len = self.file.read_at(&mut start, 0).map_err(disk("reading", &path))?;
        Err(FetchError::NotAnImage { found: verify::glimpse(start.get(..len).unwrap_or_default()) })
    }

    fn total(&self) -> u64 {
        self.origin.as_ref().map_or(0, |origin| origin.len)
    }

    /// Makes it the image, if it is good, and replaces an earlier one.
    pub(super) fn finish(mut self, slot: &Arc<Slot>) -> Result<Complete, FetchError> {
        let made = self.make_image(slot.image.sha256);
        let digest = made.inspect_err(|_| self.discard())?;
        // From here on the file is the image, which is not discarded.
        let path = self.shelf.image();
        let written = adopt::settled(&path, &self.file)?;
        // While it is open for writing here, no lease of it is granted.
        self.file = File::open(&path).map_err(disk("opening", &path))?;
        let found = adopt::look(&path, slot)?.ok_or(FetchError::Unstable)?;
        // Another process had it open for writing meanwhile.
        if found.stamp != written && found.hash(&path, |_| ())? != digest {
            return Err(FetchError::Unstable);
        }
        let url = self.origin.as_ref().map_or("", |origin| &origin.url);
        found.verify_and_record((&self.shelf, url), &path, digest)?;
        self.arrival.complete(&found.base_file);
        Ok(Complete { image: found.image, base_file: found.base_file, digest, stamp: found.stamp })
    }

    /// Gives it the name of the image, and returns its digest.
    fn make_image(&mut self, expected: Option<Digest>) -> Result<Digest, FetchError> {
        let (path, image_path) = (self.shelf.part(), self.shelf.image());
        let total = self.total();
        if self.have != total {
            return Err(FetchError::Truncated { have: self.have, total, source: None });
        }
        if total == 0 {
            self.recognize()?;
        }
        let digest = std::mem::take(&mut self.hasher).finish();
        if let Some(expected) = expected.filter(|expected| *expected != digest) {
            return Err(FetchError::Digest { expected, found: digest });
        }
        let source = Source::from_file(self.reader()?, image_path.display().to_string());
        verify::open(source.map_err(|source| FetchError::Structure { source })?)?;
        self.file.sync_all().map_err(disk("writing", &path))?;
        fs::rename(&path, &image_path).map_err(disk("renaming", &path))?;
        // It is the image now, whatever happens to its name in a crash: what is left is not worth failing for.
        let tidied = adopt::make_read_only(&self.file)
            .and_then(|()| self.shelf.sync_directory())
            .and_then(|()| shelf::remove(&self.shelf.part_record()));
        if let Err(error) = tidied {
            tracing::warn!(image = self.shelf.name(), %error, "the directory of images cannot be put in order");
        }
        Ok(digest)
    }

    /// Leaves it for the next time, if there is something in it.
    pub(super) fn put_back(mut self) {
        if self.have == 0 {
            self.discard();
        }
    }

    /// Deletes it. What cannot be deleted is emptied, and has no record by which it could be taken for a part.
    pub(super) fn discard(&mut self) {
        let outcome = self.wipe().and_then(|()| {
            let path = self.shelf.part();
            if is_at(&self.file, &path) {
                shelf::remove(&path).map_err(disk("deleting", &path))
            } else {
                Ok(())
            }
        });
        if let Err(error) = outcome {
            tracing::warn!(
                image = self.shelf.name(),
                error = super::error::chain(&error),
                "a part cannot be deleted"
            );
        }
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        self.arrival.fail("the download was given up");
    }
}

/// Whether a path still names an open file.
fn is_at(file: &File, path: &std::path::Path) -> bool {
    let id = |metadata: fs::Metadata| (metadata.dev(), metadata.ino());
    match (file.metadata(), fs::metadata(path)) {
        (Ok(file), Ok(path)) => id(file) == id(path),
        _ => false,
    }
}
