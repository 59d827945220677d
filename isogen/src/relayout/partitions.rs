//! Updates the partition tables: the MBR, the GPT, and the backup GPT at the end. Removes an Apple partition map.
//!
//! Each table has one partition for the whole image. Another partition may contain a boot image; it moves with the boot
//! image.

use super::boot_images::BootImageChanges;
use super::fields::bytes_patch;
use super::placement::Placement;
use super::system_area::SystemArea;
use crate::base::BaseImage;
use crate::bytes_at::u32_le;
use crate::checked_fields::{put_slice, slice_at};
use crate::error::{Error, OrInternal, Result};
use crate::extent::{Extent, SECTOR_SIZE, Sector};
use crate::partitions::{DISK_SECTOR_SIZE, Gpt, GptPartition, Mbr, crc32, gpt_header_crc};
use crate::plan::Patch;

/// Length of a cylinder in bytes: 64 heads with 32 sectors of 512 bytes. isohybrid rounds the length of an image up to
/// a multiple of a cylinder.
pub(super) const CYLINDER: u64 = 1 << 20;
/// Length of a backup GPT, which is the table and the header at the end of a disk.
pub(super) const BACKUP_GPT_LEN: u64 = 16_896;
/// Offsets and lengths of the GPT header and table, in the layout of isohybrid.
const GPT_HEADER_AT: usize = 512;
const GPT_HEADER_LEN: u32 = 92;
const GPT_TABLE_AT: usize = 1024;
const GPT_TABLE_LEN: usize = 16_384;
const GPT_ENTRIES: u32 = 128;
const GPT_ENTRY_LEN: u8 = 128;
/// Offsets in the MBR of the partition table and of the sector of isolinux for the boot code. An entry of the table is
/// `MBR_ENTRY_LEN` bytes long.
const MBR_TABLE_AT: usize = 446;
const MBR_ENTRY_LEN: usize = 16;
const MBR_BOOT_SECTOR_AT: usize = 432;

/// The partition tables to change, and the values for checking and updating partitions.
struct TableChange<'a> {
    image: &'a BaseImage,
    boot: &'a BootImageChanges,
    area: &'a mut SystemArea,
    /// Length of the new image in bytes.
    len: u64,
    /// Number of disk sectors of the base image, rounded up.
    disk_sectors: u64,
    /// Number of disk sectors of the volume in the base image.
    old_volume: u64,
    /// Number of disk sectors of the new volume.
    new_volume: u64,
    /// Number of disk sectors that do not move.
    kept: u64,
}

/// Changes the tables in the system area for a new image of `len` bytes. Returns the patch with the backup GPT at the
/// end of the image.
pub(super) fn change_tables(
    image: &BaseImage,
    placement: &Placement,
    boot: &BootImageChanges,
    area: &mut SystemArea,
    len: u64,
) -> Result<Option<Patch>> {
    let tables = image.partitions();
    if !tables.apple.is_empty() {
        clear_apple(area)?;
    }
    let factor = SECTOR_SIZE / DISK_SECTOR_SIZE;
    let mut change = TableChange {
        image,
        boot,
        area,
        len,
        disk_sectors: image.source().len().div_ceil(DISK_SECTOR_SIZE),
        old_volume: u64::from(image.volume().primary().space_size) * factor,
        new_volume: placement.volume_sectors() * factor,
        kept: placement.kept_end / DISK_SECTOR_SIZE,
    };
    if let Some(mbr) = &tables.mbr {
        change.change_mbr(mbr)?;
    }
    tables.gpt.as_ref().map(|gpt| change.change_gpt(gpt)).transpose()
}

impl TableChange<'_> {
    fn change_mbr(&mut self, mbr: &Mbr) -> Result<()> {
        for partition in &mbr.partitions {
            let at = MBR_TABLE_AT + MBR_ENTRY_LEN * (partition.number - 1);
            let range = (u64::from(partition.start), u64::from(partition.count));
            if partition.number == 1 {
                self.check_covers_image(at, "MBR partition 1", range)?;
                // If the disk is too large for the field, the field has the maximum number (UEFI 2.10, 5.2.3).
                let disk_sectors = u32::try_from(self.len / DISK_SECTOR_SIZE).unwrap_or(u32::MAX);
                let count = disk_sectors.checked_sub(partition.start);
                let count = count.or_internal("image that ends before its partition", at as u64)?;
                self.area.set(at + 12, &count.to_le_bytes())?;
                if mbr.boot_sector != 0 {
                    self.area.set(at + 5, &last_chs_address(self.len))?;
                } else if self.area.get(at + 5, 3)? == chs_address(self.disk_sectors - 1) {
                    self.area.set(at + 5, &chs_address(u64::from(disk_sectors) - 1))?;
                }
            } else if let Some((first, count)) = self.moved_range(at, "MBR partition", range)? {
                self.area.set(at + 8, &encode_mbr_number(first)?)?;
                self.area.set(at + 12, &encode_mbr_number(count)?)?;
            }
        }
        if mbr.boot_sector != 0 && self.image.partitions().apple.is_empty() {
            let (what, range) = ("sector of isolinux in the MBR", (u64::from(mbr.boot_sector), 1));
            if let Some((first, _)) = self.moved_range(MBR_BOOT_SECTOR_AT, what, range)? {
                self.area.set(MBR_BOOT_SECTOR_AT, &encode_mbr_number(first)?)?;
            }
        }
        Ok(())
    }

    /// Changes the GPT. Returns the backup GPT: the table, then the header with both header positions swapped.
    fn change_gpt(&mut self, gpt: &Gpt) -> Result<Patch> {
        check_gpt(self.image, gpt)?;
        let last = self.len / DISK_SECTOR_SIZE - 1;
        self.area.set(GPT_HEADER_AT + 32, &last.to_le_bytes())?;
        // The last usable sector is before the backup GPT, whose table is 32 sectors long and whose header is one
        // sector long.
        self.area.set(GPT_HEADER_AT + 48, &(last - 33).to_le_bytes())?;
        for partition in &gpt.partitions {
            let at = GPT_TABLE_AT + usize::from(GPT_ENTRY_LEN) * (partition.number - 1);
            let range = gpt_range(self.image, at, partition)?;
            if partition.number == 1 {
                self.check_covers_image(at + 32, "GPT partition 1", range)?;
                self.area.set(at + 40, &(self.new_volume - 1).to_le_bytes())?;
            } else if let Some((first, count)) = self.moved_range(at + 32, "GPT partition", range)? {
                self.area.set(at + 32, &first.to_le_bytes())?;
                self.area.set(at + 40, &(first + count - 1).to_le_bytes())?;
            }
        }
        let table_crc = crc32(self.area.get(GPT_TABLE_AT, GPT_TABLE_LEN)?);
        self.area.set(GPT_HEADER_AT + 88, &table_crc.to_le_bytes())?;
        let mut header = with_header_crc(self.area.get(GPT_HEADER_AT, 512)?.to_vec())?;
        self.area.set(GPT_HEADER_AT, &header)?;
        for (at, value) in [(24, last), (32, 1), (72, last - 32)] {
            put_slice(&mut header, at, &value.to_le_bytes())?;
        }
        let table = self.area.get(GPT_TABLE_AT, GPT_TABLE_LEN)?;
        Ok(bytes_patch(self.len - BACKUP_GPT_LEN, [table, &with_header_crc(header)?].concat()))
    }

    /// Checks that a partition covers the whole image: at least the volume, at most the file.
    fn check_covers_image(&self, at: usize, what: &'static str, (first, count): (u64, u64)) -> Result<()> {
        let end = first.saturating_add(count);
        // A partition may also begin at sector 1, because the partition of a protective MBR begins after the MBR.
        if first <= 1 && (self.old_volume..=self.disk_sectors).contains(&end) {
            return Ok(());
        }
        let expected = format!("disk sectors 0 to {}, or up to {}", self.old_volume, self.disk_sectors);
        Err(self.image.source().malformed(at as u64, what, expected, format!("{first} to {end}")))
    }

    /// Returns the new first disk sector and count of a partition, or `None` if it does not move.
    fn moved_range(
        &self,
        at: usize,
        what: &'static str,
        (first, count): (u64, u64),
    ) -> Result<Option<(u64, u64)>> {
        let end = first.saturating_add(count);
        match self.boot.find_by_old_disk_sector(first).filter(|boot| boot.contains_partition(count)) {
            Some(boot) if boot.is_resized() => {
                Ok(Some((boot.first_disk_sector(), u64::from(boot.load_count))))
            }
            Some(boot) if boot.first_disk_sector() != first => Ok(Some((boot.first_disk_sector(), count))),
            Some(_) => Ok(None),
            None if end <= self.kept => Ok(None),
            None => {
                let expected = "a boot image, or disk sectors that do not move";
                Err(self.image.source().malformed(at as u64, what, expected, format!("{first} to {end}")))
            }
        }
    }
}

/// Encodes a disk sector number or a count for an MBR.
///
/// # Errors
///
/// Returns an error if the number exceeds 32 bits, because the edits move a boot image beyond 2 TiB.
fn encode_mbr_number(number: u64) -> Result<[u8; 4]> {
    u32::try_from(number).map(u32::to_le_bytes).map_err(|_| {
        let (value, reason) = (number.to_string(), "an MBR stores at most 4294967295");
        Error::InvalidEdit { what: "disk sector of a boot image", value, reason }
    })
}

fn gpt_range(image: &BaseImage, at: usize, partition: &GptPartition) -> Result<(u64, u64)> {
    let count = partition.last.checked_sub(partition.first).and_then(|count| count.checked_add(1));
    let backwards = || {
        let actual = format!("{} to {}", partition.first, partition.last);
        image.source().malformed(at as u64, "GPT partition", "a last sector after the first", actual)
    };
    Ok((partition.first, count.ok_or_else(backwards)?))
}

/// Checks that a GPT has the layout of isohybrid: its offsets, its sizes, and two partitions.
fn check_gpt(image: &BaseImage, gpt: &Gpt) -> Result<()> {
    let header = image.source().read_extent(Extent::at_sector(Sector(0), 2048))?;
    let header = slice_at(&header, GPT_HEADER_AT, 512)?;
    let size = |at: usize| u32_le(header, at).or_internal("short GPT header", at as u64);
    let sizes = [size(12)?, size(80)?, size(84)?];
    let numbers: Vec<usize> = gpt.partitions.iter().map(|partition| partition.number).collect();
    let usual = sizes == [GPT_HEADER_LEN, GPT_ENTRIES, u32::from(GPT_ENTRY_LEN)]
        && gpt.table == 2
        && gpt.current == 1;
    if gpt.header_crc_ok && gpt.table_crc_ok && usual && numbers == [1, 2] {
        return Ok(());
    }
    let actual = format!(
        "a header of {} bytes for sector {}, a table of {} entries of {} bytes at sector {} with partitions \
         {numbers:?}, checksums right: {} and {}",
        sizes[0], gpt.current, sizes[1], sizes[2], gpt.table, gpt.header_crc_ok, gpt.table_crc_ok
    );
    let expected = "a valid GPT with two partitions, as written by isohybrid";
    Err(image.source().malformed(gpt.position, "GPT", expected, actual))
}

/// Zeroes the driver descriptor and the entries of the Apple partition map.
fn clear_apple(area: &mut SystemArea) -> Result<()> {
    area.clear(0, 440)?;
    for at in (2048..16_384).step_by(2048) {
        if area.get(at, 2)? == b"PM" {
            area.clear(at, 2048)?;
        }
    }
    Ok(())
}

/// Encodes the last disk sector of an image for an MBR: head 63, sector 32, and at most 1024 cylinders.
fn last_chs_address(len: u64) -> [u8; 3] {
    let cylinder = (len / CYLINDER).clamp(1, 1024) - 1;
    let [low, high, ..] = cylinder.to_le_bytes();
    [63, 32 | (high & 3) << 6, low]
}

/// Encodes head, sector and cylinder of a disk sector, for 64 heads and 32 sectors, at most 1024 cylinders.
fn chs_address(disk_sector: u64) -> [u8; 3] {
    let cylinder = (disk_sector / 2048).min(1023);
    let [low, high, ..] = cylinder.to_le_bytes();
    let [head, ..] = (disk_sector / 32 % 64).to_le_bytes();
    let [sector, ..] = (disk_sector % 32 + 1).to_le_bytes();
    [head, sector | high << 6, low]
}

/// Returns a GPT header with a new checksum.
fn with_header_crc(mut header: Vec<u8>) -> Result<Vec<u8>> {
    let crc = gpt_header_crc(slice_at(&header, 0, 92)?).or_internal("short GPT header", 0)?;
    put_slice(&mut header, 16, &crc.to_le_bytes())?;
    Ok(header)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_match_mastering_programs() {
        // Values that libisofs and isohybrid write for images of 796 sectors, of 1 MiB and of 700 MiB.
        assert_eq!(chs_address(795), [0x18, 0x1C, 0]);
        assert_eq!(chs_address((1 << 11) - 1), last_chs_address(1 << 20));
        assert_eq!(chs_address((700 << 11) - 1), last_chs_address(700 << 20));
        assert_eq!(last_chs_address(700 << 20), [63, 32 | 0x80, 0xBB]);
        assert_eq!(last_chs_address(4000 << 20), [63, 32 | 0xC0, 0xFF]);
    }

    #[test]
    fn gpt_header_without_room_for_its_checksum_is_an_internal_error() {
        assert_eq!(with_header_crc(vec![0; 512]).unwrap().len(), 512);
        assert!(matches!(with_header_crc(vec![0; 91]), Err(Error::Internal { .. })));
    }

    #[test]
    fn rejects_boot_images_beyond_2_tib() {
        assert_eq!(encode_mbr_number(u64::from(u32::MAX)).unwrap(), [0xFF; 4]);
        assert!(matches!(encode_mbr_number(1 << 32), Err(Error::InvalidEdit { .. })));
    }
}
