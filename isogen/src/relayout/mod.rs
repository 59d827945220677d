//! Re-layout: drops, adds and replaces files of a base image without mastering the image again.
//!
//! A re-layout produces only new metadata: the directory records of both trees, volume sizes, the boot catalogue and
//! boot info table, partition tables, and the headers of old images. An unchanged file is a reference into the base
//! image. All bytes before the first dropped or replaced file keep their offsets. Later files move to lower offsets and
//! keep their order. New and replaced files come last, so that all artifacts of one base image begin with the same
//! bytes.
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
//! If a structure refers to bytes that move, it must refer to the start of a file. Otherwise the image is rejected,
//! because the new target is unknown. A structure that refers to bytes that do not move is kept unchanged, even if it
//! is not valid.
//!
//! A ppc64le image keeps what POWER firmware boots from: the ISO 9660 tree with `ppc/bootinfo.txt` and `boot/grub`, and
//! the protective MBR. It loses HFS+ and the Apple partition map.

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
    /// Returns an error if a path or the directory of a new file does not exist, if a name cannot be stored, if the
    /// image exceeds 32-bit fields, if the operations drop a file that firmware boots, or if the structures of the
    /// image contradict each other or are in an order that a re-layout does not support.
    pub fn relayout(&self, operations: &FileOperations) -> Result<Plan> {
        let reason = "files were changed";
        plan_changes(self, &RelayoutChanges { files: operations.clone(), kargs: None, reason })
    }
}

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
