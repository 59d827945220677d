//! Reads files of the live system's root file system, in place. Its purpose is to copy `nmstatectl` into an initrd.
//!
//! From OpenShift 4.18 on, the initrd configures static networking with `nmstatectl`, but only the root file system
//! contains that program. `rootfs.img` is an uncompressed cpio archive, and one of its members is the file system. This
//! module reads only the directories on the path to the program and the program itself. `squashfs` and `erofs` read the
//! file system formats, and `codec` decodes their compressions.
//!
//! Reading writes nothing. The result depends only on the image, so a caller can cache a [`PackedArchive`] by the
//! digest of its image.

mod codec;
mod erofs;
mod filesystem;
mod lz4;
mod squashfs;
mod window;

use self::erofs::ErofsImage;
use self::filesystem::{DirectoryEntry, FileSystem, InodeType};
use self::squashfs::SquashfsImage;
use self::window::RootfsWindow;
use crate::base::BaseImage;
use crate::error::{Error, Result};
use crate::extent::Extent;
use crate::initrd::{Encoding, PackedArchive, newc};
use crate::plan::Plan;

/// Path of the program in the running system and in the initrd.
const NMSTATECTL: &str = "/usr/bin/nmstatectl";
/// Path of the program in an OSTree file system. The asterisks stand for the names of the operating system and the
/// deployment.
const DEPLOYED_NMSTATECTL: &str = "/ostree/deploy/*/deploy/*/usr/bin/nmstatectl";

/// Maximum number of examined members of `rootfs.img`. Published images have fewer than ten.
const MAX_MEMBERS: usize = 64;
/// Maximum number of examined deployments. A published image has one.
const MAX_DEPLOYMENTS: usize = 16;
/// Possible names of the member that contains the file system, each with its NUL.
const FILESYSTEM_MEMBERS: [&[u8]; 2] = [b"root.squashfs\0", b"root.erofs\0"];

/// The root file system of a live system, inside a `rootfs.img`.
#[derive(Debug)]
pub struct RootFilesystem {
    window: RootfsWindow,
    filesystem: Box<dyn FileSystem>,
}

impl BaseImage {
    /// Opens the file system inside the image's `rootfs.img`.
    ///
    /// # Errors
    ///
    /// Returns an error if the image has no `rootfs.img`, for example if it is a minimal ISO, and the errors of
    /// [`RootFilesystem::open`].
    pub fn root_filesystem(&self) -> Result<RootFilesystem> {
        let name = format!("{}: {}", self.source().name(), crate::pxe::ROOTFS_PATH);
        RootFilesystem::open(name, self.rootfs()?)
    }
}

impl RootFilesystem {
    /// Opens the file system inside a `rootfs.img`, which is a file of an image or a separate file for PXE. Errors name
    /// the file `name`.
    ///
    /// # Errors
    ///
    /// Returns an error if the bytes are not a cpio archive with a file system, if the file system is damaged, or if it
    /// has features that this crate does not support.
    pub fn open(name: impl Into<String>, rootfs: Plan) -> Result<Self> {
        let window = find_filesystem(&RootfsWindow::new(name.into(), rootfs))?;
        let start = window.read_up_to(0, squashfs::MAGIC.len(), "root file system")?;
        let filesystem: Box<dyn FileSystem> = if start == squashfs::MAGIC {
            Box::new(SquashfsImage::open(window.clone())?)
        } else {
            Box::new(ErofsImage::open(window.clone())?)
        };
        Ok(Self { window, filesystem })
    }

    /// Returns the contents of the regular file at `path`. It does not follow symbolic links.
    ///
    /// # Errors
    ///
    /// Returns an error if the file does not exist or is longer than 256 MiB, or if the structures on the path to it
    /// are damaged.
    pub fn read(&self, path: &str) -> Result<Vec<u8>> {
        let inode = self.find(self.filesystem.root_inode(), path)?;
        let missing = || Error::NotFound { file: self.window.file(), path: path.to_owned() };
        self.filesystem.read_file(inode.ok_or_else(missing)?)
    }

    /// Returns the contents of `nmstatectl` from the first deployment that has it, or from `/usr/bin/nmstatectl` if the
    /// file system has no OSTree deployment.
    ///
    /// # Errors
    ///
    /// Returns an error if the program does not exist, or if the structures on the path to it are damaged.
    pub fn nmstatectl(&self) -> Result<Vec<u8>> {
        let deployments = self.deployments()?;
        let roots =
            if deployments.is_empty() { &[self.filesystem.root_inode()] } else { deployments.as_slice() };
        for root in roots {
            if let Some(inode) = self.find(*root, NMSTATECTL)? {
                return self.filesystem.read_file(inode);
            }
        }
        let path = if deployments.is_empty() { NMSTATECTL } else { DEPLOYED_NMSTATECTL }.to_owned();
        Err(Error::NoNmstatectl { file: self.window.file(), filesystem: self.filesystem.name(), path })
    }

    /// Returns an initrd archive with a single member, `/usr/bin/nmstatectl`, which every user may execute.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`nmstatectl`](Self::nmstatectl), or an error if the program cannot be packed.
    pub fn pack_nmstatectl(&self) -> Result<PackedArchive> {
        let program = self.nmstatectl()?;
        let packed = PackedArchive::from_file(NMSTATECTL, newc::PROGRAM_MODE, &program, Encoding::Gzip);
        packed.map_err(|source| Error::Archive { file: self.window.file(), offset: 0, source })
    }

    /// Returns the inode at a path relative to a directory, or `None` if the path does not exist.
    fn find(&self, directory: u64, path: &str) -> Result<Option<u64>> {
        let mut inode = directory;
        for name in path.split('/').filter(|name| !name.is_empty()) {
            if self.filesystem.inode_type(inode)? != InodeType::Directory {
                return Ok(None);
            }
            let entries = self.filesystem.list_directory(inode)?;
            match entries.iter().find(|entry| entry.name == name.as_bytes()) {
                Some(entry) => inode = entry.inode,
                None => return Ok(None),
            }
        }
        Ok(Some(inode))
    }

    /// Returns the directories `/ostree/deploy/{system}/deploy/{commit}.{serial}`, sorted by name.
    fn deployments(&self) -> Result<Vec<u64>> {
        let mut inodes = Vec::new();
        let systems = self.find(self.filesystem.root_inode(), "ostree/deploy")?;
        for system in self.list_subdirectories(systems)? {
            let deploy = self.find(system.inode, "deploy")?;
            let deployments = self.list_subdirectories(deploy)?;
            let deployments = deployments.iter().filter(|entry| is_deployment(&entry.name));
            inodes.extend(deployments.map(|entry| entry.inode));
            inodes.truncate(MAX_DEPLOYMENTS);
        }
        Ok(inodes)
    }

    /// Returns the subdirectories of a directory, sorted by name. It examines only the first `2 * MAX_DEPLOYMENTS`
    /// entries.
    fn list_subdirectories(&self, inode: Option<u64>) -> Result<Vec<DirectoryEntry>> {
        let Some(inode) = inode else { return Ok(Vec::new()) };
        if self.filesystem.inode_type(inode)? != InodeType::Directory {
            return Ok(Vec::new());
        }
        let mut entries = self.filesystem.list_directory(inode)?;
        entries.retain(|entry| !matches!(entry.name.as_slice(), b"." | b".."));
        entries.sort_by(|one, other| one.name.cmp(&other.name));
        entries.truncate(2 * MAX_DEPLOYMENTS);
        let mut directories = Vec::new();
        for entry in entries {
            if self.filesystem.inode_type(entry.inode)? == InodeType::Directory {
                directories.push(entry);
            }
        }
        Ok(directories)
    }
}

/// Returns `true` if a name has the form `{commit}.{serial}`. OSTree also creates a file `{commit}.{serial}.origin`
/// next to each deployment.
fn is_deployment(name: &[u8]) -> bool {
    let mut parts = name.rsplitn(2, |byte| *byte == b'.');
    let (Some(serial), Some(commit)) = (parts.next(), parts.next()) else { return false };
    !commit.is_empty() && !serial.is_empty() && serial.iter().all(u8::is_ascii_digit)
}

/// Finds the file system in the cpio archive.
fn find_filesystem(image: &RootfsWindow) -> Result<RootfsWindow> {
    let no_filesystem =
        |actual| image.malformed(0, "rootfs archive", "a member root.squashfs or root.erofs", actual);
    let mut offset = 0_u64;
    for _ in 0..MAX_MEMBERS {
        let bytes = image.read_array(offset, "rootfs archive")?;
        let header = newc::CpioHeader::parse(&bytes).map_err(|field| {
            image.malformed(offset + field.offset as u64, field.what, field.expected, field.found)
        })?;
        let name_at = offset + newc::HEADER_LEN as u64;
        let name_len = u64::from(header.name_len);
        let data = align_to_four(name_at + name_len);
        let longest = FILESYSTEM_MEMBERS.iter().map(|name| name.len()).fold(0, usize::max);
        let name = image.read_up_to(name_at, longest, "rootfs archive")?;
        let is = |expected: &[u8]| expected.len() as u64 == name_len && name.starts_with(expected);
        if header.is_file() && FILESYSTEM_MEMBERS.iter().any(|expected| is(expected)) {
            let extent = Extent::new(data, u64::from(header.data_len));
            let window = extent.and_then(|extent| image.subwindow(extent));
            return window.ok_or_else(|| no_filesystem("an archive that ends early"));
        }
        if is(b"TRAILER!!!\0") {
            break;
        }
        offset = align_to_four(data + u64::from(header.data_len));
    }
    Err(no_filesystem("neither of them"))
}

/// Returns the next multiple of four. cpio aligns members and their data to four bytes.
fn align_to_four(offset: u64) -> u64 {
    offset + newc::padding(offset).len() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deployment_names_end_in_a_serial_number() {
        assert!(is_deployment(b"0123abcd.0"));
        assert!(is_deployment(b"0123abcd.12"));
        for name in ["0123abcd.0.origin", "0123abcd", ".0", "0123abcd.", ".", "..", ""] {
            assert!(!is_deployment(name.as_bytes()), "{name}");
        }
    }
}
