//! Updates the structures that change when files move: volume sizes, boot catalogue, partition tables and headers.

use super::boot_images::BootImageChanges;
use super::changes::KargsLayout;
use super::fields::{bytes_patch, to_sector, zero_patch};
use super::partitions::{BACKUP_GPT_LEN, CYLINDER, change_tables};
use super::placement::Placement;
use super::system_area::SystemArea;
use crate::base::BaseImage;
use crate::checked_fields::both_endian;
use crate::error::{OrInternal, Result};
use crate::extent::{Extent, SECTOR_SIZE};
use crate::plan::{Patch, Plan, Segment};

/// Appends the zeros that the partition tables require at the end of the image.
pub(super) fn pad_for_partition_tables(image: &BaseImage, placement: &Placement, plan: &Plan) -> Plan {
    let volume = placement.volume_sectors() * SECTOR_SIZE;
    if image.partitions().gpt.is_none() {
        return plan.clone();
    }
    let mut len = volume.next_multiple_of(CYLINDER);
    if len - volume < BACKUP_GPT_LEN {
        len += CYLINDER;
    }
    plan.followed_by([Segment::Zero(len - volume)])
}

/// Returns the patches of all structures except directories and the root records in volume descriptors.
pub(super) fn structure_patches(
    image: &BaseImage,
    placement: &Placement,
    kargs: Option<&KargsLayout>,
    plan: &Plan,
) -> Result<Vec<Patch>> {
    let space = to_sector(placement.volume_sectors())?.0;
    let descriptors = image.volume().trees().map(|(descriptor, _)| descriptor.sector.offset());
    let mut patches: Vec<Patch> = descriptors.map(|at| bytes_patch(at + 80, both_endian(space))).collect();
    let boot = BootImageChanges::new(image, placement)?;
    patches.extend(boot.patches());
    let mut system_area = SystemArea::read(image)?;
    patches.extend(change_tables(image, placement, &boot, &mut system_area, plan.len())?);
    system_area.move_ignition_header(image, placement)?;
    system_area.move_kargs_header(image, placement, kargs)?;
    patches.extend(system_area.patch());
    patches.extend(clear_hfs_headers(image)?);
    Ok(patches)
}

/// Zeroes the volume headers of an HFS+ file system in an Apple partition, because its catalogue contains the old
/// offsets of files.
fn clear_hfs_headers(image: &BaseImage) -> Result<Vec<Patch>> {
    let partitions = image.partitions().apple.iter().filter(|it| it.type_name == "Apple_HFS");
    // In an image without files, no catalogue contains file offsets, so no header is zeroed.
    let first_data = image.volume().files_by_extent().keys().next().map_or(0, |extent| extent.offset());
    let mut patches = Vec::new();
    for partition in partitions {
        let at = u64::from(partition.start) * SECTOR_SIZE + 1024;
        let header = Extent::new(at, 512).or_internal("offset of an HFS+ header", at)?;
        // Zero only a header before the files. The new image does not contain the copy of the header at the end.
        if header.end() <= first_data {
            patches.push(zero_patch(header));
        }
    }
    Ok(patches)
}
