//! Reads volume descriptors: one sector each, from sector 16 to the terminator (ECMA-119, 8).

use super::finding::VolumeReader;
use super::record::{DirectoryRecord, decode_ucs2};
use crate::bytes_at::{array_at, u32_be, u32_le};
use crate::checked_fields::slice_at;
use crate::error::{Error, OrInternal, Result};
use crate::extent::{Extent, SECTOR_SIZE, Sector};
use crate::source::Source;

/// The sector of the first descriptor.
pub(super) const FIRST_DESCRIPTOR_SECTOR: u32 = 16;
/// Maximum number of descriptors. Published images have four. The limit is for volumes without a terminator.
const MAX_DESCRIPTORS: u32 = 64;

/// A volume descriptor.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum VolumeDescriptor {
    /// Type 0, a boot record. It contains the sector of the El Torito catalogue.
    Boot {
        /// Sector of the descriptor.
        sector: Sector,
        /// The boot system identifier, for example `EL TORITO SPECIFICATION`.
        system_id: String,
        /// The boot identifier.
        boot_id: String,
        /// Sector of the boot catalogue, if the boot system is El Torito.
        catalog: Option<Sector>,
    },
    /// Type 1, the primary volume descriptor.
    Primary(TreeDescriptor),
    /// Type 2, a supplementary volume descriptor.
    Supplementary(TreeDescriptor),
    /// Any other type.
    Unknown {
        /// Sector of the descriptor.
        sector: Sector,
        /// The type number of the descriptor.
        type_id: u8,
    },
}

impl VolumeDescriptor {
    pub(super) fn as_primary(&self) -> Option<&TreeDescriptor> {
        if let Self::Primary(descriptor) = self { Some(descriptor) } else { None }
    }

    pub(super) fn as_joliet(&self) -> Option<&TreeDescriptor> {
        if let Self::Supplementary(it) = self { Some(it).filter(|it| it.joliet.is_some()) } else { None }
    }
}

/// The level of a Joliet tree, from 1 to 3. The levels differ in the characters that names may contain.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(transparent)]
pub struct JolietLevel(pub u8);

/// Maximum length of a path table. Each directory of a tree takes a few tens of bytes in it.
pub(crate) const MAX_PATH_TABLE_LEN: u32 = 4 << 20;

/// The positions of the path tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct PathTables {
    /// Length of each table in bytes.
    pub len: u32,
    /// Sector of the little-endian table.
    pub little_endian: Sector,
    /// Sector of the big-endian table.
    pub big_endian: Sector,
}

/// A primary or supplementary volume descriptor.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct TreeDescriptor {
    /// Sector of the descriptor.
    pub sector: Sector,
    /// The system identifier.
    pub system_id: String,
    /// The volume identifier.
    pub volume_id: String,
    /// The volume set identifier.
    pub volume_set_id: String,
    /// Number of sectors in the volume.
    pub space_size: u32,
    /// The positions of the path tables of the tree.
    pub path_tables: PathTables,
    /// The directory record of the root directory.
    pub root: DirectoryRecord,
    /// The Joliet level, if this is the supplementary descriptor of a Joliet tree.
    pub joliet: Option<JolietLevel>,
}

/// Offset of the root directory's record in a descriptor.
const ROOT_RECORD_AT: usize = 156;

/// Reads all descriptors. Returns them and the first sector after the terminator.
pub(super) fn read_all(reader: &mut VolumeReader<'_>) -> Result<(Vec<VolumeDescriptor>, Sector)> {
    let source = reader.source;
    let mut descriptors = Vec::new();
    for number in FIRST_DESCRIPTOR_SECTOR..FIRST_DESCRIPTOR_SECTOR + MAX_DESCRIPTORS {
        let sector = Sector(number);
        let actual = || format!("the end of the file at {}", source.len());
        if sector.offset() + SECTOR_SIZE > source.len() {
            if number == FIRST_DESCRIPTOR_SECTOR {
                return Err(not_iso(source, sector, actual()));
            }
            return Err(source.malformed(sector.offset(), "volume descriptor", "2048 bytes", actual()));
        }
        let bytes = source.read_extent(Extent::at_sector(sector, 2048))?;
        match parse_descriptor(reader, sector, &bytes)? {
            Some(descriptor) => descriptors.push(descriptor),
            None => return Ok((descriptors, Sector(number + 1))),
        }
    }
    let end = Sector(FIRST_DESCRIPTOR_SECTOR + MAX_DESCRIPTORS).offset();
    Err(source.malformed(end, "volume descriptors", "a terminator", format!("{MAX_DESCRIPTORS} without one")))
}

/// Reads one descriptor, or returns `None` if it is the terminator.
fn parse_descriptor(
    reader: &mut VolumeReader<'_>,
    sector: Sector,
    bytes: &[u8],
) -> Result<Option<VolumeDescriptor>> {
    let source = reader.source;
    let start: [u8; 7] = array_at(bytes, 0).or_internal("short volume descriptor", sector.offset())?;
    let [type_id, magic @ .., version] = start;
    if &magic != b"CD001" {
        let actual = magic.escape_ascii();
        if sector == Sector(FIRST_DESCRIPTOR_SECTOR) {
            return Err(not_iso(source, sector, format!("\"{actual}\"")));
        }
        return Err(source.malformed(sector.offset() + 1, "volume descriptor", "CD001", actual));
    }
    if type_id <= 1 && version != 1 {
        return Err(source.malformed(sector.offset() + 6, "version of the volume descriptor", 1, version));
    }
    Ok(Some(match type_id {
        0 => parse_boot_record(sector, bytes)?,
        1 => VolumeDescriptor::Primary(parse_tree_descriptor(reader, sector, bytes)?),
        2 => VolumeDescriptor::Supplementary(parse_tree_descriptor(reader, sector, bytes)?),
        255 => return Ok(None),
        type_id => VolumeDescriptor::Unknown { sector, type_id },
    }))
}

/// Returns the error for a file without a volume descriptor at the first position.
fn not_iso(source: &Source, sector: Sector, mut actual: String) -> Error {
    if starts_like_web_page(source) {
        actual.push_str(
            "; the file starts with `<`, like a web page: a server may have returned an error page instead of the image",
        );
    }
    Error::NotIso { file: source.name().to_owned(), offset: sector.offset() + 1, found: actual }
}

/// Returns `true` if a file starts with `<`, like an HTML error page. The system area of an ISO image does not.
fn starts_like_web_page(source: &Source) -> bool {
    const START_LEN: u64 = 64;
    let start = source.read_extent(Extent::from_start(source.len().min(START_LEN)));
    // If the file cannot be read, the error does not mention a web page.
    start.is_ok_and(|start| start.trim_ascii_start().starts_with(b"<"))
}

fn parse_boot_record(sector: Sector, bytes: &[u8]) -> Result<VolumeDescriptor> {
    let system_id = read_text(bytes, 7, 32)?;
    let catalog = u32_le(bytes, 71).filter(|_| system_id == "EL TORITO SPECIFICATION").map(Sector);
    Ok(VolumeDescriptor::Boot { sector, system_id, boot_id: read_text(bytes, 39, 32)?, catalog })
}

fn parse_tree_descriptor(
    reader: &mut VolumeReader<'_>,
    sector: Sector,
    bytes: &[u8],
) -> Result<TreeDescriptor> {
    let source = reader.source;
    let at = sector.offset();
    let block_size = reader.both_endian_u16(bytes, 128, at)?;
    if u64::from(block_size) != SECTOR_SIZE {
        return Err(source.malformed(at + 128, "block size", SECTOR_SIZE, block_size));
    }
    let joliet = joliet_level(bytes);
    let identifier = if joliet.is_some() { read_ucs2_text } else { read_text };
    let record_at = at + ROOT_RECORD_AT as u64;
    let root = DirectoryRecord::parse(reader, slice_at(bytes, ROOT_RECORD_AT, 34)?, record_at)?;
    if !root.is_directory() {
        return Err(source.malformed(record_at + 25, "flags of the root record", "a directory", root.flags));
    }
    Ok(TreeDescriptor {
        sector,
        system_id: identifier(bytes, 8, 32)?,
        volume_id: identifier(bytes, 40, 32)?,
        volume_set_id: identifier(bytes, 190, 128)?,
        space_size: reader.both_endian_u32(bytes, 80, at)?,
        path_tables: PathTables {
            len: reader.both_endian_u32(bytes, 132, at)?,
            little_endian: Sector(u32_le(bytes, 140).or_internal("short volume descriptor", at)?),
            big_endian: Sector(u32_be(bytes, 148).or_internal("short volume descriptor", at)?),
        },
        root,
        joliet,
    })
}

/// Returns the Joliet level of a supplementary descriptor, from its escape sequence.
fn joliet_level(bytes: &[u8]) -> Option<JolietLevel> {
    match (bytes.first()?, bytes.get(88..91)?) {
        (2, [0x25, 0x2F, 0x40]) => Some(JolietLevel(1)),
        (2, [0x25, 0x2F, 0x43]) => Some(JolietLevel(2)),
        (2, [0x25, 0x2F, 0x45]) => Some(JolietLevel(3)),
        _ => None,
    }
}

/// Decodes an identifier. It ends at the first NUL, because some mastering tools pad with NULs. Trailing spaces are
/// removed.
fn read_text(bytes: &[u8], offset: usize, len: usize) -> Result<String> {
    let field = slice_at(bytes, offset, len)?.iter().copied().take_while(|byte| *byte != 0);
    let field: Vec<u8> = field.collect();
    Ok(String::from_utf8_lossy(&field).trim_end_matches(' ').to_owned())
}

fn read_ucs2_text(bytes: &[u8], offset: usize, len: usize) -> Result<String> {
    let field = decode_ucs2(slice_at(bytes, offset, len)?);
    let text: String = field.chars().take_while(|character| *character != '\0').collect();
    Ok(text.trim_end_matches(' ').to_owned())
}
