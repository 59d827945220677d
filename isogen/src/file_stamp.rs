//! File stamps: the metadata that `stat` reports for a file. A different stamp means that the file was changed.

use std::fs::{File, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;

use rustix::fs::{AtFlags, FileType, StatxFlags, StatxTimestamp, makedev, statx};

/// A timestamp of a file, as `stat` reports it.
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

/// The metadata of a file at one time. Every write changes [`changed`](Self::changed), which no process can set.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FileStamp {
    /// The length in bytes.
    pub len: u64,
    /// The device of the file system.
    pub device: u64,
    /// The inode on that device.
    pub inode: u64,
    /// The number of names (hard links) of the file.
    pub links: u64,
    /// The time of the last write (`mtime`). Processes can set it to any time.
    pub modified: FileTime,
    /// The time of the last change of bytes or metadata (`ctime`).
    pub changed: FileTime,
}

impl FileStamp {
    /// Returns the stamp of an open file. It uses cached metadata and does not ask a file server, so it does not block.
    ///
    /// # Errors
    ///
    /// Returns an error if the file is not a regular file or its metadata cannot be read.
    pub fn from_file(file: &File) -> io::Result<Self> {
        Self::from_regular_file(file)?.ok_or_else(|| io::Error::other("not a regular file"))
    }

    /// Returns `true` if the only difference in the `later` stamp is the loss of the file's last name, which also
    /// changes the `ctime`. This happens if another file replaces the file. A write whose `mtime` is set back before
    /// the file is deleted looks the same, so the caller must hash the bytes again.
    #[must_use]
    pub fn has_lost_last_name(&self, later: &Self) -> bool {
        let nameless = Self { changed: later.changed, links: 0, ..*self };
        self.links > 0 && nameless == *later
    }

    /// Returns the stamp of an open file, or `None` if it is not a regular file.
    ///
    /// # Errors
    ///
    /// Returns an error if the metadata of the file cannot be read.
    #[inline]
    pub fn from_regular_file(file: &File) -> io::Result<Option<Self>> {
        let flags = AtFlags::EMPTY_PATH | AtFlags::STATX_DONT_SYNC;
        let fields = StatxFlags::TYPE
            | StatxFlags::SIZE
            | StatxFlags::INO
            | StatxFlags::NLINK
            | StatxFlags::MTIME
            | StatxFlags::CTIME;
        let stat = statx(file, "", flags, fields)?;
        let is_regular = FileType::from_raw_mode(stat.stx_mode.into()) == FileType::RegularFile;
        Ok(is_regular.then(|| Self {
            len: stat.stx_size,
            device: makedev(stat.stx_dev_major, stat.stx_dev_minor),
            inode: stat.stx_ino,
            links: stat.stx_nlink.into(),
            modified: stat.stx_mtime.into(),
            changed: stat.stx_ctime.into(),
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

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn last_name_is_lost_only_once_and_without_a_write() {
        let before = FileStamp { len: 9, links: 1, ..FileStamp::default() };
        let at = |seconds| FileTime { seconds, nanoseconds: 0 };
        let after = FileStamp { links: 0, changed: at(1), ..before };
        assert!(before.has_lost_last_name(&after));
        assert!(!before.has_lost_last_name(&FileStamp { modified: at(1), ..after }));
        assert!(!before.has_lost_last_name(&FileStamp { changed: at(1), ..before }));
        assert!(!after.has_lost_last_name(&FileStamp { changed: at(2), ..after }));
    }

    #[test]
    fn stamps_of_a_file_and_of_its_path_are_equal() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(&[7; 9999]).unwrap();
        let stamp = FileStamp::from_file(&File::open(file.path()).unwrap()).unwrap();
        assert_eq!(stamp, FileStamp::from(&std::fs::metadata(file.path()).unwrap()));
        assert!(FileStamp::from_file(&File::open("/").unwrap()).is_err());
    }
}
