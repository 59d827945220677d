//! Files that are there whole or not at all.
//!
//! A [`NewFile`] has no name until it is complete: where the file system allows, not even a temporary one, so that
//! nothing is left behind by a process that is killed. It takes its name only if no other file has it.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Mode, OFlags, SeekFrom};
use rustix::io::Errno;

use super::stream::BUFFER_LEN;
use crate::error::{Error, Result};
use crate::extent::Extent;
use crate::plan::{Placed, Plan, Segment};
use crate::source::Source;

/// Who may read a new file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Its owner: customised images hold secrets.
    Private,
    /// Whoever the system's file mode mask lets.
    Shared,
}

impl Access {
    fn mode(self) -> u32 {
        match self {
            Self::Private => 0o600,
            Self::Shared => 0o666,
        }
    }
}

/// A file in the making. Dropped before [`commit`](Self::commit), it was never there.
#[derive(Debug)]
pub struct NewFile {
    path: PathBuf,
    file: File,
    /// The temporary name, on file systems that cannot do without.
    temporary: Option<tempfile::TempPath>,
}

impl NewFile {
    /// Begins a file.
    ///
    /// # Errors
    ///
    /// Fails where the name is taken already or the folder cannot be written.
    pub fn create(path: impl Into<PathBuf>, access: Access) -> Result<Self> {
        let path = path.into();
        Self::create_unnamed(&path, access).map_err(|source| Error::Write { file: shown(&path), source })
    }

    fn create_unnamed(path: &Path, access: Access) -> io::Result<Self> {
        if path.as_os_str().is_empty() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "the name of the file is empty"));
        }
        // Said before the work instead of after it; `commit` makes sure.
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
                let named = builder.prefix(".kindling-").permissions(mode).tempfile_in(folder)?;
                let (file, temporary) = named.into_parts();
                Ok(Self { path, file, temporary: Some(temporary) })
            }
            Err(error) => Err(error.into()),
        }
    }

    /// The open file.
    #[must_use]
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Writes a plan from the start of the file.
    ///
    /// Base bytes are cloned where the file system shares blocks, else copied by the kernel; zeros become holes.
    ///
    /// # Errors
    ///
    /// Fails where the base cannot be read or the file cannot be written.
    pub fn write_plan(&self, plan: &Plan) -> Result<()> {
        self.write_plan_telling(plan, &mut |_| {})
    }

    /// The same, telling how many bytes of the plan are there each time that some more are.
    ///
    /// # Errors
    ///
    /// Fails where the base cannot be read or the file cannot be written.
    pub fn write_plan_telling(&self, plan: &Plan, tell: &mut dyn FnMut(u64)) -> Result<()> {
        self.write_segments(plan, tell).map_err(|source| self.error(source))?;
        tell(plan.len());
        Ok(())
    }

    /// Gives the file its name.
    ///
    /// # Errors
    ///
    /// Fails where another file has it.
    pub fn commit(mut self) -> Result<()> {
        let linked = match self.temporary.take() {
            Some(temporary) => temporary.persist_noclobber(&self.path).map_err(|error| error.error),
            None => self.link(),
        };
        linked.map_err(|source| self.error(source))
    }

    fn link(&self) -> io::Result<()> {
        let unnamed = format!("/proc/self/fd/{}", self.file.as_raw_fd());
        Ok(rustix::fs::linkat(CWD, unnamed, CWD, &self.path, AtFlags::SYMLINK_FOLLOW)?)
    }

    fn error(&self, source: io::Error) -> Error {
        Error::Write { file: shown(&self.path), source }
    }

    fn write_segments(&self, plan: &Plan, tell: &mut dyn FnMut(u64)) -> io::Result<()> {
        let shared = self.share_blocks(plan);
        if !shared {
            self.file.set_len(plan.len())?;
        }
        let mut copy = BaseCopy { source: plan.source(), file: &self.file, in_kernel: true, tell };
        for Placed { start, segment } in plan.layout() {
            match segment {
                Segment::Base(_) if shared => {}
                Segment::Base(extent) => copy.extent(*extent, *start)?,
                Segment::Bytes(bytes) => self.file.write_all_at(bytes, *start)?,
                Segment::Zero(len) if shared => write_zeros(&self.file, *start, *len)?,
                Segment::Zero(_) => {}
            }
        }
        Ok(())
    }

    /// Makes the file share all blocks with the base, where the plan moves none and the file system can.
    fn share_blocks(&self, plan: &Plan) -> bool {
        let base = plan.source().as_file().filter(|_| plan.changes_in_place().is_ok());
        base.is_some_and(|base| rustix::fs::ioctl_ficlone(&self.file, base).is_ok())
    }
}

/// The name of a file, for messages; one that is empty can be seen.
fn shown(path: &Path) -> String {
    if path.as_os_str().is_empty() { "\"\"".to_owned() } else { path.display().to_string() }
}

impl Plan {
    /// Writes all bytes to a new file, which appears when it is complete.
    ///
    /// # Errors
    ///
    /// Fails where the name is taken, the base cannot be read, or the file cannot be written; then nothing is left.
    pub fn write_file(&self, path: impl Into<PathBuf>) -> Result<()> {
        let file = NewFile::create(path, Access::Private)?;
        file.write_plan(self)?;
        file.commit()
    }
}

fn write_zeros(file: &File, mut offset: u64, mut len: u64) -> io::Result<()> {
    let zeros = [0; 64 << 10];
    while len > 0 {
        let step = usize::try_from(len).map_or(zeros.len(), |len| len.min(zeros.len()));
        file.write_all_at(zeros.get(..step).unwrap_or_default(), offset)?;
        offset += step as u64;
        len -= step as u64;
    }
    Ok(())
}

/// Copies base bytes to a file that is all holes.
struct BaseCopy<'a> {
    source: &'a Source,
    file: &'a File,
    /// Whether the kernel has not refused to copy yet.
    in_kernel: bool,
    /// Hears how far the file is.
    tell: &'a mut dyn FnMut(u64),
}

/// Bytes that the kernel copies at a time, for progress to be seen.
const COPY_STEP: u64 = 64 << 20;

impl BaseCopy<'_> {
    fn extent(&mut self, extent: Extent, to: u64) -> io::Result<()> {
        let mut at = extent.offset();
        while at < extent.end() {
            let Some((start, end)) = self.next_data(at, extent.end()) else { break };
            let Some(data) = Extent::new(start, end - start) else { break };
            self.data(data, to + (start - extent.offset()))?;
            at = end;
        }
        Ok(())
    }

    /// The next stretch of the base between `from` and `end` that is not a hole.
    fn next_data(&self, from: u64, end: u64) -> Option<(u64, u64)> {
        let Some(base) = self.source.as_file() else { return Some((from, end)) };
        // A shared file position does no harm here: all reads of the base name theirs.
        let start = match rustix::fs::seek(base, SeekFrom::Data(from)) {
            Ok(start) => start,
            Err(Errno::NXIO) => return None,
            Err(_) => return Some((from, end)),
        };
        let hole = rustix::fs::seek(base, SeekFrom::Hole(start)).unwrap_or(end);
        (start < end).then_some((start, hole.min(end)))
    }

    fn data(&mut self, data: Extent, to: u64) -> io::Result<()> {
        let mut done = 0;
        if let Some(base) = self.source.as_file() {
            while self.in_kernel && done < data.len() {
                let step = COPY_STEP.min(data.len() - done);
                done += self.copy_in_kernel(base, data.offset() + done, to + done, step);
                (self.tell)(to + done);
            }
        }
        let mut buf = vec![0; BUFFER_LEN];
        while done < data.len() {
            let len = usize::try_from(data.len() - done).map_or(buf.len(), |rest| rest.min(buf.len()));
            let chunk = buf.get_mut(..len).unwrap_or_default();
            self.source.read_exact_at(chunk, data.offset() + done).map_err(io::Error::other)?;
            self.file.write_all_at(chunk, to + done)?;
            done += len as u64;
            (self.tell)(to + done);
        }
        Ok(())
    }

    /// Lets the kernel copy and tells how far it came; where it does not, the caller's buffer has to.
    fn copy_in_kernel(&mut self, base: &File, mut from: u64, mut to: u64, len: u64) -> u64 {
        let len = usize::try_from(len).unwrap_or(usize::MAX);
        match rustix::fs::copy_file_range(base, Some(&mut from), self.file, Some(&mut to), len) {
            Ok(copied @ 1..) => copied as u64,
            _ => {
                self.in_kernel = false;
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
        Plan::whole(source).patched(vec![patch]).unwrap().followed_by([Segment::Zero(9000)])
    }

    #[test]
    fn a_new_file_has_the_bytes_of_the_plan() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out");
        plan().write_file(&path).unwrap();
        let mut streamed = Vec::new();
        plan().write_to(&mut streamed).unwrap();
        assert!(std::fs::read(&path).unwrap() == streamed);
    }

    #[test]
    fn a_taken_name_is_refused_and_kept() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out");
        std::fs::write(&path, "mine").unwrap();
        let error = plan().write_file(&path).unwrap_err();
        assert!(
            matches!(&error, Error::Write { source, .. } if source.kind() == io::ErrorKind::AlreadyExists)
        );
        let late = NewFile::create(folder.path().join("late"), Access::Private).unwrap();
        std::fs::write(folder.path().join("late"), "other").unwrap();
        assert!(late.commit().is_err());
        assert_eq!(std::fs::read(folder.path().join("late")).unwrap(), b"other");
        assert_eq!(std::fs::read(path).unwrap(), b"mine");
    }

    #[test]
    fn what_is_not_committed_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let file = NewFile::create(folder.path().join("out"), Access::Private).unwrap();
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
        let plan = Plan::whole(Arc::new(Source::open(folder.path().join("base")).unwrap()));
        plan.write_file(folder.path().join("out")).unwrap();
        assert!(
            std::fs::read(folder.path().join("out")).unwrap()
                == std::fs::read(folder.path().join("base")).unwrap()
        );
    }
}
