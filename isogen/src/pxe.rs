//! Plans of the PXE artifacts of a base image: kernel, initrd and root file system.

use bytes::Bytes;

use crate::base::{BaseImage, PXE_DIRECTORY};
use crate::error::Result;
use crate::initrd::{PackedArchive, newc};
use crate::plan::{Plan, Segment};
use crate::volume::TreeEntry;

const INITRD_PATH: &str = "images/pxeboot/initrd.img";
pub(crate) const ROOTFS_PATH: &str = "images/pxeboot/rootfs.img";
/// The possible paths of the kernel.
const KERNEL_PATHS: [&str; 2] = ["images/pxeboot/vmlinuz", "images/pxeboot/kernel.img"];
/// On s390x: the address and size of the initrd.
const ADDRSIZE_PATH: &str = "images/initrd.addrsize";
/// On s390x: the list of files to load, with their addresses.
const LOAD_LIST_PATH: &str = "generic.ins";

/// A file of the PXE directory.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct PxeFile {
    /// Its ISO 9660 name in lower case, as in `coreos-installer`.
    pub name: String,
    /// Its bytes.
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

    /// Returns the kernel.
    ///
    /// # Errors
    ///
    /// Returns an error if the image does not have one.
    pub fn kernel(&self) -> Result<Plan> {
        let [vmlinuz, kernel] = KERNEL_PATHS.map(|path| self.file(path));
        vmlinuz.or_else(|missing| kernel.map_err(|_| missing))
    }

    /// Returns the root file system.
    ///
    /// # Errors
    ///
    /// Returns an error if the image does not have one, like a minimal ISO.
    pub fn rootfs(&self) -> Result<Plan> {
        self.file(ROOTFS_PATH)
    }

    /// Returns the initrd followed by archives. Each begins at a multiple of four bytes, as the kernel requires.
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

    /// Returns `initrd.addrsize` (s390x) for an initrd of `len` bytes: the address from the base image with the new
    /// length.
    ///
    /// # Errors
    ///
    /// Returns an error if the image does not have the file or it is malformed.
    pub fn initrd_addrsize(&self, len: u64) -> Result<Plan> {
        let extent = self.require_file(ADDRSIZE_PATH)?.extent;
        if extent.len() != 16 {
            let (at, what) = (extent.offset(), "initrd.addrsize");
            return Err(self.source().malformed(at, what, "16 bytes", extent.len()));
        }
        let len = Bytes::copy_from_slice(&len.to_be_bytes());
        Ok(self.plan_extent(extent.slice(0..8)).followed_by([Segment::Bytes(len)]))
    }

    /// Returns `generic.ins` (s390x), the list of files that the firmware loads, with their addresses.
    ///
    /// # Errors
    ///
    /// Returns an error if the image does not have the file.
    pub fn load_list(&self) -> Result<Plan> {
        self.file(LOAD_LIST_PATH)
    }
}
