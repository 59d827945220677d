//! The root file system of a live image, read in place: what it takes to hand `nmstatectl` to an initrd.
//!
//! From OpenShift 4.18 on, static networking is applied inside the initrd, by a program that only the root file system
//! has. It is read from where it is: `rootfs.img` is an uncompressed cpio archive, a member of it is the file system, and
//! no more of that is read than the directories on the way and the file itself. `squashfs` and `erofs` know the
//! formats, `codec` their compressions.
//!
//! Nothing is written here. The result depends on the image alone, so a [`Packed`] is worth keeping by the digest of the
//! image that it came from.

mod codec;
mod erofs;
mod filesystem;
mod lz4;
mod squashfs;
mod window;

use self::erofs::Erofs;
use self::filesystem::{Entry, FileSystem, Kind};
use self::squashfs::Squashfs;
use self::window::Window;
use crate::base::BaseImage;
use crate::error::{Error, Result};
use crate::extent::Extent;
use crate::initrd::{ArchiveError, Encoding, Packed, newc};
use crate::plan::Plan;

/// Where the program is in a running system, and in the initrd.
pub const NMSTATECTL: &str = "/usr/bin/nmstatectl";
/// Where it is in the file system, by the names of the operating system and of the deployment.
const DEPLOYED: &str = "/ostree/deploy/*/deploy/*/usr/bin/nmstatectl";

/// Members of `rootfs.img` that are looked at; there are fewer than ten.
const MAX_MEMBERS: usize = 64;
/// Deployments that are looked at; a live image has one.
const MAX_DEPLOYMENTS: usize = 16;
/// What the member with the file system may be called.
const MEMBERS: [&[u8]; 2] = [b"root.squashfs\0", b"root.erofs\0"];

/// The file system inside a `rootfs.img`, opened.
#[derive(Debug)]
pub struct RootFilesystem {
    window: Window,
    filesystem: Box<dyn FileSystem>,
}

impl BaseImage {
    /// The file system inside the image's `rootfs.img`.
    ///
    /// # Errors
    ///
    /// Fails where the image has no `rootfs.img`, as a minimal ISO, or one without a file system that can be read.
    pub fn root_filesystem(&self) -> Result<RootFilesystem> {
        let name = format!("{}: {}", self.source().name(), crate::pxe::ROOTFS);
        RootFilesystem::open(name, self.rootfs()?)
    }
}

impl RootFilesystem {
    /// Finds the file system in a `rootfs.img`, which messages shall call `name`: part of an image, or a file of its own
    /// as a PXE server has it.
    ///
    /// # Errors
    ///
    /// Fails where the bytes are no such archive, or where the file system is damaged or has features that are not read.
    pub fn open(name: impl Into<String>, rootfs: Plan) -> Result<Self> {
        let image = Window::whole(name.into(), rootfs);
        let extent = find_member(&image)?;
        let inside = || image.part(extent).ok_or_else(|| no_filesystem(&image, "an archive that ends early"));
        let window = inside()?;
        let start = window.read_up_to(0, squashfs::MAGIC.len(), "root file system")?;
        let filesystem: Box<dyn FileSystem> = if start == squashfs::MAGIC {
            Box::new(Squashfs::open(inside()?)?)
        } else {
            Box::new(Erofs::open(inside()?)?)
        };
        Ok(Self { window, filesystem })
    }

    /// The kind of file system: `squashfs` or `EROFS`.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        self.filesystem.name()
    }

    /// The contents of a regular file of known path. Symbolic links are not followed.
    ///
    /// # Errors
    ///
    /// Fails where there is no such file, it passes 256 MiB, or what leads to it is damaged.
    pub fn read(&self, path: &str) -> Result<Vec<u8>> {
        let inode = self.find(self.filesystem.root(), path)?;
        let missing = || Error::NotFound { file: self.window.file().to_owned(), path: path.to_owned() };
        self.filesystem.read(inode.ok_or_else(missing)?)
    }

    /// The contents of `nmstatectl`: of the deployment that the file system holds, or of the file system itself where it
    /// is no OSTree one.
    ///
    /// # Errors
    ///
    /// Fails where there is no such program, or what leads to it is damaged.
    pub fn nmstatectl(&self) -> Result<Vec<u8>> {
        let deployments = self.deployments()?;
        let roots = if deployments.is_empty() { &[self.filesystem.root()] } else { deployments.as_slice() };
        for root in roots {
            if let Some(inode) = self.find(*root, NMSTATECTL)? {
                return self.filesystem.read(inode);
            }
        }
        let path = if deployments.is_empty() { NMSTATECTL } else { DEPLOYED };
        Err(Error::NoNmstatectl {
            file: self.window.file().to_owned(),
            filesystem: self.kind(),
            path: path.to_owned(),
        })
    }

    /// The program as an initrd archive: one member, `/usr/bin/nmstatectl`, which everybody may execute.
    ///
    /// # Errors
    ///
    /// As [`nmstatectl`](Self::nmstatectl).
    pub fn pack_nmstatectl(&self) -> Result<Packed> {
        let program = self.nmstatectl()?;
        let packed = Packed::of_file(NMSTATECTL, newc::PROGRAM_MODE, &program, Encoding::Gzip);
        packed.map_err(|source: ArchiveError| Error::Archive {
            file: self.window.file().to_owned(),
            offset: 0,
            source,
        })
    }

    /// The inode at a path below a directory, or `None` where a name of it does not exist.
    fn find(&self, directory: u64, path: &str) -> Result<Option<u64>> {
        let mut inode = directory;
        for name in path.split('/').filter(|name| !name.is_empty()) {
            if self.filesystem.kind(inode)? != Kind::Directory {
                return Ok(None);
            }
            let entries = self.filesystem.list(inode)?;
            match entries.iter().find(|entry| entry.name == name.as_bytes()) {
                Some(entry) => inode = entry.inode,
                None => return Ok(None),
            }
        }
        Ok(Some(inode))
    }

    /// The directories `/ostree/deploy/{system}/deploy/{commit}.{serial}`, by name.
    fn deployments(&self) -> Result<Vec<u64>> {
        let mut found = Vec::new();
        let systems = self.find(self.filesystem.root(), "ostree/deploy")?;
        for system in self.directories(systems)? {
            let deploy = self.find(system.inode, "deploy")?;
            let deployments = self.directories(deploy)?;
            found.extend(
                deployments.iter().filter(|entry| is_deployment(&entry.name)).map(|entry| entry.inode),
            );
            found.truncate(MAX_DEPLOYMENTS);
        }
        Ok(found)
    }

    /// The directories in a directory, by name: the first ones, where there are more than any image has.
    fn directories(&self, inode: Option<u64>) -> Result<Vec<Entry>> {
        let Some(inode) = inode else { return Ok(Vec::new()) };
        if self.filesystem.kind(inode)? != Kind::Directory {
            return Ok(Vec::new());
        }
        let mut entries = self.filesystem.list(inode)?;
        entries.retain(|entry| !matches!(entry.name.as_slice(), b"." | b".."));
        entries.sort_by(|one, other| one.name.cmp(&other.name));
        entries.truncate(2 * MAX_DEPLOYMENTS);
        let mut directories = Vec::new();
        for entry in entries {
            if self.filesystem.kind(entry.inode)? == Kind::Directory {
                directories.push(entry);
            }
        }
        Ok(directories)
    }
}

/// Tells whether a name has the form `{commit}.{serial}`. Beside such a directory there is a file `….origin`.
fn is_deployment(name: &[u8]) -> bool {
    let Some(dot) = name.iter().rposition(|byte| *byte == b'.') else { return false };
    let (commit, serial) = name.split_at(dot);
    let serial = serial.get(1..).unwrap_or_default();
    !commit.is_empty() && !serial.is_empty() && serial.iter().all(u8::is_ascii_digit)
}

/// Where in the archive the file system is.
fn find_member(image: &Window) -> Result<Extent> {
    let mut offset = 0_u64;
    for _ in 0..MAX_MEMBERS {
        let bytes = image.read(offset, newc::HEADER_LEN, "rootfs archive")?;
        let header = bytes.as_slice().try_into().map_or_else(
            |_| Err(no_filesystem(image, "an archive that ends early")),
            |bytes| {
                newc::Header::parse(bytes).map_err(|field| {
                    image.malformed(offset + field.offset as u64, field.what, field.expected, field.found)
                })
            },
        )?;
        let name_at = offset + newc::HEADER_LEN as u64;
        let name_len = u64::from(header.name_len);
        let data = align(name_at + name_len);
        let longest = MEMBERS.iter().map(|name| name.len()).max().unwrap_or_default();
        let name = image.read_up_to(name_at, longest, "rootfs archive")?;
        let is = |wanted: &[u8]| wanted.len() as u64 == name_len && name.starts_with(wanted);
        if header.is_file() && MEMBERS.iter().any(|wanted| is(wanted)) {
            let extent = Extent::new(data, u64::from(header.data_len)).filter(|it| it.end() <= image.len());
            return extent.ok_or_else(|| no_filesystem(image, "an archive that ends early"));
        }
        if is(b"TRAILER!!!\0") {
            break;
        }
        offset = align(data + u64::from(header.data_len));
    }
    Err(no_filesystem(image, "none of these"))
}

/// The next multiple of four, where a member's data and the next member begin.
fn align(offset: u64) -> u64 {
    offset + newc::padding(offset).len() as u64
}

fn no_filesystem(image: &Window, found: &str) -> Error {
    image.malformed(0, "rootfs archive", "a member root.squashfs or root.erofs", found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deployments_end_in_a_number() {
        assert!(is_deployment(b"0123abcd.0"));
        assert!(is_deployment(b"0123abcd.12"));
        for name in ["0123abcd.0.origin", "0123abcd", ".0", "0123abcd.", ".", "..", ""] {
            assert!(!is_deployment(name.as_bytes()), "{name}");
        }
    }
}
