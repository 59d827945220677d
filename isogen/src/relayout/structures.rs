//! Structures that change when files move: sizes, boot catalogue, partition tables, headers.

use super::boot_images::BootImages;
use super::changes::KargsLayout;
use super::fields::{both_endian, patch, sector, zeros};
use super::partitions::{BACKUP_GPT_LEN, CYLINDER, NewTables};
use super::placement::Placement;
use super::system_area::SystemArea;
use crate::base::BaseImage;
use crate::error::Result;
use crate::extent::{Extent, SECTOR_SIZE};
use crate::plan::{Patch, Plan, Segment};

/// Appends the zeros that the partition tables need at the end of the image.
pub(super) fn resize(image: &BaseImage, placement: &Placement, plan: Plan) -> Plan {
    let volume = placement.volume_sectors() * SECTOR_SIZE;
    if image.partitions().gpt.is_none() {
        return plan;
    }
    let mut len = volume.next_multiple_of(CYLINDER);
    if len - volume < BACKUP_GPT_LEN {
        len += CYLINDER;
    }
    plan.followed_by([Segment::Zero(len - volume)])
}

/// Returns the changes of all structures but directories and the root records of volume descriptors.
pub(super) fn patches(
    image: &BaseImage,
    placement: &Placement,
    kargs: Option<&KargsLayout>,
    plan: &Plan,
) -> Result<Vec<Patch>> {
    let space = sector(image, placement.volume_sectors())?.0;
    let descriptors = [Some(image.volume().primary()), image.volume().joliet()].into_iter().flatten();
    let mut patches: Vec<Patch> =
        descriptors.map(|descriptor| patch(descriptor.sector.offset() + 80, both_endian(space))).collect();
    let boot = BootImages::new(image, placement)?;
    patches.extend(boot.patches());
    let mut system_area = SystemArea::read(image)?;
    let tables = NewTables::new(image, placement, &boot, plan.len())?;
    patches.extend(tables.write(&mut system_area));
    system_area.move_ignition_header(image, placement);
    system_area.move_kargs_header(image, placement, kargs);
    patches.extend(system_area.patch());
    patches.extend(hfs_headers(image));
    Ok(patches)
}

/// Clears the volume headers of an HFS+ file system that an Apple partition map names: its catalogue has the old
/// offsets of files.
fn hfs_headers(image: &BaseImage) -> Vec<Patch> {
    let partitions = image.partitions().apple.iter().filter(|it| it.type_name == "Apple_HFS");
    let first_data = image.volume().files_by_extent().keys().next().map_or(0, |extent| extent.offset());
    let headers = partitions.filter_map(|it| Extent::new(u64::from(it.start) * SECTOR_SIZE + 1024, 512));
    // A header before the files still exists. The copy at the end is not part of the new image.
    headers.filter(|header| header.end() <= first_data).map(zeros).collect()
}
