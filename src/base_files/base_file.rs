//! The file of a base image as the server sends it.
//!
//! A [`BaseFile`] adds to an [`isogen::Source`] what serving needs: a mapping whose bytes the kernel sends without a
//! copy, and the evidence that the bytes are still those that were hashed.
//!
//! A [`Lease`] proves that the bytes are unchanged. The kernel grants a read lease only if no process has the file open
//! for writing, which includes processes that have it mapped, and lets no process open it for writing before the lease
//! is given back. The holder gives it back with [`BaseFile::revoke_lease`], which first ends every use of the bytes.
//!
//! A [`FileStamp`] is the evidence for a file that cannot be leased. It is weaker. A process that already has the file
//! open changes it without any sign as long as the pages that it has mapped are dirty, or while one long write is in
//! progress. A file that was replaced by another one has a new stamp. It is hashed again, so that answers that have
//! begun can end with its bytes.

use std::io;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;
use std::time::Duration;

use bytes::Bytes;
use isogen::mmap::{self, Mapping};
use isogen::{Extent, FileStamp, Source};
use tokio::sync::OnceCell;

use super::lease::Lease;
use super::lending::LendableFile;
use super::residency::{Residency, ResidentPages, advise_will_need, truncated_error};

/// No lease is held: the stamp is compared each time.
const STAMPED: u8 = 0;
/// The lease is held, so the bytes cannot change.
const LEASED: u8 = 1;
/// The lease was given back. A file never leaves this state.
const REVOKED: u8 = 2;

/// Longer than the longest clock tick. On kernels before 6.13, two changes within one tick have the same time.
const TICK: Duration = Duration::from_millis(20);

/// The file of a base image.
#[derive(Debug)]
pub(crate) struct BaseFile {
    source: Arc<Source>,
    mapped: OnceLock<FileMapping>,
    state: AtomicU8,
    lease: Mutex<Option<Lease>>,
    /// The stamp of the file when it was hashed.
    required: OnceLock<FileStamp>,
    /// The stamp without a name, once the file was hashed again; the inner `None` if its bytes were changed.
    nameless: OnceCell<Option<FileStamp>>,
    resident: OnceLock<ResidentPages>,
}

/// A mapping of the whole file.
#[derive(Debug)]
struct FileMapping {
    mapping: Mapping,
    /// The same file, for the kernel to take pages from.
    pages: LendableFile,
}

impl BaseFile {
    /// Returns the file behind a source.
    pub(crate) fn new(source: Arc<Source>) -> Self {
        Self {
            source,
            mapped: OnceLock::new(),
            state: AtomicU8::new(STAMPED),
            lease: Mutex::default(),
            required: OnceLock::new(),
            nameless: OnceCell::new(),
            resident: OnceLock::new(),
        }
    }

    #[inline]
    pub(crate) fn source(&self) -> &Arc<Source> {
        &self.source
    }

    /// Reports whether bytes are in memory. Reads nothing and waits for nothing.
    ///
    /// # Errors
    ///
    /// Returns an error if the source has no file, or if the file ends before `extent` does.
    #[inline]
    pub(crate) fn residency(&self, extent: Extent) -> io::Result<Residency> {
        self.resident_pages().residency(&self.source, extent)
    }

    /// Brings bytes into memory and asks the kernel to read `next` meanwhile. Waits for the disk.
    ///
    /// # Errors
    ///
    /// Returns the error of the storage, or an error if the file ends before `extent` does.
    pub(crate) fn read_ahead(&self, extent: Extent, next: Option<Extent>) -> Result<(), isogen::Error> {
        if let Some(next) = next {
            advise_will_need(&self.source, next);
        }
        self.resident_pages().read_ahead(&self.source, extent)
    }

    #[inline]
    fn resident_pages(&self) -> &ResidentPages {
        self.resident.get_or_init(|| ResidentPages::new(self.source.len()))
    }

    fn lock_lease(&self) -> MutexGuard<'_, Option<Lease>> {
        self.lease.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the whole file as mapped bytes, mapped on first use. They are for the kernel; no code of this process
    /// may look at them (see [`isogen::mmap`]).
    ///
    /// # Errors
    ///
    /// Returns an error if the source has no file, if the system cannot map it, if its lease was [given
    /// back](Self::revoke_lease), or if a [required](Self::require_stamp) stamp is the only evidence that it is
    /// unchanged: such bytes are read, and the stamp is compared after that.
    #[inline]
    pub(crate) fn mapped_bytes(&self) -> io::Result<Bytes> {
        if let Some(mapped) = self.mapped.get().filter(|_| self.allows_mapping()) {
            return Ok(mapped.mapping.bytes().clone());
        }
        // Holding the lock keeps `revoke` from missing the new mapping.
        let _held = self.lock_lease();
        if !self.allows_mapping() {
            return Err(io::ErrorKind::Unsupported.into());
        }
        let file = self.source.as_file().ok_or(io::ErrorKind::Unsupported)?;
        let pages = LendableFile::new(file.try_clone()?);
        let mapped = FileMapping { mapping: mmap::map_file(file)?, pages };
        Ok(self.mapped.get_or_init(|| mapped).mapping.bytes().clone())
    }

    /// Returns the file and the offset of mapped bytes in it, for the kernel to send its pages. `None` if the bytes are
    /// not of this mapping, or the lease was given back.
    pub(crate) fn file_pages(&self, bytes: &[u8]) -> Option<(&LendableFile, u64)> {
        let mapped = self.mapped.get().filter(|_| self.allows_mapping())?;
        let start = bytes.as_ptr().addr().checked_sub(mapped.mapping.bytes().as_ptr().addr())?;
        let end = start.checked_add(bytes.len())?;
        (end <= mapped.mapping.bytes().len()).then_some((&mapped.pages, start as u64))
    }

    #[inline]
    fn allows_mapping(&self) -> bool {
        match self.state.load(Ordering::Acquire) {
            LEASED => true,
            STAMPED => self.required.get().is_none(),
            _ => false,
        }
    }

    /// Sets the stamp of the file when its bytes were hashed. The first one stays.
    pub(crate) fn require_stamp(&self, stamp: FileStamp) {
        self.required.get_or_init(|| stamp);
    }

    /// Reports whether a stamp is [required](Self::require_stamp).
    #[inline]
    pub(crate) fn is_stamp_required(&self) -> bool {
        self.required.get().is_some()
    }

    /// Reports whether [`stamp`](Self::stamp) fails only because the file has lost its last name and was not hashed
    /// since.
    pub(crate) fn needs_rehash(&self) -> bool {
        if self.state.load(Ordering::Acquire) != STAMPED || self.nameless.initialized() {
            return false;
        }
        let (Some(required), Some(file)) = (self.required.get(), self.source.as_file()) else { return false };
        FileStamp::from_file(file).is_ok_and(|stamp| required.has_lost_last_name(&stamp))
    }

    /// Hashes a file that has lost its last name, once for all callers. If it has the same bytes as before,
    /// [`stamp`](Self::stamp) accepts its new state from now on, and no later one.
    ///
    /// # Errors
    ///
    /// Returns an error if the file cannot be read.
    pub(crate) async fn rehash(self: Arc<Self>) -> io::Result<()> {
        let hashed = self.nameless.get_or_try_init(async || {
            let file = Arc::clone(&self);
            tokio::task::spawn_blocking(move || file.find_nameless_stamp()).await.map_err(io::Error::other)?
        });
        hashed.await.map(drop)
    }

    /// Returns the stamp of the file if it has no name and the bytes that were hashed before.
    fn find_nameless_stamp(&self) -> io::Result<Option<FileStamp>> {
        let (Some(required), Some(file)) = (self.required.get(), self.source.as_file()) else {
            return Ok(None);
        };
        let stamp = FileStamp::from_file(file)?;
        // A write from now on changes the `ctime`, even if it follows another change.
        thread::sleep(TICK);
        // A new source: this one returns the digest that it already has.
        let hashed = Source::new(self.source.name().to_owned(), self.source.len(), file.try_clone()?);
        let has_same_bytes =
            hashed.digest().map_err(io::Error::other)? == self.source.digest().map_err(io::Error::other)?;
        let is_settled = required.has_lost_last_name(&stamp) && FileStamp::from_file(file)? == stamp;
        Ok(Some(stamp).filter(|_| has_same_bytes && is_settled))
    }

    /// Takes a lease of the file that was acquired before any of its bytes were read. The caller must call
    /// [`revoke_lease`](Self::revoke_lease) soon after a process waits for the lease: the kernel takes it away after 45
    /// seconds.
    pub(crate) fn hold_lease(&self, lease: Lease) {
        let mut held = self.lock_lease();
        if self.state.compare_exchange(STAMPED, LEASED, Ordering::SeqCst, Ordering::SeqCst).is_ok() {
            *held = Some(lease);
        }
    }

    /// Reports whether a process waits for the lease.
    pub(crate) fn is_lease_breaking(&self) -> bool {
        self.lock_lease().as_ref().is_some_and(Lease::is_breaking)
    }

    /// Gives the lease back for good. Before that, [`stamp`](Self::stamp) begins to fail, and mapped bytes that were
    /// not copied yet become unreadable: a `write` of them fails with `EFAULT`.
    ///
    /// # Errors
    ///
    /// Returns an error if the kernel refuses to make mapped bytes unreadable. The lease is given back all the same.
    pub(crate) fn revoke_lease(&self) -> io::Result<()> {
        let mut held = self.lock_lease();
        let Some(lease) = held.take() else { return Ok(()) };
        self.state.store(REVOKED, Ordering::SeqCst);
        let forbidden = self.mapped.get().map_or(Ok(()), |mapped| mapped.mapping.revoke_access());
        drop(lease);
        forbidden
    }

    /// Gives the lease back because its holder can no longer react to it. From now on the stamp shows whether the file
    /// is unchanged.
    pub(crate) fn abandon_lease(&self) {
        if self.lock_lease().take().is_some() {
            self.state.store(STAMPED, Ordering::SeqCst);
        }
    }

    /// Reports whether a lease proves that the bytes are unchanged.
    #[inline]
    pub(crate) fn is_leased(&self) -> bool {
        self.state.load(Ordering::Acquire) == LEASED
    }

    /// Returns the state of the file now. Two equal stamps show that the bytes read between them are those that were
    /// hashed. While a lease is held, and for anything that is not a regular file, it is a constant and costs no system
    /// call.
    ///
    /// # Errors
    ///
    /// Returns an error if the file is shorter than it was when it was opened, if its stamp is not the
    /// [required](Self::require_stamp) one, or if its lease was given back.
    #[inline]
    pub(crate) fn stamp(&self) -> io::Result<FileStamp> {
        match self.state.load(Ordering::Acquire) {
            LEASED => Ok(FileStamp::default()),
            STAMPED => self.current_stamp(),
            _ => Err(self.changed_error()),
        }
    }

    #[inline]
    fn current_stamp(&self) -> io::Result<FileStamp> {
        let found = self.source.as_file().map(FileStamp::from_regular_file).transpose()?.flatten();
        let Some(stamp) = found else { return Ok(FileStamp::default()) };
        if stamp.len < self.source.len() {
            return Err(truncated_error(&self.source, stamp.len));
        }
        let is_accepted = self.required.get().is_none_or(|required| {
            *required == stamp || self.nameless.get().is_some_and(|nameless| *nameless == Some(stamp))
        });
        if is_accepted { Ok(stamp) } else { Err(self.changed_error()) }
    }

    fn changed_error(&self) -> io::Error {
        let name = self.source.name();
        io::Error::other(format!("{name} was changed or opened for writing after it was hashed"))
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{File, OpenOptions};
    use std::io::Write;
    use std::os::unix::fs::FileExt;
    use std::path::Path;

    use super::*;

    const LEN: usize = 64 << 10;

    /// A file that no process has open for writing.
    fn temp_file() -> tempfile::TempPath {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(&[7; LEN]).unwrap();
        file.into_temp_path()
    }

    fn open_base(path: &Path) -> BaseFile {
        BaseFile::new(Arc::new(Source::open(path).unwrap()))
    }

    fn open_leased(path: &Path) -> BaseFile {
        let base = open_base(path);
        base.hold_lease(Lease::acquire(Arc::new(File::open(path).unwrap())).unwrap());
        base
    }

    #[test]
    fn rejects_a_file_that_got_shorter() {
        let path = temp_file();
        let base = open_base(&path);
        let before = base.stamp().unwrap();
        assert_eq!(before, base.stamp().unwrap());
        OpenOptions::new().write(true).open(&path).unwrap().set_len(5).unwrap();
        assert_eq!(base.stamp().unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
    }

    #[test]
    fn write_with_restored_time_changes_the_stamp() {
        let path = temp_file();
        let base = open_base(&path);
        let before = base.stamp().unwrap();
        base.require_stamp(before);
        let writer = OpenOptions::new().write(true).open(&path).unwrap();
        let modified = writer.metadata().unwrap().modified().unwrap();
        // On kernels before 6.13, two writes within one clock tick leave the same time.
        loop {
            writer.write_all_at(b"other", 9).unwrap();
            writer.set_modified(modified).unwrap();
            let stamp = FileStamp::from_file(&writer).unwrap();
            assert_eq!((stamp.len, stamp.modified, stamp.inode), (before.len, before.modified, before.inode));
            if stamp != before {
                break;
            }
        }
        assert!(base.stamp().unwrap_err().to_string().contains("after it was hashed"));
    }

    /// A file that was hashed and cannot be leased.
    fn open_hashed(path: &Path) -> Arc<BaseFile> {
        let base = open_base(path);
        base.source().digest().unwrap();
        base.require_stamp(base.stamp().unwrap());
        Arc::new(base)
    }

    /// Writes other bytes of the same length, and restores the same `mtime`.
    fn write_with_restored_time(writer: &File) {
        let modified = writer.metadata().unwrap().modified().unwrap();
        writer.write_all_at(b"other", 9).unwrap();
        writer.set_modified(modified).unwrap();
    }

    #[tokio::test]
    async fn replaced_file_keeps_its_bytes() {
        let path = temp_file();
        let base = open_hashed(&path);
        let writer = OpenOptions::new().write(true).open(&path).unwrap();
        let before = base.stamp().unwrap();
        std::fs::rename(temp_file().keep().unwrap(), &path).unwrap();
        assert!(base.stamp().is_err() && base.needs_rehash(), "not hashed yet");
        Arc::clone(&base).rehash().await.unwrap();
        assert!(before.has_lost_last_name(&base.stamp().unwrap()) && !base.needs_rehash());
        let other = FileStamp::from(&std::fs::metadata(&path).unwrap());
        assert!(!before.has_lost_last_name(&other) && !other.has_lost_last_name(&before));
        // The file has no more names, so another change of the `ctime` may be a write.
        write_with_restored_time(&writer);
        assert!(base.stamp().is_err() && !base.needs_rehash());
    }

    #[tokio::test]
    async fn file_that_is_written_and_deleted_has_other_bytes() {
        let path = temp_file();
        let base = open_hashed(&path);
        let before = base.stamp().unwrap();
        let writer = OpenOptions::new().write(true).open(&path).unwrap();
        write_with_restored_time(&writer);
        path.close().unwrap();
        assert!(before.has_lost_last_name(&FileStamp::from_file(&writer).unwrap()));
        assert!(base.stamp().is_err() && base.needs_rehash());
        Arc::clone(&base).rehash().await.unwrap();
        assert!(base.stamp().is_err() && !base.needs_rehash());
    }

    #[test]
    fn stamp_is_not_compared_until_the_lease_is_revoked() {
        let path = temp_file();
        let base = open_leased(&path);
        base.require_stamp(FileStamp::default());
        assert!(base.is_leased() && base.stamp().is_ok() && !base.is_lease_breaking());
        base.revoke_lease().unwrap();
        assert!(!base.is_leased() && base.stamp().is_err() && base.mapped_bytes().is_err());
        base.hold_lease(Lease::acquire(Arc::new(File::open(&path).unwrap())).unwrap());
        assert!(base.stamp().is_err(), "a revoked source was accepted again");
    }

    #[test]
    fn stamp_is_compared_again_without_a_lease() {
        let path = temp_file();
        let base = open_leased(&path);
        base.require_stamp(FileStamp::from(&std::fs::metadata(&path).unwrap()));
        base.mapped_bytes().unwrap();
        base.abandon_lease();
        assert_ne!(base.stamp().unwrap(), FileStamp::default());
        assert_eq!(base.mapped_bytes().unwrap_err().kind(), io::ErrorKind::Unsupported);
        std::fs::write(&path, [8; LEN + 1]).unwrap();
        assert!(base.stamp().is_err());
    }

    #[test]
    fn only_mapped_bytes_have_pages() {
        let [first, second] = [temp_file(), temp_file()];
        let [first, second] = [open_base(&first), open_base(&second)];
        let [bytes, other] = [first.mapped_bytes().unwrap(), second.mapped_bytes().unwrap()];
        let (pages, offset) = first.file_pages(&bytes.slice(4000..9000)).unwrap();
        assert_eq!((pages.file().metadata().unwrap().len(), offset), (LEN as u64, 4000));
        assert!(Arc::ptr_eq(pages.file(), first.file_pages(&bytes).unwrap().0.file()));
        assert_eq!(first.file_pages(&bytes.slice(LEN..)).unwrap().1, LEN as u64);
        assert!(first.file_pages(&other).is_none() && first.file_pages(&[0; 9]).is_none());
    }

    /// The bytes of a body may wait in a buffer of hyper as long as the client reads nothing.
    #[test]
    fn mapped_bytes_of_a_revoked_file_cannot_be_written() {
        let path = temp_file();
        let base = open_leased(&path);
        let bytes = base.mapped_bytes().unwrap().slice(100..200);
        let (_reader, mut writer) = io::pipe().unwrap();
        assert_eq!(writer.write(&bytes).unwrap(), 100);
        assert!(base.file_pages(&bytes).is_some());
        base.revoke_lease().unwrap();
        assert_eq!(writer.write(&bytes).unwrap_err().raw_os_error(), Some(libc::EFAULT));
        assert!(base.file_pages(&bytes).is_none());
        OpenOptions::new().write(true).open(&path).unwrap();
    }

    #[test]
    fn base_in_memory_has_no_stamp() {
        let memory = BaseFile::new(Arc::new(Source::from_bytes("memory", &b"abc"[..])));
        assert_eq!(memory.stamp().unwrap(), FileStamp::default());
    }
}
