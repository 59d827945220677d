//! Volume descriptors: one sector each from sector 16 up to a terminator (ECMA-119, 8).

use super::finding::Finding;
use super::record::{Record, both_endian_u16, both_endian_u32};
use crate::bytes_at::{u32_be, u32_le};
use crate::error::Result;
use crate::extent::{Extent, SECTOR_SIZE, Sector};
use crate::source::Source;

/// The first sector that holds a descriptor.
pub(super) const FIRST: u32 = 16;
/// Most descriptors that are read. Real images have four; the bound ends a volume without a terminator.
const MAX_DESCRIPTORS: u32 = 64;

/// One volume descriptor.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Descriptor {
    /// Type 0: tells where the El Torito catalogue is.
    Boot {
        /// Where the descriptor stands.
        sector: Sector,
        /// The boot system identifier.
        system_id: String,
        /// The boot identifier.
        boot_id: String,
        /// The sector of the boot catalogue, where the system is El Torito.
        catalog: Option<Sector>,
    },
    /// Type 1.
    Primary(VolumeDescriptor),
    /// Type 2.
    Supplementary(VolumeDescriptor),
    /// Any other type.
    Unknown {
        /// Where the descriptor stands.
        sector: Sector,
        /// Its type.
        type_id: u8,
    },
}

impl Descriptor {
    pub(super) fn as_primary(&self) -> Option<&VolumeDescriptor> {
        if let Self::Primary(descriptor) = self { Some(descriptor) } else { None }
    }

    pub(super) fn as_joliet(&self) -> Option<&VolumeDescriptor> {
        match self {
            Self::Supplementary(descriptor) if descriptor.joliet.is_some() => Some(descriptor),
            _ => None,
        }
    }
}

/// The three levels of Joliet, which differ in the characters that names may hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(transparent)]
pub struct JolietLevel(pub u8);

/// Most bytes of a path table: each of the directories that a tree may have takes some tens of them.
pub(crate) const MAX_PATH_TABLE_LEN: u32 = 4 << 20;

/// Where the path tables stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PathTables {
    /// Bytes of each table.
    pub len: u32,
    /// The little-endian table.
    pub little_endian: Sector,
    /// The big-endian table.
    pub big_endian: Sector,
}

/// A primary or supplementary volume descriptor.
#[derive(Debug, Clone)]
pub struct VolumeDescriptor {
    /// Where the descriptor stands.
    pub sector: Sector,
    /// The system identifier.
    pub system_id: String,
    /// The volume identifier.
    pub volume_id: String,
    /// The volume set identifier.
    pub volume_set_id: String,
    /// Sectors in the volume.
    pub space_size: u32,
    /// The path tables.
    pub path_tables: PathTables,
    /// The record of the root directory.
    pub root: Record,
    /// The level of Joliet, of a supplementary descriptor that is one.
    pub joliet: Option<JolietLevel>,
}

/// Offset of the root directory's record in a descriptor.
const ROOT_RECORD: usize = 156;

pub(super) fn read_all(source: &Source, findings: &mut Vec<Finding>) -> Result<Vec<Descriptor>> {
    let mut descriptors = Vec::new();
    for number in FIRST..FIRST + MAX_DESCRIPTORS {
        let sector = Sector(number);
        let found = || format!("the end of the file at {}", source.len());
        if sector.offset() + SECTOR_SIZE > source.len() {
            return Err(source.malformed(sector.offset(), "volume descriptor", "2048 bytes", found()));
        }
        let bytes = source.read_extent(Extent::at_sector(sector, 2048))?;
        match read_one(source, sector, &bytes, findings)? {
            Some(descriptor) => descriptors.push(descriptor),
            None => return Ok(descriptors),
        }
    }
    let end = Sector(FIRST + MAX_DESCRIPTORS).offset();
    Err(source.malformed(end, "volume descriptors", "a terminator", format!("{MAX_DESCRIPTORS} without one")))
}

/// Reads one descriptor; `None` for the terminator.
fn read_one(
    source: &Source,
    sector: Sector,
    bytes: &[u8],
    findings: &mut Vec<Finding>,
) -> Result<Option<Descriptor>> {
    if bytes.get(1..6) != Some(b"CD001") {
        let found = bytes.get(1..6).unwrap_or_default().escape_ascii();
        return Err(source.malformed(sector.offset() + 1, "volume descriptor", "CD001", found));
    }
    let type_id = bytes.first().copied().unwrap_or_default();
    let version = bytes.get(6).copied().unwrap_or_default();
    if type_id <= 1 && version != 1 {
        return Err(source.malformed(sector.offset() + 6, "version of the volume descriptor", 1, version));
    }
    Ok(Some(match type_id {
        0 => boot(sector, bytes),
        1 => Descriptor::Primary(volume(source, sector, bytes, findings)?),
        2 => Descriptor::Supplementary(volume(source, sector, bytes, findings)?),
        255 => return Ok(None),
        type_id => Descriptor::Unknown { sector, type_id },
    }))
}

fn boot(sector: Sector, bytes: &[u8]) -> Descriptor {
    let system_id = text(bytes, 7, 32);
    let catalog = u32_le(bytes, 71).filter(|_| system_id == "EL TORITO SPECIFICATION").map(Sector);
    Descriptor::Boot { sector, system_id, boot_id: text(bytes, 39, 32), catalog }
}

fn volume(
    source: &Source,
    sector: Sector,
    bytes: &[u8],
    findings: &mut Vec<Finding>,
) -> Result<VolumeDescriptor> {
    let at = sector.offset();
    let block_size = both_endian_u16(bytes, 128, at, findings).unwrap_or_default();
    if u64::from(block_size) != SECTOR_SIZE {
        return Err(source.malformed(at + 128, "block size", SECTOR_SIZE, block_size));
    }
    let joliet = joliet_level(bytes);
    let identifier = if joliet.is_some() { ucs2_text } else { text };
    let record_at = at + ROOT_RECORD as u64;
    let root = bytes.get(ROOT_RECORD..ROOT_RECORD + 34).unwrap_or_default();
    let root = Record::parse(source, root, record_at, findings)?;
    if !root.is_directory() {
        return Err(source.malformed(record_at + 25, "flags of the root record", "a directory", root.flags));
    }
    Ok(VolumeDescriptor {
        sector,
        system_id: identifier(bytes, 8, 32),
        volume_id: identifier(bytes, 40, 32),
        volume_set_id: identifier(bytes, 190, 128),
        space_size: both_endian_u32(bytes, 80, at, findings).unwrap_or_default(),
        path_tables: PathTables {
            len: both_endian_u32(bytes, 132, at, findings).unwrap_or_default(),
            little_endian: Sector(u32_le(bytes, 140).unwrap_or_default()),
            big_endian: Sector(u32_be(bytes, 148).unwrap_or_default()),
        },
        root,
        joliet,
    })
}

/// The escape sequence that marks a supplementary descriptor as Joliet.
fn joliet_level(bytes: &[u8]) -> Option<JolietLevel> {
    if bytes.first() != Some(&2) {
        return None;
    }
    match bytes.get(88..91)? {
        [0x25, 0x2F, 0x40] => Some(JolietLevel(1)),
        [0x25, 0x2F, 0x43] => Some(JolietLevel(2)),
        [0x25, 0x2F, 0x45] => Some(JolietLevel(3)),
        _ => None,
    }
}

/// An identifier: cut at the first NUL (some makers pad with them), then stripped of the padding spaces.
fn text(bytes: &[u8], offset: usize, len: usize) -> String {
    let field = bytes.get(offset..offset + len).unwrap_or_default();
    let field = field.split(|byte| *byte == 0).next().unwrap_or_default();
    String::from_utf8_lossy(field).trim_end_matches(' ').to_owned()
}

fn ucs2_text(bytes: &[u8], offset: usize, len: usize) -> String {
    let field = bytes.get(offset..offset + len).unwrap_or_default();
    super::record::decode_ucs2(field).split('\0').next().unwrap_or_default().trim_end_matches(' ').to_owned()
}
