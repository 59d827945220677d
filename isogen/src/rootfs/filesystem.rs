//! The interface of both kinds of file system, and the limits that both keep.

use std::fmt;

use crate::error::Result;

/// Largest file that is read: ten times the program.
pub(super) const MAX_FILE_LEN: u64 = 256 << 20;
/// Largest directory that is read: a hundred thousand entries.
pub(super) const MAX_LISTING_LEN: u64 = 8 << 20;

/// The type of a directory entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Directory,
    File,
    Symlink,
    Other,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Directory => "a directory",
            Self::File => "a regular file",
            Self::Symlink => "a symbolic link",
            Self::Other => "a special file",
        })
    }
}

/// A directory entry. The file system defines how it numbers inodes.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) name: Vec<u8>,
    pub(super) inode: u64,
}

/// A file system that is read in place. Results are bounded by [`MAX_FILE_LEN`] and [`MAX_LISTING_LEN`].
pub(super) trait FileSystem: fmt::Debug + Send + Sync {
    fn name(&self) -> &'static str;
    fn root(&self) -> u64;
    fn kind(&self, inode: u64) -> Result<Kind>;
    fn list(&self, inode: u64) -> Result<Vec<Entry>>;
    fn read(&self, inode: u64) -> Result<Vec<u8>>;
}
