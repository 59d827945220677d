//! The partition tables of the new image: MBR, GPT and its copy at the end. An Apple partition map is removed.
//!
//! Each table has a partition that is the whole image. Another partition may be a boot image, which it follows.

use super::boot_images::BootImages;
use super::fields::patch;
use super::placement::Placement;
use super::system_area::SystemArea;
use crate::base::BaseImage;
use crate::bytes_at::u32_le;
use crate::error::Result;
use crate::extent::{Extent, SECTOR_SIZE, Sector};
use crate::partitions::{DISK_SECTOR_SIZE, Gpt, GptPartition, Mbr, MbrPartition, crc32};
use crate::plan::Patch;

/// The unit to which isohybrid rounds up an image: a cylinder of 64 heads with 32 sectors of 512 bytes.
pub(super) const CYLINDER: u64 = 1 << 20;
/// A GPT table and header at the end of a disk.
pub(super) const BACKUP_GPT_LEN: u64 = 16_896;
/// Offsets and lengths of the GPT header and table, as isohybrid writes them.
const HEADER: u64 = 512;
const HEADER_LEN: u32 = 92;
const TABLE: u64 = 1024;
const TABLE_LEN: usize = 16_384;
const ENTRIES: u32 = 128;
const ENTRY_LEN: u32 = 128;
/// The MBR's table, its entries, and the sector of isolinux for the boot code.
const MBR_TABLE: u64 = 446;
const MBR_ENTRY_LEN: u64 = 16;
const MBR_BOOT_SECTOR: u64 = 432;

/// The changes of the tables.
#[derive(Debug, Default)]
pub(super) struct NewTables {
    has_apple: bool,
    has_gpt: bool,
    /// Bytes of the new image.
    len: u64,
    /// Fields of the system area.
    fields: Vec<(u64, Vec<u8>)>,
}

/// The values against which partitions are checked.
struct Frame<'a> {
    image: &'a BaseImage,
    boot: &'a BootImages,
    /// Disk sectors of the base, rounded up.
    disk_sectors: u64,
    /// Disk sectors of the base image's volume and of the new volume.
    volume: (u64, u64),
    /// Disk sectors that keep their number.
    kept: u64,
}

impl NewTables {
    /// Computes the changes for a new image of `len` bytes.
    pub(super) fn new(image: &BaseImage, placement: &Placement, boot: &BootImages, len: u64) -> Result<Self> {
        let tables = image.partitions();
        let factor = SECTOR_SIZE / DISK_SECTOR_SIZE;
        let frame = Frame {
            image,
            boot,
            disk_sectors: image.source().len().div_ceil(DISK_SECTOR_SIZE),
            volume: (
                u64::from(image.volume().primary().space_size) * factor,
                placement.volume_sectors() * factor,
            ),
            kept: placement.kept() / DISK_SECTOR_SIZE,
        };
        let (has_apple, has_gpt) = (!tables.apple.is_empty(), tables.gpt.is_some());
        let mut new = Self { has_apple, has_gpt, len, fields: Vec::new() };
        if let Some(mbr) = &tables.mbr {
            new.change_mbr(&frame, mbr)?;
        }
        if let Some(gpt) = &tables.gpt {
            new.change_gpt(&frame, gpt)?;
        }
        Ok(new)
    }

    fn change_mbr(&mut self, frame: &Frame<'_>, mbr: &Mbr) -> Result<()> {
        for partition in &mbr.partitions {
            let at = MBR_TABLE + MBR_ENTRY_LEN * (partition.number as u64 - 1);
            if partition.number == 1 {
                frame.check_whole(at, "MBR partition 1", mbr_range(partition), frame.disk_sectors)?;
                let disk_sectors = u32::try_from(self.len / DISK_SECTOR_SIZE).unwrap_or(u32::MAX);
                self.put(at + 12, disk_sectors.saturating_sub(partition.start).to_le_bytes());
                if mbr.boot_sector != 0 {
                    self.put(at + 5, last_cylinder(self.len));
                } else if frame.bytes(at + 5, 3)? == address(frame.disk_sectors - 1) {
                    self.put(at + 5, address(u64::from(disk_sectors) - 1));
                }
            } else if let Some((first, count)) = frame.follow(at, "MBR partition", mbr_range(partition))? {
                let field = |number: u64| u32::try_from(number).unwrap_or(u32::MAX).to_le_bytes();
                self.put(at + 8, [field(first), field(count)].concat());
            }
        }
        if mbr.boot_sector != 0 && !self.has_apple {
            let range = (u64::from(mbr.boot_sector), 1);
            if let Some((first, _)) = frame.follow(MBR_BOOT_SECTOR, "sector of isolinux in the MBR", range)? {
                self.put(MBR_BOOT_SECTOR, u32::try_from(first).unwrap_or(u32::MAX).to_le_bytes());
            }
        }
        Ok(())
    }

    fn change_gpt(&mut self, frame: &Frame<'_>, gpt: &Gpt) -> Result<()> {
        check_gpt(frame.image, gpt)?;
        let last = self.len / DISK_SECTOR_SIZE - 1;
        self.put(HEADER + 32, last.to_le_bytes());
        // The table takes 32 sectors, the header one.
        self.put(HEADER + 48, (last - 33).to_le_bytes());
        for partition in &gpt.partitions {
            let at = TABLE + u64::from(ENTRY_LEN) * (partition.number as u64 - 1);
            let range = gpt_range(frame.image, at, partition)?;
            if partition.number == 1 {
                frame.check_whole(at + 32, "GPT partition 1", range, frame.disk_sectors)?;
                self.put(at + 40, (frame.volume.1 - 1).to_le_bytes());
            } else if let Some((first, count)) = frame.follow(at + 32, "GPT partition", range)? {
                self.put(at + 32, [first, first + count - 1].map(u64::to_le_bytes).concat());
            }
        }
        Ok(())
    }

    fn put(&mut self, at: u64, bytes: impl Into<Vec<u8>>) {
        self.fields.push((at, bytes.into()));
    }

    /// Writes the tables into the system area and returns the copy of the GPT for the end of the image.
    pub(super) fn write(&self, area: &mut SystemArea) -> Option<Patch> {
        if self.has_apple {
            clear_apple(area);
        }
        for (at, bytes) in &self.fields {
            area.set(*at, bytes);
        }
        if !self.has_gpt {
            return None;
        }
        let checksum = crc32(area.get(1024, TABLE_LEN));
        area.set(HEADER + 88, &checksum.to_le_bytes());
        let header = sealed(area.get(512, 512).to_vec());
        area.set(HEADER, &header);
        self.backup_gpt(area)
    }

    /// Returns the table, then the header with both offsets swapped.
    fn backup_gpt(&self, area: &SystemArea) -> Option<Patch> {
        let last = self.len / DISK_SECTOR_SIZE - 1;
        let mut header = area.get(512, 512).to_vec();
        for (at, value) in [(24, last), (32, 1), (72, last - 32)] {
            header.get_mut(at..at + 8)?.copy_from_slice(&value.to_le_bytes());
        }
        Some(patch(self.len - BACKUP_GPT_LEN, [area.get(1024, TABLE_LEN), &sealed(header)].concat()))
    }
}

impl Frame<'_> {
    fn bytes(&self, at: u64, len: u64) -> Result<Vec<u8>> {
        Extent::new(at, len).map_or(Ok(Vec::new()), |extent| self.image.source().read_extent(extent))
    }

    /// Checks that a partition is the whole image: at least its volume, at most the file.
    fn check_whole(&self, at: u64, what: &'static str, (first, count): (u64, u64), most: u64) -> Result<()> {
        let end = first.saturating_add(count);
        // The partition of a protective MBR does not include the MBR.
        if first <= 1 && (self.volume.0..=most).contains(&end) {
            return Ok(());
        }
        let expected = format!("disk sectors 0 to {}, or up to {most}", self.volume.0);
        Err(self.image.source().malformed(at, what, expected, format!("{first} to {end}")))
    }

    /// Returns the new first disk sector and count of a partition, if they change.
    fn follow(&self, at: u64, what: &'static str, (first, count): (u64, u64)) -> Result<Option<(u64, u64)>> {
        let end = first.saturating_add(count);
        match self.boot.at_disk_sector(first).filter(|boot| boot.holds(count)) {
            Some(boot) if boot.is_resized() => Ok(Some((boot.first_disk_sector(), u64::from(boot.count)))),
            Some(boot) if boot.first_disk_sector() != first => Ok(Some((boot.first_disk_sector(), count))),
            Some(_) => Ok(None),
            None if end <= self.kept => Ok(None),
            None => {
                let expected = "a boot image, or disk sectors that stay";
                Err(self.image.source().malformed(at, what, expected, format!("{first} to {end}")))
            }
        }
    }
}

fn mbr_range(partition: &MbrPartition) -> (u64, u64) {
    (u64::from(partition.start), u64::from(partition.count))
}

fn gpt_range(image: &BaseImage, at: u64, partition: &GptPartition) -> Result<(u64, u64)> {
    let count = partition.last.checked_sub(partition.first).and_then(|count| count.checked_add(1));
    let found = || format!("{} to {}", partition.first, partition.last);
    let backwards =
        || image.source().malformed(at, "GPT partition", "a last sector behind the first", found());
    Ok((partition.first, count.ok_or_else(backwards)?))
}

/// Checks that a GPT is like those of isohybrid: offsets, sizes and two partitions.
fn check_gpt(image: &BaseImage, gpt: &Gpt) -> Result<()> {
    let header = image.source().read_extent(Extent::at_sector(Sector(0), 2048))?;
    let header = header.get(512..).unwrap_or_default();
    let sizes = [12, 80, 84].map(|at| u32_le(header, at).unwrap_or_default());
    let numbers: Vec<usize> = gpt.partitions.iter().map(|partition| partition.number).collect();
    let usual = sizes == [HEADER_LEN, ENTRIES, ENTRY_LEN] && gpt.table == 2 && gpt.current == 1;
    if gpt.header_crc_ok && gpt.table_crc_ok && usual && numbers == [1, 2] {
        return Ok(());
    }
    let found = format!(
        "a header of {} bytes for sector {}, a table of {} entries of {} bytes at sector {} with partitions \
         {numbers:?}, checksums right: {} and {}",
        sizes[0], gpt.current, sizes[1], sizes[2], gpt.table, gpt.header_crc_ok, gpt.table_crc_ok
    );
    Err(image.source().malformed(
        gpt.position,
        "GPT",
        "a sound one with two partitions, as isohybrid makes it",
        found,
    ))
}

/// Clears the driver descriptor and the entries of the Apple partition map.
fn clear_apple(area: &mut SystemArea) {
    area.clear(0, 440);
    for at in (2048..16_384).step_by(2048) {
        if area.get(at, 2) == b"PM" {
            area.clear(at as u64, 2048);
        }
    }
}

/// Encodes the last cylinder for an MBR: head 63, sector 32, up to 1024 cylinders.
fn last_cylinder(len: u64) -> [u8; 3] {
    let cylinder = (len / CYLINDER).clamp(1, 1024) - 1;
    let [low, high, ..] = cylinder.to_le_bytes();
    [63, 32 | (high & 3) << 6, low]
}

/// Encodes head, sector and cylinder of a disk sector, for 64 heads and 32 sectors, up to 1024 cylinders.
fn address(disk_sector: u64) -> [u8; 3] {
    let cylinder = (disk_sector / 2048).min(1023);
    let [low, high, ..] = cylinder.to_le_bytes();
    let [head, ..] = (disk_sector / 32 % 64).to_le_bytes();
    let [sector, ..] = (disk_sector % 32 + 1).to_le_bytes();
    [head, sector | high << 6, low]
}

/// Returns a GPT header with its checksum.
fn sealed(mut header: Vec<u8>) -> Vec<u8> {
    header.get_mut(16..20).unwrap_or_default().fill(0);
    let crc = crc32(header.get(..92).unwrap_or_default());
    if let Some(field) = header.get_mut(16..20) {
        field.copy_from_slice(&crc.to_le_bytes());
    }
    header
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_those_of_mastering_programs() {
        // As libisofs and isohybrid write them for images of 796 sectors, of 1 MiB and of 700 MiB.
        assert_eq!(address(795), [0x18, 0x1C, 0]);
        assert_eq!(address((1 << 11) - 1), last_cylinder(1 << 20));
        assert_eq!(address((700 << 11) - 1), last_cylinder(700 << 20));
        assert_eq!(last_cylinder(700 << 20), [63, 32 | 0x80, 0xBB]);
        assert_eq!(last_cylinder(4000 << 20), [63, 32 | 0xC0, 0xFF]);
    }
}
