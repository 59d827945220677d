//! The common interface of the squashfs and EROFS readers, and their common limits.

use std::fmt;

use crate::error::Result;

/// Maximum length of a file: ten times the size of `nmstatectl`.
pub(super) const MAX_FILE_LEN: u64 = 256 << 20;
/// Maximum length of a directory: about a hundred thousand entries.
pub(super) const MAX_LISTING_LEN: u64 = 8 << 20;

/// The file type of an inode.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum InodeType {
    Directory,
    File,
    Symlink,
    Other,
}

impl fmt::Display for InodeType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Directory => "a directory",
            Self::File => "a regular file",
            Self::Symlink => "a symbolic link",
            Self::Other => "a special file",
        })
    }
}

/// A directory entry. The numbering of inodes depends on the file system.
#[derive(Debug)]
pub(super) struct DirectoryEntry {
    pub(super) name: Vec<u8>,
    pub(super) inode: u64,
}

/// A file system image, read in place. The limits of results are [`MAX_FILE_LEN`] and [`MAX_LISTING_LEN`].
pub(super) trait FileSystem: fmt::Debug + Send + Sync {
    fn name(&self) -> &'static str;
    fn root_inode(&self) -> u64;
    fn inode_type(&self, inode: u64) -> Result<InodeType>;
    fn list_directory(&self, inode: u64) -> Result<Vec<DirectoryEntry>>;
    fn read_file(&self, inode: u64) -> Result<Vec<u8>>;
}
