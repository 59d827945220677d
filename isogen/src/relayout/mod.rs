//! Re-layout: drops, adds and replaces files of a base image without mastering it again.
//!
//! A re-layout emits metadata only: directory records of both trees, volume sizes, boot catalogue and boot info table,
//! partition tables, and the headers of old images. Every unchanged file is a reference into the base image. Everything
//! before the first file that is dropped or replaced keeps its offset. Later files move up in their order. New and
//! replaced files come last, so that all images of one base begin with the same bytes.
//!
//! | structure | change |
//! |---|---|
//! | volume descriptors | the volume's size; the root's record, if the root directory moves |
//! | directories | records change in place; a directory that outgrows its sectors moves after the files |
//! | path tables | only if a directory moves |
//! | El Torito catalogue | keeps its sector; entries follow boot images that move |
//! | boot info table of isolinux | follows its file |
//! | MBR and both GPTs | new size, new end, new checksums; identifiers stay |
//! | `coreiso+`, `coreKarg` headers | follow their areas; zeroed if the file around an area is dropped |
//! | application use field of the volume descriptor | [the reason for the re-layout](BaseImage::layout_reason) |
//! | HFS+ and Apple partition map (ppc64le) | zeroed: their offsets are no longer correct |
//! | UDF, which no builder of CoreOS images adds | such images are rejected |
//!
//! If a structure points at bytes that move, it must point at the start of a file. Otherwise the image is rejected,
//! because its new target is unknown. A structure that points at bytes that stay is kept unchanged, valid or not.
//!
//! An image for ppc64le keeps what POWER firmware starts: the ISO 9660 tree with `ppc/bootinfo.txt` and `boot/grub`,
//! and the protective MBR. It loses HFS+ and the Apple partition map.

mod boot_config;
mod boot_images;
mod changes;
mod directory;
mod fields;
pub(crate) mod oversized_edits;
mod oversized_kargs;
mod partitions;
mod placement;
mod raw_record;
mod relayout_mark;
mod structures;
mod system_area;

use std::sync::Arc;

use self::changes::RelayoutChanges;
use self::placement::Placement;
use crate::base::BaseImage;
use crate::error::Result;
use crate::plan::Plan;

pub use self::changes::{FileContents, FileOperations};

impl BaseImage {
    /// Plans a re-layout with changed files. All other files keep their contents.
    ///
    /// # Errors
    ///
    /// Returns an error if a path (or the directory of a new file) does not exist, a name cannot be stored, the image
    /// exceeds its 32-bit fields, a file that firmware starts is dropped, or the image's structures contradict each
    /// other or are in an order that a re-layout cannot keep.
    pub fn relayout(&self, operations: &FileOperations) -> Result<Plan> {
        let reason = "files were changed";
        plan_changes(self, &RelayoutChanges { files: operations.clone(), kargs: None, reason })
    }
}

/// Plans the image with `changes`.
fn plan_changes(image: &BaseImage, changes: &RelayoutChanges) -> Result<Plan> {
    if changes.files.is_empty() {
        return Ok(Plan::from_source(Arc::clone(image.source())));
    }
    let mut placement = Placement::new(image, &changes.files)?;
    let mut patches = directory::directory_patches(image, &mut placement)?;
    let plan = structures::pad_for_partition_tables(image, &placement, &placement.plan(image)?);
    patches.extend(structures::structure_patches(image, &placement, changes.kargs.as_ref(), &plan)?);
    patches.extend(relayout_mark::mark_patch(image, changes.reason)?);
    plan.patched_structures(patches)
}
