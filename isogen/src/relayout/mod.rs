//! Changing the layout: files dropped, added, or replaced by longer ones, without mastering the image anew.
//!
//! Only metadata is emitted again: directory records of both trees, volume sizes, boot catalogue and boot-info table,
//! partition tables, and the headers of old images. Every unchanged file is a reference into the base. What stands
//! before the first file that goes stays where it is; the files behind it close the gap, in their order; new and
//! edited files come last, so that all images of one base begin alike.
//!
//! | structure | what happens to it |
//! |---|---|
//! | volume descriptors | the volume's size; the root's record, if the root directory has to move |
//! | directories | records change in place; a directory that outgrows its sectors moves behind the files |
//! | path tables | only where a directory moves |
//! | El Torito catalogue | stays, with the new places of boot images that move |
//! | boot info table of isolinux | follows its file |
//! | MBR and both GPTs | new size, new end, new checksums; identifiers stay |
//! | `coreiso+`, `coreKarg` headers | follow their areas; zeroed where a file around an area goes |
//! | application's field of the volume descriptor | says that there is a [new layout, and why](BaseImage::layout_reason) |
//! | HFS+ and Apple partition map (ppc64le) | zeroed: they describe places that are no longer true |
//! | UDF, which no builder of CoreOS images adds | such images are refused |
//!
//! What points at bytes that move must point at the beginning of a file, or the image is refused: nobody could say where
//! it should point afterwards. What points at bytes that stay is kept as it is, right or wrong.
//!
//! An image for ppc64le keeps what POWER firmware starts: the ISO 9660 tree with `ppc/bootinfo.txt` and `boot/grub`, and
//! the protective MBR. What it loses is the way in through HFS+ and the Apple partition map.

mod boot_config;
mod boot_images;
mod directory;
mod mark;
pub(crate) mod oversized;
mod partitions;
mod placement;
mod structures;

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;

use crate::base::BaseImage;
use crate::error::{Error, Result};
use crate::extent::{Extent, SECTOR_SIZE, Sector};
use crate::plan::{Patch, Plan, Segment};

use placement::Placement;

/// Zero sectors behind the last file, as the builders leave them: some drives fail to read the end of a disc.
const PADDING_SECTORS: u64 = 150;

/// The bytes of a new or replaced file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Contents(Vec<Segment>);

impl Contents {
    /// Contents made of segments, of this or no base.
    #[must_use]
    pub fn new(segments: Vec<Segment>) -> Self {
        Self(segments)
    }

    /// The number of bytes.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.0.iter().map(Segment::len).fold(0, u64::saturating_add)
    }

    /// Tells whether there are no bytes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl From<Bytes> for Contents {
    fn from(bytes: Bytes) -> Self {
        Self(vec![Segment::Bytes(bytes)])
    }
}

/// What to do with the files of an image.
#[derive(Debug, Clone, Default)]
pub struct FileOperations {
    /// The new contents of a path; none to drop it.
    files: BTreeMap<String, Option<Contents>>,
}

impl FileOperations {
    /// Begins with nothing to do.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Leaves a file out.
    pub fn drop_file(&mut self, path: impl Into<String>) {
        self.files.insert(path.into(), None);
    }

    /// Adds a file to a directory that exists, or replaces the one of that path.
    pub fn put_file(&mut self, path: impl Into<String>, contents: Contents) {
        self.files.insert(path.into(), Some(contents));
    }

    /// Tells whether there is nothing to do.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.files.is_empty()
    }
}

/// All that a new layout changes.
#[derive(Debug)]
struct Changes {
    files: FileOperations,
    /// Where the kernel arguments are then, if files around them are among those that change.
    kargs: Option<KargsPlaces>,
    /// Why there is a new layout.
    reason: &'static str,
}

/// Kernel-argument areas after an edit.
#[derive(Debug)]
struct KargsPlaces {
    /// The length of each.
    len: u64,
    /// Where they are in their files, by path.
    offsets: BTreeMap<String, u64>,
}

impl BaseImage {
    /// The image with its files changed and everything else as it is.
    ///
    /// # Errors
    ///
    /// Fails where a path does not exist (or, of a new file, its directory), where a name cannot be stored, where the
    /// image would pass what its 32-bit fields hold, where a file goes that firmware starts, or where the image's
    /// structures are in an order that this cannot keep or contradict each other.
    pub fn relayout(&self, operations: &FileOperations) -> Result<Plan> {
        let reason = "files were changed";
        self.relayout_with(&Changes { files: operations.clone(), kargs: None, reason })
    }

    fn relayout_with(&self, changes: &Changes) -> Result<Plan> {
        if changes.files.is_empty() {
            return Ok(Plan::whole(Arc::clone(self.source())));
        }
        let mut placement = Placement::new(self, &changes.files)?;
        let mut patches = directory::patches(self, &mut placement)?;
        let plan = placement.plan(self);
        let plan = structures::resize(self, &placement, plan);
        patches.extend(structures::patches(self, &placement, changes.kargs.as_ref(), &plan)?);
        patches.extend(mark::patch(self, changes.reason)?);
        plan.patched(patches)
    }

    /// Why the image was laid out anew; none of an image as it was mastered.
    ///
    /// # Errors
    ///
    /// Fails where the storage does.
    pub fn layout_reason(&self) -> Result<Option<String>> {
        mark::read(self)
    }

    pub(crate) fn refuse_layout(
        &self,
        offset: u64,
        what: &'static str,
        expected: &str,
        found: String,
    ) -> Error {
        self.source().malformed(offset, what, expected, found)
    }
}

/// The sectors that a number of bytes takes.
fn sectors(len: u64) -> u64 {
    len.div_ceil(SECTOR_SIZE)
}

/// A sector number that may have grown too large for the format.
fn sector(image: &BaseImage, number: u64) -> Result<Sector> {
    let too_large = || {
        let found = format!("sector {number}");
        image.refuse_layout(0, "size of the new image", "at most 4294967295 sectors", found)
    };
    u32::try_from(number).map(Sector).map_err(|_| too_large())
}

/// Both-endian copies of a number, as the descriptors and records have them.
fn both_endian(number: u32) -> [u8; 8] {
    let mut bytes = [0; 8];
    let (little, big) = bytes.split_at_mut(4);
    little.copy_from_slice(&number.to_le_bytes());
    big.copy_from_slice(&number.to_be_bytes());
    bytes
}

fn patch(offset: u64, bytes: impl Into<Vec<u8>>) -> Patch {
    Patch { offset, segment: Segment::Bytes(bytes.into().into()) }
}

fn zeros(extent: Extent) -> Patch {
    Patch { offset: extent.offset(), segment: Segment::Zero(extent.len()) }
}
