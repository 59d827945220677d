//! Plans of the PXE artifacts of a base image: kernel, initrd and root file system.

use bytes::Bytes;

use crate::base::{BaseImage, PXE_DIRECTORY};
use crate::error::Result;
use crate::initrd::{PackedArchive, newc};
use crate::plan::{Plan, Segment};
use crate::volume::TreeEntry;

const INITRD_PATH: &str = "images/pxeboot/initrd.img";
pub(crate) const ROOTFS_PATH: &str = "images/pxeboot/rootfs.img";
/// Paths of the kernel, which depend on the architecture.
const KERNEL_PATHS: [&str; 2] = ["images/pxeboot/vmlinuz", "images/pxeboot/kernel.img"];
/// Path of the file with the address and size of the initrd, on s390x.
const ADDRSIZE_PATH: &str = "images/initrd.addrsize";
/// Path of the list of files to load and their addresses, on s390x.
const LOAD_LIST_PATH: &str = "generic.ins";

/// A file of the PXE directory.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct PxeFile {
    /// ISO 9660 name in lower case, like the names that `coreos-installer` uses.
    pub name: String,
    /// Plan of the file's bytes.
    pub plan: Plan,
}

impl BaseImage {
    /// Returns every file of the PXE directory.
    ///
    /// # Errors
    ///
    /// Returns an error if the image does not have that directory.
    pub fn pxe_files(&self) -> Result<Vec<PxeFile>> {
        let tree = self.volume().tree();
        let directory = tree.find_id(PXE_DIRECTORY);
        let directory = directory.ok_or_else(|| self.source().not_found(PXE_DIRECTORY))?;
        let files = tree.children(directory).filter(|(_, entry)| entry.directory.is_none());
        let artifact = |entry: &TreeEntry| PxeFile {
            name: entry.iso_name.to_lowercase(),
            plan: self.plan_extent(entry.extent),
        };
        Ok(files.map(|(_, entry)| artifact(entry)).collect())
    }

    /// Returns a plan of the kernel.
    ///
    /// # Errors
    ///
    /// Returns an error if the image does not have one.
    pub fn kernel(&self) -> Result<Plan> {
        let [vmlinuz, kernel] = KERNEL_PATHS.map(|path| self.file(path));
        vmlinuz.or_else(|missing| kernel.map_err(|_| missing))
    }

    /// Returns a plan of the root file system.
    ///
    /// # Errors
    ///
    /// Returns an error if the image has no root file system, for example if it is a minimal ISO.
    pub fn rootfs(&self) -> Result<Plan> {
        self.file(ROOTFS_PATH)
    }

    /// Returns a plan of the initrd followed by `archives`. Each archive begins at a multiple of four bytes, as the
    /// kernel requires.
    ///
    /// # Errors
    ///
    /// Returns an error if the image does not have an initrd.
    pub fn initrd(&self, archives: impl IntoIterator<Item = PackedArchive>) -> Result<Plan> {
        let initrd = self.file(INITRD_PATH)?;
        let padding = Segment::Bytes(Bytes::from_static(newc::padding(initrd.len())));
        let archives = archives.into_iter().map(|packed| Segment::Bytes(packed.as_bytes().clone()));
        Ok(initrd.followed_by(std::iter::once(padding).chain(archives)))
    }

    /// Returns a plan of `initrd.addrsize` (s390x) for an initrd of `len` bytes. The file contains the address from the
    /// base image and the new length.
    ///
    /// # Errors
    ///
    /// Returns an error if the image does not have the file or if the file is malformed.
    pub fn initrd_addrsize(&self, len: u64) -> Result<Plan> {
        let extent = self.require_file(ADDRSIZE_PATH)?.extent;
        if extent.len() != 16 {
            let (at, what) = (extent.offset(), "initrd.addrsize");
            return Err(self.source().malformed(at, what, "16 bytes", extent.len()));
        }
        let len = Bytes::copy_from_slice(&len.to_be_bytes());
        Ok(self.plan_extent(extent.slice(0..8)).followed_by([Segment::Bytes(len)]))
    }

    /// Returns a plan of `generic.ins` (s390x), the list of files that the firmware loads, with their addresses.
    ///
    /// # Errors
    ///
    /// Returns an error if the image does not have the file.
    pub fn load_list(&self) -> Result<Plan> {
        self.file(LOAD_LIST_PATH)
    }
}
