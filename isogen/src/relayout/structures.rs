//! What else has to follow when files move: sizes, boot catalogue, partition tables, headers.

use super::placement::Placement;
use super::{KargsPlaces, both_endian, patch, sector, zeros};
use crate::Result;
use crate::base::BaseImage;
use crate::bytes_at::u64_le;
use crate::eltorito::Platform;
use crate::extent::{Extent, SECTOR_SIZE, Sector};
use crate::partitions::{DISK_SECTOR_SIZE, crc32};
use crate::plan::{Patch, Plan, Segment};

/// What isohybrid rounds an image up to: 64 heads of 32 sectors of 512 bytes, one cylinder.
const CYLINDER: u64 = 1 << 20;
/// A GPT table and header at the end of a disk.
const BACKUP_GPT_LEN: u64 = 16_896;
/// Bytes of a partition table that isohybrid writes.
const GPT_TABLE_LEN: u64 = 16_384;
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
    let boot = BootImages::new(image, placement);
    patches.extend(boot.patches());
    check_gpt(image)?;
    let mut system_area = SystemArea::read(image)?;
    system_area.resize(image, placement, &boot, plan.len());
    system_area.move_ignition_header(image, placement);
    system_area.move_kargs_header(image, placement, kargs);
    patches.extend(system_area.patch());
    patches.extend(system_area.backup_gpt(image, plan.len()));
    patches.extend(hfs_headers(image));
    Ok(patches)
}

/// Makes sure that a GPT is one as isohybrid writes it: at the usual places, and with the usual two partitions.
fn check_gpt(image: &BaseImage) -> Result<()> {
    let Some(gpt) = &image.partitions().gpt else { return Ok(()) };
    let numbers: Vec<usize> = gpt.partitions.iter().map(|partition| partition.number).collect();
    if gpt.header_crc_ok && gpt.table_crc_ok && gpt.table == 2 && numbers == [1, 2] {
        return Ok(());
    }
    let found = format!(
        "a table at sector {} with partitions {numbers:?}, checksums right: {} and {}",
        gpt.table, gpt.header_crc_ok, gpt.table_crc_ok
    );
    Err(image.refuse_layout(
        gpt.position,
        "GPT",
        "a sound one with two partitions, as isohybrid makes it",
        found,
    ))
}

/// Where the boot images of the catalogue are now, and how much of them is loaded.
struct BootImages {
    /// Position of the entry in the catalogue, platform, new sector, new count; only those that change.
    changed: Vec<(u64, Platform, Sector, Option<u16>)>,
    /// Where isolinux' boot info table is now, if the file moved.
    info_table: Option<(u64, Sector)>,
}

impl BootImages {
    fn new(image: &BaseImage, placement: &Placement) -> Self {
        let mut boot = Self { changed: Vec::new(), info_table: None };
        let tree = image.volume().tree();
        for entry in image.boot_catalog().iter().flat_map(|catalog| &catalog.entries).filter(|it| it.bootable)
        {
            let file = tree.entries().find(|(_, file)| {
                file.directory.is_none() && file.record.sector == entry.sector && !file.extent.is_empty()
            });
            let path = file.map(|(id, _)| tree.path(id)).unwrap_or_default();
            if let Some(new) = placement.new.iter().find(|file| file.path == path) {
                let place = Sector(u32::try_from(new.extent.offset() / SECTOR_SIZE).unwrap_or(u32::MAX));
                let grown = file.is_none_or(|(_, old)| old.extent.len() != new.extent.len());
                // Sixteen bits: more than 32 MiB cannot be said, and firmware loads what it needs.
                let count = || u16::try_from(new.extent.len().div_ceil(SECTOR_SIZE) * 4).unwrap_or(u16::MAX);
                boot.changed.push((entry.position, entry.platform, place, grown.then(count)));
            } else if let Some(place) =
                placement.moved_sector(entry.sector).filter(|place| *place != entry.sector)
            {
                boot.changed.push((entry.position, entry.platform, place, None));
                if entry.platform == Platform::Bios && path.ends_with("isolinux.bin") {
                    boot.info_table = Some((place.offset() + 12, place));
                }
            }
        }
        boot
    }

    fn patches(&self) -> Vec<Patch> {
        let mut patches = Vec::new();
        for (position, _, sector, count) in &self.changed {
            patches.push(patch(position + 8, sector.0.to_le_bytes()));
            patches.extend(count.map(|count| patch(position + 6, count.to_le_bytes())));
        }
        // The checksum is of the bytes behind the table, so a new place leaves it as it is.
        patches.extend(self.info_table.map(|(at, sector)| patch(at, sector.0.to_le_bytes())));
        patches
    }

    fn moved(&self, platform: Platform) -> Option<Sector> {
        self.changed.iter().find(|(_, of, ..)| *of == platform).map(|(_, _, sector, _)| *sector)
    }
}

/// The first sixteen sectors, changed in memory and written as one.
struct SystemArea {
    before: Vec<u8>,
    bytes: Vec<u8>,
}

impl SystemArea {
    fn read(image: &BaseImage) -> Result<Self> {
        let bytes = image.source().read_extent(Extent::at_sector(Sector(0), 32 << 10))?;
        Ok(Self { before: bytes.clone(), bytes })
    }

    fn set(&mut self, at: u64, bytes: &[u8]) {
        let Ok(at) = usize::try_from(at) else { return };
        if let Some(field) = self.bytes.get_mut(at..at + bytes.len()) {
            field.copy_from_slice(bytes);
        }
    }

    fn clear(&mut self, at: u64, len: usize) {
        self.set(at, &vec![0; len]);
    }

    fn patch(&self) -> Option<Patch> {
        (self.bytes != self.before).then(|| patch(0, self.bytes.clone()))
    }

    fn resize(&mut self, image: &BaseImage, placement: &Placement, boot: &BootImages, len: u64) {
        let tables = image.partitions();
        if !tables.apple.is_empty() {
            self.clear_apple();
        }
        if let Some(mbr) = &tables.mbr {
            self.resize_mbr(mbr, boot, len);
        }
        if tables.gpt.is_some() {
            self.resize_gpt(placement, boot, len);
        }
    }

    /// The driver descriptor and the map's entries: all that makes a disk an Apple one.
    fn clear_apple(&mut self) {
        self.clear(0, 440);
        for at in (2048..16_384).step_by(2048) {
            if self.bytes.get(at..at + 2) == Some(b"PM") {
                self.clear(at as u64, 2048);
            }
        }
    }

    fn resize_mbr(&mut self, mbr: &crate::partitions::Mbr, boot: &BootImages, len: u64) {
        let disk_sectors = u32::try_from(len / DISK_SECTOR_SIZE).unwrap_or(u32::MAX);
        for partition in &mbr.partitions {
            let at = 446 + 16 * (partition.number as u64 - 1);
            if partition.number == 1 {
                self.set(at + 12, &disk_sectors.saturating_sub(partition.start).to_le_bytes());
                if mbr.boot_sector != 0 {
                    self.set(at + 5, &last_cylinder(len));
                }
            } else if let Some(sector) = boot.moved(Platform::Efi) {
                self.set(at + 8, &sector.0.saturating_mul(4).to_le_bytes());
            }
        }
        if let Some(sector) = boot.moved(Platform::Bios).filter(|_| mbr.boot_sector != 0) {
            self.set(432, &sector.0.saturating_mul(4).to_le_bytes());
        }
    }

    fn resize_gpt(&mut self, placement: &Placement, boot: &BootImages, len: u64) {
        let last = len / DISK_SECTOR_SIZE - 1;
        self.set(512 + 32, &last.to_le_bytes());
        // The table takes 32 sectors, the header one.
        self.set(512 + 48, &(last - 33).to_le_bytes());
        let volume_end = placement.volume_sectors() * (SECTOR_SIZE / DISK_SECTOR_SIZE) - 1;
        self.set(1024 + 40, &volume_end.to_le_bytes());
        if let Some(sector) = boot.moved(Platform::Efi) {
            let at = 1024 + 128;
            let count = u64_le(&self.bytes, at + 40)
                .zip(u64_le(&self.bytes, at + 32))
                .map_or(0, |(last, first)| last.saturating_sub(first));
            let first = u64::from(sector.0) * (SECTOR_SIZE / DISK_SECTOR_SIZE);
            self.set(1024 + 128 + 32, &first.to_le_bytes());
            self.set(1024 + 128 + 40, &(first + count).to_le_bytes());
        }
        let table = self.table().to_vec();
        self.set(512 + 88, &crc32(&table).to_le_bytes());
        let header = sealed(self.bytes.get(512..1024).unwrap_or_default().to_vec());
        self.set(512, &header);
    }

    fn table(&self) -> &[u8] {
        self.bytes.get(1024..1024 + 16_384).unwrap_or_default()
    }

    /// The copy of the GPT at the end: the table, then the header with both places swapped.
    fn backup_gpt(&self, image: &BaseImage, len: u64) -> Option<Patch> {
        image.partitions().gpt.as_ref()?;
        let last = len / DISK_SECTOR_SIZE - 1;
        let mut header = self.bytes.get(512..1024)?.to_vec();
        for (at, value) in [(24, last), (32, 1), (72, last - GPT_TABLE_LEN / DISK_SECTOR_SIZE)] {
            header.get_mut(at..at + 8)?.copy_from_slice(&value.to_le_bytes());
        }
        Some(patch(len - BACKUP_GPT_LEN, [self.table(), &sealed(header)].concat()))
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
            let path = image.file_at(extent)?;
            let Some(file) = placement.new.iter().find(|file| file.path == path) else {
                return Some(placement.moved_offset(extent).unwrap_or(offset));
            };
            // The default arguments are no area of a boot loader's, and stay where they are in their file.
            let inside = offset - image.require_file(&path).ok()?.extent.offset();
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
    if let Some(file) = placement.new.iter().find(|file| file.path == path) {
        return Some((file.extent.offset(), file.extent.len()));
    }
    if placement.dropped.contains(&path) {
        return None;
    }
    Some((placement.moved_offset(extent).unwrap_or(extent.offset()), extent.len()))
}

/// The last cylinder as an MBR spells it: head 63, sector 32, up to 1024 cylinders.
fn last_cylinder(len: u64) -> [u8; 3] {
    let cylinder = (len / CYLINDER).clamp(1, 1024) - 1;
    let [low, high, ..] = cylinder.to_le_bytes();
    [63, 32 | (high & 3) << 6, low]
}

/// A GPT header with its checksum.
fn sealed(mut header: Vec<u8>) -> Vec<u8> {
    header.get_mut(16..20).unwrap_or_default().fill(0);
    let crc = crc32(header.get(..92).unwrap_or_default());
    if let Some(field) = header.get_mut(16..20) {
        field.copy_from_slice(&crc.to_le_bytes());
    }
    header
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
