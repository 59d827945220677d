//! The file of a base image, and the evidence that its bytes are unchanged since they were hashed.
//!
//! A [`BaseFile`] extends an [`isogen::Source`] for serving. It maps the file, so that the kernel can send the bytes
//! without a copy. It also checks that the file still has the hashed bytes, in one of two ways:
//!
//! A [`Lease`] proves it. The kernel grants a read lease only if no process has the file open or mapped for writing.
//! While the lease is held, the kernel delays every process that opens the file for writing. The holder then calls
//! [`BaseFile::revoke_lease`], which first ends every use of the bytes.
//!
//! A [`FileStamp`] is weaker evidence, for a file that cannot be leased. A process that already has the file open can
//! change it without a new stamp, while its mapped pages are dirty or while one long write is in progress. A replaced
//! file has a new stamp. The server then hashes the old file again, so that responses in progress can still be
//! completed from it.

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

/// The state without a lease: the stamp is compared instead.
const STAMPED: u8 = 0;
/// The state while the lease is held, so the bytes cannot change.
const LEASED: u8 = 1;
/// The state after the lease was revoked. This state is final.
const REVOKED: u8 = 2;

/// A time longer than any clock tick of the kernel. On kernels before 6.13, two changes within one tick have the same
/// timestamp.
const TICK: Duration = Duration::from_millis(20);

/// The file of a base image, with the evidence that its bytes are unchanged.
#[derive(Debug)]
pub(crate) struct BaseFile {
    source: Arc<Source>,
    mapped: OnceLock<FileMapping>,
    state: AtomicU8,
    lease: Mutex<Option<Lease>>,
    /// The stamp of the file at the time it was hashed.
    required: OnceLock<FileStamp>,
    /// The stamp after the file lost its last name and was hashed again. The inner `None` means that the bytes were
    /// different.
    nameless: OnceCell<Option<FileStamp>>,
    resident: OnceLock<ResidentPages>,
}

#[derive(Debug)]
struct FileMapping {
    mapping: Mapping,
    /// A handle to the same file, from which the kernel sends pages.
    pages: LendableFile,
}

impl BaseFile {
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

    /// Finds out whether the bytes of `extent` are in memory. Neither reads them nor waits for the disk.
    ///
    /// # Errors
    ///
    /// Returns an error if the source has no file, or if the file ends before the end of `extent`.
    #[inline]
    pub(crate) fn residency(&self, extent: Extent) -> io::Result<Residency> {
        self.resident_pages().residency(&self.source, extent)
    }

    /// Reads the bytes of `extent` into memory, and asks the kernel to read `next` at the same time. Waits for the
    /// disk.
    ///
    /// # Errors
    ///
    /// Returns an error if reading fails, or if the file ends before the end of `extent`.
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

    /// Returns the whole file as mapped bytes. The first call maps it. Only the kernel may read these bytes; code of
    /// this process must not (see [`isogen::mmap`]).
    ///
    /// # Errors
    ///
    /// Returns an error if the source has no file, if the system cannot map it, or if the lease was
    /// [revoked](Self::revoke_lease). Also returns an error if a [required](Self::require_stamp) stamp is the only
    /// evidence that the file is unchanged. The caller must then read the bytes and compare the stamp afterwards.
    #[inline]
    pub(crate) fn mapped_bytes(&self) -> io::Result<Bytes> {
        if let Some(mapped) = self.mapped.get().filter(|_| self.allows_mapping()) {
            return Ok(mapped.mapping.bytes().clone());
        }
        // With the lock, `revoke_lease` cannot miss the new mapping.
        let _guard = self.lock_lease();
        if !self.allows_mapping() {
            return Err(io::ErrorKind::Unsupported.into());
        }
        let file = self.source.as_file().ok_or(io::ErrorKind::Unsupported)?;
        let pages = LendableFile::new(file.try_clone()?);
        let mapped = FileMapping { mapping: mmap::map_file(file)?, pages };
        Ok(self.mapped.get_or_init(|| mapped).mapping.bytes().clone())
    }

    /// Returns the file and the offset in it for a slice of the mapping, so that the kernel can send the pages. Returns
    /// `None` if `bytes` is not part of this mapping, or if the lease was revoked.
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

    /// Sets the stamp that the file must have: its stamp when it was hashed. Later calls have no effect.
    pub(crate) fn require_stamp(&self, stamp: FileStamp) {
        self.required.get_or_init(|| stamp);
    }

    /// Returns `true` if a stamp is [required](Self::require_stamp).
    #[inline]
    pub(crate) fn is_stamp_required(&self) -> bool {
        self.required.get().is_some()
    }

    /// Returns `true` if [`stamp`](Self::stamp) fails only because the last name of the file was removed and the file
    /// was not hashed again since.
    pub(crate) fn needs_rehash(&self) -> bool {
        if self.state.load(Ordering::Acquire) != STAMPED || self.nameless.initialized() {
            return false;
        }
        let (Some(required), Some(file)) = (self.required.get(), self.source.as_file()) else { return false };
        FileStamp::from_file(file).is_ok_and(|stamp| required.has_lost_last_name(&stamp))
    }

    /// Hashes the file again after its last name was removed. All callers share one run. If the bytes are the same as
    /// before, [`stamp`](Self::stamp) accepts the stamp that the file has now, but no later one.
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

    /// Returns the current stamp if the file has no name any more and still has the bytes of the first hash.
    fn find_nameless_stamp(&self) -> io::Result<Option<FileStamp>> {
        let (Some(required), Some(file)) = (self.required.get(), self.source.as_file()) else {
            return Ok(None);
        };
        let stamp = FileStamp::from_file(file)?;
        // Wait one clock tick, so that any later write changes the `ctime`, even right after another change.
        thread::sleep(TICK);
        // A new `Source`, because `self.source` would return the digest that it has cached.
        let hashed = Source::new(self.source.name().to_owned(), self.source.len(), file.try_clone()?);
        let has_same_bytes =
            hashed.digest().map_err(io::Error::other)? == self.source.digest().map_err(io::Error::other)?;
        let is_settled = required.has_lost_last_name(&stamp) && FileStamp::from_file(file)? == stamp;
        Ok(Some(stamp).filter(|_| has_same_bytes && is_settled))
    }

    /// Stores a lease acquired before any byte of the file was read. When a process waits for the lease, the
    /// caller must call [`revoke_lease`](Self::revoke_lease) soon: the kernel removes the lease after 45 seconds.
    pub(crate) fn hold_lease(&self, lease: Lease) {
        let mut slot = self.lock_lease();
        if self.state.compare_exchange(STAMPED, LEASED, Ordering::SeqCst, Ordering::SeqCst).is_ok() {
            *slot = Some(lease);
        }
    }

    /// Returns `true` if a process waits for the lease.
    pub(crate) fn is_lease_breaking(&self) -> bool {
        self.lock_lease().as_ref().is_some_and(Lease::is_breaking)
    }

    /// Returns the lease to the kernel for good. Before that, [`stamp`](Self::stamp) starts to fail, and mapped bytes
    /// that are not yet copied become unreadable: a `write` of them fails with `EFAULT`.
    ///
    /// # Errors
    ///
    /// Returns an error if the kernel cannot make the mapped bytes unreadable. The lease is returned in any case.
    pub(crate) fn revoke_lease(&self) -> io::Result<()> {
        let mut slot = self.lock_lease();
        let Some(lease) = slot.take() else { return Ok(()) };
        self.state.store(REVOKED, Ordering::SeqCst);
        let result = self.mapped.get().map_or(Ok(()), |mapped| mapped.mapping.revoke_access());
        drop(lease);
        result
    }

    /// Returns the lease to the kernel because its holder can no longer react when a process waits for it. From now on,
    /// the stamp is compared instead.
    pub(crate) fn abandon_lease(&self) {
        if self.lock_lease().take().is_some() {
            self.state.store(STAMPED, Ordering::SeqCst);
        }
    }

    /// Returns `true` if a lease proves that the bytes are unchanged.
    #[inline]
    pub(crate) fn is_leased(&self) -> bool {
        self.state.load(Ordering::Acquire) == LEASED
    }

    /// Returns the current stamp of the file. If two stamps are equal, the bytes read in between are the hashed ones.
    /// While a lease is held, or if the source is not a regular file, the stamp is a constant and needs no system call.
    ///
    /// # Errors
    ///
    /// Returns an error if the file is shorter than when it was opened, if its stamp is not the
    /// [required](Self::require_stamp) one, or if its lease was revoked.
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
        let stamp = self.source.as_file().map(FileStamp::from_regular_file).transpose()?.flatten();
        let Some(stamp) = stamp else { return Ok(FileStamp::default()) };
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

    /// A temporary file that no process has open for writing.
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
    fn rejects_truncated_file() {
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
        // Repeat the write until the stamp changes: on kernels before 6.13, two writes within one clock tick have the
        // same timestamp.
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

    /// Opens a hashed file that cannot be leased.
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
        // The file has no more names, so another change of the `ctime` may be caused by a write.
        write_with_restored_time(&writer);
        assert!(base.stamp().is_err() && !base.needs_rehash());
    }

    #[tokio::test]
    async fn file_written_before_its_removal_has_other_bytes() {
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

    /// hyper may buffer the bytes of a body as long as the client reads nothing.
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
