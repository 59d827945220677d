//! Creates files that appear only when they are complete.
//!
//! A [`NewFile`] has no name until it is committed. If the file system supports unnamed files, it does not even have a
//! temporary name, so a killed process leaves no file behind. A new file never replaces an existing one.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Mode, OFlags, SeekFrom};
use rustix::io::Errno;

use super::full_disk::explain_full_disk;
use super::stream::{BUFFER_LEN, write_zeros};
use crate::bytes_at::prefix_mut;
use crate::error::{Error, Result};
use crate::extent::Extent;
use crate::plan::{PlacedSegment, Plan, Segment};
use crate::source::Source;

/// The users who may read a new file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum FileAccess {
    /// Only the owner, because customised images may contain secrets.
    Private,
    /// All users, as far as the umask of the process allows: mode 0644 with the usual umask 022.
    Shared,
}

impl FileAccess {
    fn mode(self) -> u32 {
        match self {
            Self::Private => 0o600,
            Self::Shared => 0o666,
        }
    }
}

/// A file under construction. If it is dropped before [`commit`](Self::commit), no file appears.
#[derive(Debug)]
pub struct NewFile {
    path: PathBuf,
    file: File,
    /// The temporary name on file systems that do not support unnamed files.
    temporary: Option<tempfile::TempPath>,
}

impl NewFile {
    /// Creates the file without a name.
    ///
    /// # Errors
    ///
    /// Returns an error if the name already exists, or if the directory cannot be written.
    pub fn create(path: impl Into<PathBuf>, access: FileAccess) -> Result<Self> {
        let path = path.into();
        Self::create_unnamed(&path, access)
            .map_err(|source| Error::Write { file: path.display().to_string(), source })
    }

    fn create_unnamed(path: &Path, access: FileAccess) -> io::Result<Self> {
        if path.as_os_str().is_empty() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "the name of the file is empty"));
        }
        // Report the conflict before the plan is written. `commit` checks again.
        if path.symlink_metadata().is_ok() {
            return Err(Errno::EXIST.into());
        }
        let path = path.to_owned();
        let folder = match path.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        };
        let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
        match rustix::fs::open(folder, flags, Mode::from_raw_mode(access.mode())) {
            Ok(file) => Ok(Self { path, file: file.into(), temporary: None }),
            Err(Errno::OPNOTSUPP | Errno::INVAL | Errno::ISDIR) => {
                let mode = std::fs::Permissions::from_mode(access.mode());
                let mut builder = tempfile::Builder::new();
                let file_with_name = builder.prefix(".kindling-").permissions(mode).tempfile_in(folder)?;
                let (file, temporary) = file_with_name.into_parts();
                Ok(Self { path, file, temporary: Some(temporary) })
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Returns the open file, to which the caller may write.
    #[must_use]
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Writes a plan to the start of the file.
    ///
    /// If the file system can share blocks, base bytes are cloned; otherwise the kernel copies them. Zeros become
    /// holes.
    ///
    /// # Errors
    ///
    /// Returns an error if the base image cannot be read or the file cannot be written.
    pub fn write_plan(&self, plan: &Plan) -> Result<()> {
        self.write_plan_with_progress(plan, &mut |_| {})
    }

    /// Writes a plan like [`write_plan`](Self::write_plan). During the work, it calls `on_progress` with the number of
    /// bytes written so far.
    ///
    /// # Errors
    ///
    /// Returns an error if the base image cannot be read or the file cannot be written.
    pub fn write_plan_with_progress(&self, plan: &Plan, on_progress: &mut dyn FnMut(u64)) -> Result<()> {
        let result = self.write_segments(plan, on_progress);
        result.map_err(|error| self.write_error(explain_full_disk(error, &self.file, plan.len())))?;
        on_progress(plan.len());
        Ok(())
    }

    /// Links the file to its name, so that the file appears.
    ///
    /// # Errors
    ///
    /// Returns an error if another file with that name exists.
    pub fn commit(mut self) -> Result<()> {
        let linked = match self.temporary.take() {
            Some(temporary) => temporary.persist_noclobber(&self.path).map_err(|error| error.error),
            None => self.link_name(),
        };
        linked.map_err(|source| self.write_error(source))
    }

    fn link_name(&self) -> io::Result<()> {
        let unnamed = format!("/proc/self/fd/{}", self.file.as_raw_fd());
        Ok(rustix::fs::linkat(CWD, unnamed, CWD, &self.path, AtFlags::SYMLINK_FOLLOW)?)
    }

    fn write_error(&self, source: io::Error) -> Error {
        Error::Write { file: self.path.display().to_string(), source }
    }

    fn write_segments(&self, plan: &Plan, on_progress: &mut dyn FnMut(u64)) -> io::Result<()> {
        let shares_blocks = self.try_share_blocks(plan);
        if !shares_blocks {
            self.file.set_len(plan.len())?;
        }
        let mut copy =
            BaseCopier { source: plan.source(), file: &self.file, can_copy_in_kernel: true, on_progress };
        for PlacedSegment { start, segment } in plan.layout() {
            match segment {
                Segment::Base(_) if shares_blocks => {}
                Segment::Base(extent) => copy.copy_extent(*extent, *start)?,
                Segment::Bytes(bytes) => self.file.write_all_at(bytes, *start)?,
                Segment::Zero(len) if shares_blocks => {
                    write_zeros(*start, *len, |zeros, at| self.file.write_all_at(zeros, at))?;
                }
                Segment::Zero(_) => {}
            }
        }
        Ok(())
    }

    /// Makes the file share all blocks with the base image. Returns `false` if the plan moves bytes or if the file
    /// system cannot share blocks.
    fn try_share_blocks(&self, plan: &Plan) -> bool {
        let base = plan.source().as_file().filter(|_| plan.changes_in_place().is_ok());
        base.is_some_and(|base| rustix::fs::ioctl_ficlone(&self.file, base).is_ok())
    }
}

impl Plan {
    /// Writes all bytes to a new file with mode 0600, because customised images may contain secrets. The file appears
    /// when it is complete.
    ///
    /// [`write_file_with`](Self::write_file_with) writes files that other users may read, such as the kernel for a TFTP
    /// server.
    ///
    /// # Errors
    ///
    /// Returns an error if the name already exists, the base image cannot be read, or the file cannot be written. After
    /// an error, no file appears.
    pub fn write_file(&self, path: impl Into<PathBuf>) -> Result<()> {
        self.write_file_with(path, FileAccess::Private)
    }

    /// Writes all bytes to a new file that the users in `access` may read. The file appears when it is complete.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`write_file`](Self::write_file).
    ///
    /// # Examples
    ///
    /// ```no_run
    /// use isogen::BaseImage;
    /// use isogen::write::FileAccess;
    ///
    /// let image = BaseImage::open("fedora-coreos.iso")?;
    /// image.kernel()?.write_file_with("/srv/tftp/vmlinuz", FileAccess::Shared)?;
    /// # Ok::<(), isogen::Error>(())
    /// ```
    pub fn write_file_with(&self, path: impl Into<PathBuf>, access: FileAccess) -> Result<()> {
        let file = NewFile::create(path, access)?;
        file.write_plan(self)?;
        file.commit()
    }
}

/// Copies base bytes to a file in which all bytes are holes.
struct BaseCopier<'a> {
    source: &'a Source,
    file: &'a File,
    /// `false` after the kernel has refused to copy.
    can_copy_in_kernel: bool,
    /// Called with the number of bytes written so far.
    on_progress: &'a mut dyn FnMut(u64),
}

/// Number of bytes that the kernel copies between two calls of `on_progress`.
const COPY_STEP: u64 = 64 << 20;

impl BaseCopier<'_> {
    fn copy_extent(&mut self, extent: Extent, to: u64) -> io::Result<()> {
        let mut at = extent.offset();
        while at < extent.end() {
            let Some((start, end)) = self.next_data_range(at, extent.end()) else { break };
            let data = extent.slice(start - extent.offset()..end - extent.offset());
            self.copy_data(data, to + (start - extent.offset()))?;
            at = end;
        }
        Ok(())
    }

    /// Returns the next range of data (not a hole) of the base image between `from` and `end`, or `None` if only a hole
    /// remains.
    fn next_data_range(&self, from: u64, end: u64) -> Option<(u64, u64)> {
        let Some(base) = self.source.as_file() else { return Some((from, end)) };
        // This moves the shared file position, which is harmless because all reads of the base image specify their
        // offset.
        let start = match rustix::fs::seek(base, SeekFrom::Data(from)) {
            Ok(start) => start,
            Err(Errno::NXIO) => return None,
            Err(_) => return Some((from, end)),
        };
        // If the system does not report the end of the data, treat all bytes as data.
        let hole = rustix::fs::seek(base, SeekFrom::Hole(start)).unwrap_or(end);
        (start < end).then_some((start, hole.min(end)))
    }

    fn copy_data(&mut self, data: Extent, to: u64) -> io::Result<()> {
        let mut done = 0;
        if let Some(base) = self.source.as_file() {
            while self.can_copy_in_kernel && done < data.len() {
                let step = COPY_STEP.min(data.len() - done);
                done += self.copy_in_kernel(base, data.offset() + done, to + done, step);
                (self.on_progress)(to + done);
            }
        }
        let mut buf = vec![0; BUFFER_LEN];
        while done < data.len() {
            let chunk = prefix_mut(&mut buf, data.len() - done);
            self.source.read_exact_at(chunk, data.offset() + done).map_err(io::Error::other)?;
            self.file.write_all_at(chunk, to + done)?;
            done += chunk.len() as u64;
            (self.on_progress)(to + done);
        }
        Ok(())
    }

    /// Copies in the kernel and returns the number of copied bytes. If the number is 0, the caller must copy through
    /// its buffer.
    fn copy_in_kernel(&mut self, base: &File, mut from: u64, mut to: u64, len: u64) -> u64 {
        // The kernel limits the length of one copy, so the saturation has no effect.
        let len = usize::try_from(len).unwrap_or(usize::MAX);
        match rustix::fs::copy_file_range(base, Some(&mut from), self.file, Some(&mut to), len) {
            Ok(copied @ 1..) => copied as u64,
            _ => {
                self.can_copy_in_kernel = false;
                0
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::plan::Patch;

    fn plan() -> Plan {
        let base: Vec<u8> = (0..300_000_u32).map(|index| (index % 251) as u8).collect();
        let source = Arc::new(Source::from_bytes("base", base));
        let patch = Patch { offset: 70_001, segment: Segment::Bytes(vec![7; 5000].into()) };
        Plan::from_source(source).patched(vec![patch]).unwrap().followed_by([Segment::Zero(9000)])
    }

    #[test]
    fn new_file_has_the_bytes_of_the_plan() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out");
        plan().write_file(&path).unwrap();
        let mut streamed = Vec::new();
        plan().write_to(&mut streamed).unwrap();
        assert!(std::fs::read(&path).unwrap() == streamed);
    }

    #[test]
    fn only_shared_files_are_readable_by_other_users() {
        let folder = tempfile::tempdir().unwrap();
        // The mode of another new file shows which bits the umask of the process allows.
        std::fs::write(folder.path().join("umask"), "").unwrap();
        plan().write_file(folder.path().join("private")).unwrap();
        plan().write_file_with(folder.path().join("shared"), FileAccess::Shared).unwrap();
        let mode =
            |name: &str| std::fs::metadata(folder.path().join(name)).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode("private"), mode("shared")), (0o600, mode("umask")));
    }

    #[test]
    fn rejects_existing_names_and_keeps_their_files() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out");
        std::fs::write(&path, "mine").unwrap();
        let error = plan().write_file(&path).unwrap_err();
        assert!(
            matches!(&error, Error::Write { source, .. } if source.kind() == io::ErrorKind::AlreadyExists)
        );
        let late = NewFile::create(folder.path().join("late"), FileAccess::Private).unwrap();
        std::fs::write(folder.path().join("late"), "other").unwrap();
        assert!(late.commit().is_err());
        assert_eq!(std::fs::read(folder.path().join("late")).unwrap(), b"other");
        assert_eq!(std::fs::read(path).unwrap(), b"mine");
    }

    #[test]
    fn uncommitted_file_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let file = NewFile::create(folder.path().join("out"), FileAccess::Private).unwrap();
        file.write_plan(&plan()).unwrap();
        drop(file);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn holes_of_the_base_stay_zero() {
        let folder = tempfile::tempdir().unwrap();
        let base = File::create(folder.path().join("base")).unwrap();
        base.set_len(4 << 20).unwrap();
        base.write_all_at(b"data", 2 << 20).unwrap();
        let plan = Plan::from_source(Arc::new(Source::open(folder.path().join("base")).unwrap()));
        plan.write_file(folder.path().join("out")).unwrap();
        assert!(
            std::fs::read(folder.path().join("out")).unwrap()
                == std::fs::read(folder.path().join("base")).unwrap()
        );
    }
}
