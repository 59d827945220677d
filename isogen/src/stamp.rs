//! Whether a file still has the bytes that were hashed.
//!
//! A [`Lease`] proves it. The kernel grants a read lease only if no process has the file open for writing, which includes processes that
//! have it mapped, and lets no process open it for writing before the lease is given back. The holder gives it back with
//! [`Source::revoke`], which first ends every use of the bytes.
//!
//! A [`FileStamp`] is the evidence for a file that cannot be leased. It is weaker. A process that already has the file open changes it
//! without any sign as long as the pages that it has mapped are dirty, or while one long write is in progress.

use std::fs::{File, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use rustix::fs::{AtFlags, FileType, StatxFlags, StatxTimestamp, makedev, statx};

use crate::lease::Lease;
use crate::{Source, map};

/// A time of a file, as `stat` reports it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct FileTime {
    /// Seconds since 1970.
    pub seconds: i64,
    /// Nanoseconds within the second.
    pub nanoseconds: i64,
}

impl From<StatxTimestamp> for FileTime {
    fn from(time: StatxTimestamp) -> Self {
        Self { seconds: time.tv_sec, nanoseconds: time.tv_nsec.into() }
    }
}

/// One state of a file, as `stat` reports it. Every write changes [`changed`](Self::changed), which no process can set.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FileStamp {
    /// The length in bytes.
    pub len: u64,
    /// The device of the file system.
    pub device: u64,
    /// The inode on that device.
    pub inode: u64,
    /// How many names the file has.
    pub links: u64,
    /// The time of the last write (`mtime`), unless a process has set it.
    pub modified: FileTime,
    /// The time of the last change of bytes or metadata (`ctime`).
    pub changed: FileTime,
}

impl FileStamp {
    /// Returns the state of an open file. Does not ask a file server, so that it never waits.
    ///
    /// # Errors
    ///
    /// Returns an error if the file is not a regular file or its metadata cannot be read.
    pub fn of_file(file: &File) -> io::Result<Self> {
        Self::of_regular(file)?.ok_or_else(|| io::Error::other("not a regular file"))
    }

    /// Reports whether a later stamp of the file shows the same bytes. A file that was replaced by another one has lost its last name,
    /// which changes nothing but its `ctime`.
    #[must_use]
    pub fn holds(&self, later: &Self) -> bool {
        let replaced = Self { changed: later.changed, links: 0, ..*self };
        self == later || replaced == *later
    }

    /// Returns `None` for anything that is not a regular file.
    fn of_regular(file: &File) -> io::Result<Option<Self>> {
        let flags = AtFlags::EMPTY_PATH | AtFlags::STATX_DONT_SYNC;
        let wanted = StatxFlags::TYPE
            | StatxFlags::SIZE
            | StatxFlags::INO
            | StatxFlags::NLINK
            | StatxFlags::MTIME
            | StatxFlags::CTIME;
        let found = statx(file, "", flags, wanted)?;
        let is_regular = FileType::from_raw_mode(found.stx_mode.into()) == FileType::RegularFile;
        Ok(is_regular.then(|| Self {
            len: found.stx_size,
            device: makedev(found.stx_dev_major, found.stx_dev_minor),
            inode: found.stx_ino,
            links: found.stx_nlink.into(),
            modified: found.stx_mtime.into(),
            changed: found.stx_ctime.into(),
        }))
    }
}

impl From<&Metadata> for FileStamp {
    fn from(metadata: &Metadata) -> Self {
        Self {
            len: metadata.len(),
            device: metadata.dev(),
            inode: metadata.ino(),
            links: metadata.nlink(),
            modified: FileTime { seconds: metadata.mtime(), nanoseconds: metadata.mtime_nsec() },
            changed: FileTime { seconds: metadata.ctime(), nanoseconds: metadata.ctime_nsec() },
        }
    }
}

/// No lease is held: the stamp is compared each time.
const STAMPED: u8 = 0;
/// The lease is held, so the bytes cannot change.
const LEASED: u8 = 1;
/// The lease was given back. A source never leaves this state.
const REVOKED: u8 = 2;

/// What shows that the bytes of a source are unchanged.
#[derive(Debug, Default)]
pub(crate) struct Evidence {
    state: AtomicU8,
    lease: Mutex<Option<Lease>>,
    /// The stamp of the file when it was hashed.
    required: OnceLock<FileStamp>,
}

impl Evidence {
    fn lease(&self) -> MutexGuard<'_, Option<Lease>> {
        self.lease.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps the source from being revoked while the guard lives. Returns an error if bytes may not be mapped: they are revoked, or only
    /// the stamp shows that they are unchanged, which has to be compared after they were copied.
    pub(crate) fn hold_for_mapping(&self) -> io::Result<MutexGuard<'_, Option<Lease>>> {
        let held = self.lease();
        if self.allows_mapping() { Ok(held) } else { Err(io::ErrorKind::Unsupported.into()) }
    }

    pub(crate) fn allows_mapping(&self) -> bool {
        match self.state.load(Ordering::Acquire) {
            LEASED => true,
            STAMPED => self.required.get().is_none(),
            _ => false,
        }
    }
}

impl Source {
    /// Sets the stamp of the file when its bytes were hashed. The first one stays.
    pub fn require(&self, stamp: FileStamp) {
        self.evidence().required.get_or_init(|| stamp);
    }

    /// Takes a lease of the file that was acquired before any of its bytes were read. The caller must call [`revoke`](Self::revoke) soon
    /// after a process waits for the lease: the kernel takes it away after 45 seconds.
    pub fn protect(&self, lease: Lease) {
        let mut held = self.evidence().lease();
        if self.evidence().state.compare_exchange(STAMPED, LEASED, Ordering::SeqCst, Ordering::SeqCst).is_ok()
        {
            *held = Some(lease);
        }
    }

    /// Reports whether a process waits for the lease.
    #[must_use]
    pub fn is_lease_called_in(&self) -> bool {
        self.evidence().lease().as_ref().is_some_and(Lease::is_called_in)
    }

    /// Gives the lease back for good. Before that, [`stamp`](Self::stamp) begins to fail, and mapped bytes that were not copied yet become
    /// unreadable: a `write` of them fails with `EFAULT`.
    ///
    /// # Errors
    ///
    /// Returns an error if the kernel refuses to make mapped bytes unreadable. The lease is given back all the same.
    pub fn revoke(&self) -> io::Result<()> {
        let mut held = self.evidence().lease();
        let Some(lease) = held.take() else { return Ok(()) };
        self.evidence().state.store(REVOKED, Ordering::SeqCst);
        let forbidden = self.mapping().map_or(Ok(()), map::forbid);
        drop(lease);
        forbidden
    }

    /// Gives the lease back because its holder can no longer react to it. From now on the stamp shows whether the file is unchanged.
    pub fn unprotect(&self) {
        if self.evidence().lease().take().is_some() {
            self.evidence().state.store(STAMPED, Ordering::SeqCst);
        }
    }

    /// Reports whether a lease proves that the bytes are unchanged.
    #[must_use]
    pub fn is_leased(&self) -> bool {
        self.evidence().state.load(Ordering::Acquire) == LEASED
    }

    /// Returns the state of the file now. Two equal stamps show that the bytes read between them are those that were hashed. While a lease
    /// is held, and for anything that is not a regular file, it is a constant and costs no system call.
    ///
    /// # Errors
    ///
    /// Returns an error if the file is shorter than it was when it was opened, if its stamp is not the [required](Self::require) one, or if
    /// its lease was given back.
    pub fn stamp(&self) -> io::Result<FileStamp> {
        match self.evidence().state.load(Ordering::Acquire) {
            LEASED => Ok(FileStamp::default()),
            STAMPED => self.look(),
            _ => Err(self.changed()),
        }
    }

    fn look(&self) -> io::Result<FileStamp> {
        let found = self.as_file().map(FileStamp::of_regular).transpose()?.flatten();
        let Some(stamp) = found else { return Ok(FileStamp::default()) };
        if stamp.len < self.len() {
            return Err(self.ended(stamp.len));
        }
        match self.evidence().required.get() {
            Some(required) if !required.holds(&stamp) => Err(self.changed()),
            _ => Ok(stamp),
        }
    }

    fn changed(&self) -> io::Error {
        io::Error::other(format!("{} was changed or opened for writing after it was hashed", self.name()))
    }
}

#[cfg(test)]
mod tests {
    use std::fs::OpenOptions;
    use std::io::Write;
    use std::os::unix::fs::FileExt;
    use std::sync::Arc;

    use super::*;

    const LEN: usize = 64 << 10;

    /// A file that no process has open for writing.
    fn file() -> tempfile::TempPath {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(&[7; LEN]).unwrap();
        file.into_temp_path()
    }

    fn leased(path: &std::path::Path) -> Source {
        let source = Source::open(path).unwrap();
        source.protect(Lease::take(Arc::new(File::open(path).unwrap())).unwrap());
        source
    }

    #[test]
    fn file_that_got_shorter_is_an_error() {
        let path = file();
        let source = Source::open(&path).unwrap();
        let before = source.stamp().unwrap();
        assert_eq!(before, source.stamp().unwrap());
        OpenOptions::new().write(true).open(&path).unwrap().set_len(5).unwrap();
        assert_eq!(source.stamp().unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
    }

    #[test]
    fn write_with_restored_time_changes_the_stamp() {
        let path = file();
        let source = Source::open(&path).unwrap();
        let before = source.stamp().unwrap();
        source.require(before);
        let writer = OpenOptions::new().write(true).open(&path).unwrap();
        let modified = writer.metadata().unwrap().modified().unwrap();
        // On kernels before 6.13, two writes within one clock tick leave the same time.
        loop {
            writer.write_all_at(b"other", 9).unwrap();
            writer.set_modified(modified).unwrap();
            let stamp = FileStamp::of_file(&writer).unwrap();
            assert_eq!((stamp.len, stamp.modified, stamp.inode), (before.len, before.modified, before.inode));
            if stamp != before {
                break;
            }
        }
        assert!(source.stamp().unwrap_err().to_string().contains("after it was hashed"));
    }

    #[test]
    fn stamps_of_a_file_and_of_its_path_are_equal() {
        let path = file();
        let stamp = FileStamp::of_file(&File::open(&path).unwrap()).unwrap();
        assert_eq!(stamp, FileStamp::from(&std::fs::metadata(&path).unwrap()));
        assert!(FileStamp::of_file(&File::open("/").unwrap()).is_err());
    }

    #[test]
    fn replaced_file_keeps_its_bytes() {
        let path = file();
        let source = Source::open(&path).unwrap();
        source.require(source.stamp().unwrap());
        let before = source.stamp().unwrap();
        std::fs::rename(file().keep().unwrap(), &path).unwrap();
        assert!(before.holds(&source.stamp().unwrap()));
        let other = FileStamp::from(&std::fs::metadata(&path).unwrap());
        assert!(!before.holds(&other) && !other.holds(&before));
    }

    #[test]
    fn leased_file_needs_no_stamp_until_it_is_revoked() {
        let path = file();
        let source = leased(&path);
        source.require(FileStamp::default());
        assert!(source.is_leased() && source.stamp().is_ok() && !source.is_lease_called_in());
        source.revoke().unwrap();
        assert!(!source.is_leased() && source.stamp().is_err() && source.mapped().is_err());
        source.protect(Lease::take(Arc::new(File::open(&path).unwrap())).unwrap());
        assert!(source.stamp().is_err(), "a revoked source was accepted again");
    }

    #[test]
    fn stamp_is_compared_again_without_a_lease() {
        let path = file();
        let source = leased(&path);
        source.require(FileStamp::from(&std::fs::metadata(&path).unwrap()));
        source.mapped().unwrap();
        source.unprotect();
        assert_ne!(source.stamp().unwrap(), FileStamp::default());
        assert_eq!(source.mapped().unwrap_err().kind(), io::ErrorKind::Unsupported);
        std::fs::write(&path, [8; LEN + 1]).unwrap();
        assert!(source.stamp().is_err());
    }

    /// The bytes of a body may wait in a buffer of the HTTP library for as long as its client likes.
    #[test]
    fn mapped_bytes_of_a_revoked_source_cannot_be_written() {
        let path = file();
        let source = leased(&path);
        let bytes = source.mapped().unwrap().slice(100..200);
        let (_reader, mut writer) = io::pipe().unwrap();
        assert_eq!(writer.write(&bytes).unwrap(), 100);
        assert!(map::file_behind(&bytes).is_some());
        source.revoke().unwrap();
        assert_eq!(writer.write(&bytes).unwrap_err().raw_os_error(), Some(libc::EFAULT));
        assert!(map::file_behind(&bytes).is_none());
        OpenOptions::new().write(true).open(&path).unwrap();
    }

    #[test]
    fn memory_has_no_stamp() {
        assert_eq!(Source::from_bytes("memory", &b"abc"[..]).stamp().unwrap(), FileStamp::default());
    }
}
