//! What else has to follow when files move: sizes, boot catalogue, partition tables, headers.

use super::boot_images::BootImages;
use super::partitions;
use super::placement::Placement;
use super::{KargsPlaces, both_endian, patch, sector, zeros};
use crate::base::BaseImage;
use crate::error::Result;
use crate::extent::{Extent, SECTOR_SIZE, Sector};
use crate::plan::{Patch, Plan, Segment};

/// What isohybrid rounds an image up to: 64 heads of 32 sectors of 512 bytes, one cylinder.
pub(super) const CYLINDER: u64 = 1 << 20;
/// A GPT table and header at the end of a disk.
pub(super) const BACKUP_GPT_LEN: u64 = 16_896;
/// Legacy headers of 2020 and 2021.
const KARGS_HEADER: u64 = 32_672;
const IGNITION_HEADER: u64 = 32_744;

/// The plan with the end that its partition tables need.
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

/// The changes of everything but directories and descriptors' root records.
pub(super) fn patches(
    image: &BaseImage,
    placement: &Placement,
    kargs: Option<&KargsPlaces>,
    plan: &Plan,
) -> Result<Vec<Patch>> {
    let space = sector(image, placement.volume_sectors())?.0;
    let descriptors = [Some(image.volume().primary()), image.volume().joliet()].into_iter().flatten();
    let mut patches: Vec<Patch> =
        descriptors.map(|descriptor| patch(descriptor.sector.offset() + 80, both_endian(space))).collect();
    let boot = BootImages::new(image, placement)?;
    patches.extend(boot.patches());
    let mut system_area = SystemArea::read(image)?;
    let tables = partitions::NewTables::new(image, placement, &boot, plan.len())?;
    patches.extend(tables.write(&mut system_area));
    system_area.move_ignition_header(image, placement);
    system_area.move_kargs_header(image, placement, kargs);
    patches.extend(system_area.patch());
    patches.extend(hfs_headers(image));
    Ok(patches)
}

/// The first sixteen sectors, changed in memory and written as one.
pub(super) struct SystemArea {
    before: Vec<u8>,
    bytes: Vec<u8>,
}

impl SystemArea {
    fn read(image: &BaseImage) -> Result<Self> {
        let bytes = image.source().read_extent(Extent::at_sector(Sector(0), 32 << 10))?;
        Ok(Self { before: bytes.clone(), bytes })
    }

    pub(super) fn set(&mut self, at: u64, bytes: &[u8]) {
        let Ok(at) = usize::try_from(at) else { return };
        if let Some(field) = self.bytes.get_mut(at..at + bytes.len()) {
            field.copy_from_slice(bytes);
        }
    }

    pub(super) fn clear(&mut self, at: u64, len: usize) {
        self.set(at, &vec![0; len]);
    }

    pub(super) fn get(&self, at: usize, len: usize) -> &[u8] {
        self.bytes.get(at..at + len).unwrap_or_default()
    }

    fn patch(&self) -> Option<Patch> {
        (self.bytes != self.before).then(|| patch(0, self.bytes.clone()))
    }

    /// Lets the header of old images point at the Ignition area.
    fn move_ignition_header(&mut self, image: &BaseImage, placement: &Placement) {
        let Some(extent) = image.headers().ignition else { return };
        match new_offset(image, placement, extent) {
            Some((offset, len)) => {
                self.set(IGNITION_HEADER + 8, &offset.to_le_bytes());
                self.set(IGNITION_HEADER + 16, &len.to_le_bytes());
            }
            None => self.clear(IGNITION_HEADER, 24),
        }
    }

    /// Lets the header of old images point at the kernel arguments.
    fn move_kargs_header(&mut self, image: &BaseImage, placement: &Placement, kargs: Option<&KargsPlaces>) {
        let Some(header) = &image.headers().kargs else { return };
        let moved = |offset: u64| {
            let extent = Extent::new(offset, header.area_len)?;
            let (path, inside) = image.file_around(extent)?;
            let Some(file) = placement.new_file(&path) else {
                return Some(placement.moved_offset(extent).unwrap_or(offset));
            };
            // The default arguments are no area of a boot loader's, and stay where they are in their file.
            let areas = kargs?;
            Some(file.extent.offset() + areas.offsets.get(&path).copied().unwrap_or(inside))
        };
        let offsets = std::iter::once(header.default_offset).chain(header.offsets.iter().copied());
        match offsets.map(moved).collect::<Option<Vec<_>>>() {
            Some(offsets) => {
                let len = kargs.map_or(header.area_len, |kargs| kargs.len);
                for (value, at) in std::iter::once(len).chain(offsets).zip((KARGS_HEADER + 8..).step_by(8)) {
                    self.set(at, &value.to_le_bytes());
                }
            }
            None => self.clear(KARGS_HEADER, 72),
        }
    }
}

/// Where the Ignition area of a header is now: it is a file of its own.
fn new_offset(image: &BaseImage, placement: &Placement, extent: Extent) -> Option<(u64, u64)> {
    let path = image.file_at(extent)?;
    if let Some(file) = placement.new_file(&path) {
        return Some((file.extent.offset(), file.extent.len()));
    }
    if placement.dropped.contains(&path) {
        return None;
    }
    Some((placement.moved_offset(extent).unwrap_or(extent.offset()), extent.len()))
}

/// The volume headers of an HFS+ file system around the files, where an Apple partition map names one: its catalogue
/// says where the files were.
fn hfs_headers(image: &BaseImage) -> Vec<Patch> {
    let partitions = image.partitions().apple.iter().filter(|it| it.type_name == "Apple_HFS");
    let first_data = image.volume().files_by_extent().keys().next().map_or(0, |extent| extent.offset());
    let headers = partitions.filter_map(|it| Extent::new(u64::from(it.start) * SECTOR_SIZE + 1024, 512));
    // Only one that stands before the files is still there; the copy at the end went with the old end.
    headers.filter(|header| header.end() <= first_data).map(zeros).collect()
}
