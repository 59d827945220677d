//! The partition tables in the system area. Firmware uses them to boot an image from a USB disk.
//!
//! x86_64 images have an MBR with the isolinux boot code, and a GPT. `isohybrid` writes both. ppc64le images have an
//! Apple partition map and an MBR. Images for other architectures have no partition table. Reading does not validate
//! the tables: even `isohybrid` creates overlapping partitions and a partition at sector 0.

use serde::Serialize;

use crate::bytes_at::{array_at, u16_be, u32_be, u32_le, u64_le};
use crate::error::{OrInternal, Result};
use crate::extent::Extent;
use crate::source::Source;

/// Size of a disk sector in bytes.
pub(crate) const DISK_SECTOR_SIZE: u64 = 512;

/// A partition in an MBR.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct MbrPartition {
    /// Number of the partition in the table, from 1.
    pub number: usize,
    /// `true` if the partition is marked as active.
    #[serde(rename = "active")]
    pub is_active: bool,
    /// MBR partition type, for example `0xEF` for an EFI system partition.
    pub type_id: u8,
    /// First disk sector of the partition.
    pub start: u32,
    /// Length of the partition in disk sectors.
    pub count: u32,
}

/// The boot sector fields and partitions of a master boot record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Mbr {
    /// Disk sector of `isolinux.bin`, which the boot code of isohybrid loads; 0 if the image has no such file.
    pub boot_sector: u32,
    /// The 32-bit disk signature.
    pub disk_id: u32,
    /// The non-empty partitions.
    pub partitions: Vec<MbrPartition>,
}

/// A partition in a GPT.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct GptPartition {
    /// Number of the partition in the table, from 1.
    pub number: usize,
    /// GUID of the partition type, in the usual text form.
    pub type_guid: String,
    /// Unique GUID of the partition, in the usual text form.
    pub guid: String,
    /// First disk sector of the partition.
    pub first: u64,
    /// Last disk sector of the partition (inclusive).
    pub last: u64,
    /// Name of the partition, decoded from UTF-16.
    pub name: String,
}

/// One copy of a GPT: the header and its table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Gpt {
    /// Offset of the header in the image.
    pub position: u64,
    /// Disk sector of this header, according to the header.
    pub current: u64,
    /// Disk sector of the other copy of the header, according to this header.
    pub backup: u64,
    /// Last disk sector that partitions may use.
    pub last_usable: u64,
    /// GUID of the disk, in the usual text form.
    pub guid: String,
    /// First disk sector of the partition table.
    pub table: u64,
    /// `true` if the checksum of the header is correct.
    pub header_crc_ok: bool,
    /// `true` if the checksum of the table is correct.
    pub table_crc_ok: bool,
    /// The non-empty partitions.
    pub partitions: Vec<GptPartition>,
}

/// An entry of an Apple partition map.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ApplePartition {
    /// Name of the partition, for example `Apple`.
    pub name: String,
    /// Type of the partition, for example `Apple_partition_map`.
    pub type_name: String,
    /// First block, in units of the map's block size.
    pub start: u32,
    /// Number of blocks.
    pub count: u32,
}

/// The partition tables of an image. Each of them may be missing.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct PartitionTables {
    /// The MBR; `None` if the image has none.
    pub mbr: Option<Mbr>,
    /// The primary GPT, at the start of the image; `None` if it is missing or malformed.
    pub gpt: Option<Gpt>,
    /// The backup GPT, at the end of the image; `None` if it is missing or malformed.
    pub backup_gpt: Option<Gpt>,
    /// The entries of the Apple partition map; empty if the image has no map.
    pub apple: Vec<ApplePartition>,
}

impl PartitionTables {
    /// Reads all tables that the image has.
    ///
    /// # Errors
    ///
    /// Returns an error only if the storage fails. Missing and malformed tables are not errors.
    pub(crate) fn read(source: &Source) -> Result<Self> {
        let len = source.len().min(32 << 10);
        let area = source.read_extent(Extent::from_start(len))?;
        let gpt = read_gpt(source, DISK_SECTOR_SIZE)?;
        let backup_at = gpt.as_ref().and_then(|gpt| gpt.backup.checked_mul(DISK_SECTOR_SIZE));
        let backup_gpt = backup_at.map(|at| read_gpt(source, at)).transpose()?.flatten();
        // An image without a map has no Apple partitions.
        let apple = read_apple(&area).unwrap_or_default();
        Ok(Self { mbr: read_mbr(&area), gpt, backup_gpt, apple })
    }
}

fn read_mbr(area: &[u8]) -> Option<Mbr> {
    if area.get(510..512)? != [0x55, 0xAA] {
        return None;
    }
    let (table, _) = area.get(446..510)?.as_chunks::<16>();
    let partitions = table.iter().zip(1..).filter_map(|(entry, number)| {
        let (start, count) = (u32_le(entry, 8)?, u32_le(entry, 12)?);
        let is_active = entry.first() == Some(&0x80);
        (count > 0).then_some(MbrPartition { number, is_active, type_id: *entry.get(4)?, start, count })
    });
    Some(Mbr {
        boot_sector: u32_le(area, 432)?,
        disk_id: u32_le(area, 440)?,
        partitions: partitions.collect(),
    })
}

/// Maximum length of a partition table in bytes. A usual table has 128 entries of 128 bytes.
const MAX_TABLE_LEN: u64 = 64 << 10;

fn read_gpt(source: &Source, position: u64) -> Result<Option<Gpt>> {
    let extent = Extent::new(position, DISK_SECTOR_SIZE).filter(|extent| extent.end() <= source.len());
    let Some(extent) = extent else { return Ok(None) };
    let header = source.read_extent(extent)?;
    if !header.starts_with(b"EFI PART") {
        return Ok(None);
    }
    let mut gpt = parse_gpt_header(&header, position).or_internal("short GPT header", position)?;
    let sizes = u32_le(&header, 80).zip(u32_le(&header, 84));
    let (count, entry_len) = sizes.or_internal("short GPT header", position)?;
    let len = u64::from(count) * u64::from(entry_len);
    let table = gpt.table.checked_mul(DISK_SECTOR_SIZE).and_then(|at| Extent::new(at, len));
    let table = table.filter(|table| table.len() <= MAX_TABLE_LEN && table.end() <= source.len());
    if let (Some(table), Ok(entry_len @ 128..)) = (table, usize::try_from(entry_len)) {
        let bytes = source.read_extent(table)?;
        gpt.table_crc_ok = u32_le(&header, 88) == Some(crc32(&bytes));
        let entries = bytes.chunks_exact(entry_len).zip(1..);
        gpt.partitions = entries.filter_map(|(entry, number)| parse_gpt_partition(entry, number)).collect();
    }
    Ok(Some(gpt))
}

/// Parses the sector of a GPT header, but not the partition table. Returns `None` if the sector is too short.
fn parse_gpt_header(header: &[u8], position: u64) -> Option<Gpt> {
    let len = usize::try_from(u32_le(header, 12)?).ok();
    // A header with an impossible length counts as a header with a wrong checksum.
    let checked = len.and_then(|len| header.get(..len)).filter(|checked| checked.len() >= 92);
    Some(Gpt {
        position,
        current: u64_le(header, 24)?,
        backup: u64_le(header, 32)?,
        last_usable: u64_le(header, 48)?,
        guid: format_guid(array_at(header, 56)?),
        table: u64_le(header, 72)?,
        header_crc_ok: checked.and_then(gpt_header_crc) == u32_le(header, 16),
        table_crc_ok: false,
        partitions: Vec::new(),
    })
}

/// Computes the checksum of a GPT header. The bytes of the checksum field count as zeros. Returns `None` if the header
/// is too short.
pub(crate) fn gpt_header_crc(header: &[u8]) -> Option<u32> {
    let mut bytes = header.to_vec();
    bytes.get_mut(16..20)?.fill(0);
    Some(crc32(&bytes))
}

fn parse_gpt_partition(entry: &[u8], number: usize) -> Option<GptPartition> {
    let type_bytes: [u8; 16] = array_at(entry, 0)?;
    if type_bytes == [0; 16] {
        return None;
    }
    let units = entry.get(56..128)?.as_chunks::<2>().0.iter().map(|unit| u16::from_le_bytes(*unit));
    let name = char::decode_utf16(units.take_while(|unit| *unit != 0));
    Some(GptPartition {
        number,
        type_guid: format_guid(type_bytes),
        guid: format_guid(array_at(entry, 16)?),
        first: u64_le(entry, 32)?,
        last: u64_le(entry, 40)?,
        name: name.map(|unit| unit.unwrap_or(char::REPLACEMENT_CHARACTER)).collect(),
    })
}

/// Formats a GUID. The first three parts are little-endian numbers, and the rest are bytes.
fn format_guid(bytes: [u8; 16]) -> String {
    let [a, b, c, d, e, f, g, h, i, j, rest @ ..] = bytes;
    let tail: String = rest.iter().map(|byte| format!("{byte:02X}")).collect();
    format!("{d:02X}{c:02X}{b:02X}{a:02X}-{f:02X}{e:02X}-{h:02X}{g:02X}-{i:02X}{j:02X}-{tail}")
}

pub(crate) fn crc32(bytes: &[u8]) -> u32 {
    let mut crc = flate2::Crc::new();
    crc.update(bytes);
    crc.sum()
}

/// Maximum number of entries of an Apple partition map.
const MAX_APPLE_ENTRIES: u32 = 15;

fn read_apple(area: &[u8]) -> Option<Vec<ApplePartition>> {
    if !area.starts_with(b"ER") {
        return None;
    }
    let block = usize::from(u16_be(area, 2)?).max(512);
    let count = u32_be(area, block + 4)?.min(MAX_APPLE_ENTRIES);
    let entries =
        (1..=count).map_while(|number| area.get(block.checked_mul(usize::try_from(number).ok()?)?..));
    Some(entries.map_while(parse_apple).collect())
}

fn parse_apple(entry: &[u8]) -> Option<ApplePartition> {
    if entry.get(..2)? != b"PM" {
        return None;
    }
    let text = |range| {
        let field: &[u8] = entry.get::<std::ops::Range<usize>>(range)?;
        let text: Vec<u8> = field.iter().copied().take_while(|byte| *byte != 0).collect();
        Some(String::from_utf8_lossy(&text).into_owned())
    };
    Some(ApplePartition {
        name: text(16..48)?,
        type_name: text(48..80)?,
        start: u32_be(entry, 8)?,
        count: u32_be(entry, 12)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn guid_is_formatted_in_the_usual_form() {
        let basic_data =
            [0xA2, 0xA0, 0xD0, 0xEB, 0xE5, 0xB9, 0x33, 0x44, 0x87, 0xC0, 0x68, 0xB6, 0xB7, 0x26, 0x99, 0xC7];
        assert_eq!(format_guid(basic_data), "EBD0A0A2-B9E5-4433-87C0-68B6B72699C7");
    }

    #[test]
    fn empty_system_area_has_no_tables() {
        let tables = PartitionTables::read(&Source::from_bytes("empty", vec![0; 4096])).unwrap();
        assert_eq!(tables, PartitionTables::default());
    }

    #[test]
    fn tiny_file_has_no_tables() {
        assert!(PartitionTables::read(&Source::from_bytes("tiny", vec![0; 3])).is_ok());
    }
}
