//! Partition tables in the system area: what makes an image start from a USB disk.
//!
//! x86_64 images carry an MBR with the isolinux boot code and a GPT, both written by `isohybrid`; those of ppc64le an
//! Apple partition map beside an MBR; the others nothing. Reading judges nothing: overlapping partitions and a first
//! one at sector 0 are what `isohybrid` makes.

use serde::Serialize;

use crate::bytes_at::{array, u16_be, u32_be, u32_le, u64_le};
use crate::error::Result;
use crate::extent::{Extent, Sector};
use crate::source::Source;

/// Bytes in one sector of a disk.
pub const DISK_SECTOR_SIZE: u64 = 512;

/// A partition of an MBR.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct MbrPartition {
    /// Its place in the table, from 1.
    pub number: usize,
    /// Whether it is marked as active.
    pub active: bool,
    /// Its type.
    pub type_id: u8,
    /// Its first disk sector.
    pub start: u32,
    /// Its number of disk sectors.
    pub count: u32,
}

/// The master boot record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Mbr {
    /// The disk sector of `isolinux.bin`, which the isohybrid boot code reads; 0 where there is none.
    pub boot_sector: u32,
    /// The identifier of the disk.
    pub disk_id: u32,
    /// The partitions that are not empty.
    pub partitions: Vec<MbrPartition>,
}

/// A partition of a GPT.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct GptPartition {
    /// Its place in the table, from 1.
    pub number: usize,
    /// The type, as a GUID.
    pub type_guid: String,
    /// Its own GUID.
    pub guid: String,
    /// Its first disk sector.
    pub first: u64,
    /// Its last disk sector.
    pub last: u64,
    /// Its name.
    pub name: String,
}

/// One copy of a GPT header and its table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Gpt {
    /// Where the header stands in the image.
    pub position: u64,
    /// The disk sector that the header says it stands in.
    pub current: u64,
    /// The disk sector of the other copy.
    pub backup: u64,
    /// The last disk sector that partitions may use.
    pub last_usable: u64,
    /// The identifier of the disk.
    pub guid: String,
    /// The disk sector of the table.
    pub table: u64,
    /// Whether the header's checksum is right.
    pub header_crc_ok: bool,
    /// Whether the table's checksum is right.
    pub table_crc_ok: bool,
    /// The partitions that are not empty.
    pub partitions: Vec<GptPartition>,
}

/// An entry of an Apple partition map.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ApplePartition {
    /// Its name.
    pub name: String,
    /// Its type.
    pub type_name: String,
    /// Its first block, of the map's block size.
    pub start: u32,
    /// Its number of blocks.
    pub count: u32,
}

/// What the system area holds.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct PartitionTables {
    /// The master boot record.
    pub mbr: Option<Mbr>,
    /// The GPT at the front.
    pub gpt: Option<Gpt>,
    /// The copy of the GPT at the end.
    pub backup_gpt: Option<Gpt>,
    /// The Apple partition map.
    pub apple: Vec<ApplePartition>,
}

impl PartitionTables {
    /// Reads whatever tables there are.
    ///
    /// # Errors
    ///
    /// Fails only where the storage does: an image without tables, or with odd ones, is none of a reader's business.
    pub fn read(source: &Source) -> Result<Self> {
        let len = source.len().min(32 << 10);
        let area = source.read_extent(Extent::new(0, len).unwrap_or(Extent::at_sector(Sector(0), 0)))?;
        let gpt = read_gpt(source, DISK_SECTOR_SIZE)?;
        let backup_at = gpt.as_ref().and_then(|gpt| gpt.backup.checked_mul(DISK_SECTOR_SIZE));
        let backup_gpt = backup_at.map(|at| read_gpt(source, at)).transpose()?.flatten();
        Ok(Self { mbr: read_mbr(&area), gpt, backup_gpt, apple: read_apple(&area) })
    }
}

fn read_mbr(area: &[u8]) -> Option<Mbr> {
    if area.get(510..512)? != [0x55, 0xAA] {
        return None;
    }
    let (table, _) = area.get(446..510)?.as_chunks::<16>();
    let partitions = table.iter().zip(1..).filter_map(|(entry, number)| {
        let (start, count) = (u32_le(entry, 8)?, u32_le(entry, 12)?);
        let active = entry.first() == Some(&0x80);
        (count > 0).then_some(MbrPartition { number, active, type_id: *entry.get(4)?, start, count })
    });
    Some(Mbr {
        boot_sector: u32_le(area, 432)?,
        disk_id: u32_le(area, 440)?,
        partitions: partitions.collect(),
    })
}

/// Most bytes of a partition table: 128 entries of 128 bytes are usual.
const MAX_TABLE_LEN: u64 = 64 << 10;

fn read_gpt(source: &Source, position: u64) -> Result<Option<Gpt>> {
    let Some(extent) = Extent::new(position, DISK_SECTOR_SIZE).filter(|extent| extent.end() <= source.len())
    else {
        return Ok(None);
    };
    let header = source.read_extent(extent)?;
    let Some(mut gpt) = parse_gpt_header(&header, position) else { return Ok(None) };
    let count = u64::from(u32_le(&header, 80).unwrap_or_default());
    let entry_len = u64::from(u32_le(&header, 84).unwrap_or_default());
    let table = gpt.table.checked_mul(DISK_SECTOR_SIZE).and_then(|at| Extent::new(at, count * entry_len));
    let table = table.filter(|table| table.len() <= MAX_TABLE_LEN && table.end() <= source.len());
    if let (Some(table), Ok(entry_len @ 128..)) = (table, usize::try_from(entry_len)) {
        let bytes = source.read_extent(table)?;
        gpt.table_crc_ok = u32_le(&header, 88) == Some(crc32(&bytes));
        let entries = bytes.chunks_exact(entry_len).zip(1..);
        gpt.partitions = entries.filter_map(|(entry, number)| parse_gpt_partition(entry, number)).collect();
    }
    Ok(Some(gpt))
}

fn parse_gpt_header(header: &[u8], position: u64) -> Option<Gpt> {
    if header.get(..8)? != b"EFI PART" {
        return None;
    }
    let len = usize::try_from(u32_le(header, 12)?).ok()?;
    let checked = header.get(..len).filter(|checked| checked.len() >= 92).map(|checked| {
        let mut bytes = checked.to_vec();
        bytes.get_mut(16..20).unwrap_or_default().fill(0);
        crc32(&bytes)
    });
    Some(Gpt {
        position,
        current: u64_le(header, 24)?,
        backup: u64_le(header, 32)?,
        last_usable: u64_le(header, 48)?,
        guid: guid(array(header, 56)?),
        table: u64_le(header, 72)?,
        header_crc_ok: checked == u32_le(header, 16),
        table_crc_ok: false,
        partitions: Vec::new(),
    })
}

fn parse_gpt_partition(entry: &[u8], number: usize) -> Option<GptPartition> {
    let type_bytes: [u8; 16] = array(entry, 0)?;
    if type_bytes == [0; 16] {
        return None;
    }
    let units = entry.get(56..128)?.as_chunks::<2>().0.iter().map(|unit| u16::from_le_bytes(*unit));
    let name = char::decode_utf16(units.take_while(|unit| *unit != 0));
    Some(GptPartition {
        number,
        type_guid: guid(type_bytes),
        guid: guid(array(entry, 16)?),
        first: u64_le(entry, 32)?,
        last: u64_le(entry, 40)?,
        name: name.map(|unit| unit.unwrap_or(char::REPLACEMENT_CHARACTER)).collect(),
    })
}

/// A GUID as people write it: the first three parts are little-endian numbers, the rest bytes.
fn guid(bytes: [u8; 16]) -> String {
    let [a, b, c, d, e, f, g, h, i, j, rest @ ..] = bytes;
    let tail: String = rest.iter().map(|byte| format!("{byte:02X}")).collect();
    format!("{d:02X}{c:02X}{b:02X}{a:02X}-{f:02X}{e:02X}-{h:02X}{g:02X}-{i:02X}{j:02X}-{tail}")
}

pub(crate) fn crc32(bytes: &[u8]) -> u32 {
    let mut crc = flate2::Crc::new();
    crc.update(bytes);
    crc.sum()
}

/// Most entries of an Apple partition map that are read.
const MAX_APPLE_ENTRIES: u32 = 15;

fn read_apple(area: &[u8]) -> Vec<ApplePartition> {
    if area.get(..2) != Some(b"ER") {
        return Vec::new();
    }
    let block = usize::from(u16_be(area, 2).unwrap_or_default()).max(512);
    let count = u32_be(area, block + 4).unwrap_or_default().min(MAX_APPLE_ENTRIES);
    let entries =
        (1..=count).map_while(|number| area.get(block.checked_mul(usize::try_from(number).ok()?)?..));
    entries.map_while(parse_apple).collect()
}

fn parse_apple(entry: &[u8]) -> Option<ApplePartition> {
    if entry.get(..2)? != b"PM" {
        return None;
    }
    let text = |range| {
        let field: &[u8] = entry.get::<std::ops::Range<usize>>(range)?;
        let field = field.split(|byte| *byte == 0).next().unwrap_or_default();
        Some(String::from_utf8_lossy(field).into_owned())
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
    fn a_guid_reads_as_people_write_it() {
        let basic_data =
            [0xA2, 0xA0, 0xD0, 0xEB, 0xE5, 0xB9, 0x33, 0x44, 0x87, 0xC0, 0x68, 0xB6, 0xB7, 0x26, 0x99, 0xC7];
        assert_eq!(guid(basic_data), "EBD0A0A2-B9E5-4433-87C0-68B6B72699C7");
    }

    #[test]
    fn an_empty_system_area_has_no_tables() {
        let tables = PartitionTables::read(&Source::from_bytes("empty", vec![0; 4096])).unwrap();
        assert_eq!(tables, PartitionTables::default());
    }

    #[test]
    fn a_tiny_file_has_no_tables() {
        assert!(PartitionTables::read(&Source::from_bytes("tiny", vec![0; 3])).is_ok());
    }
}
