//! The El Torito boot catalogue, which lists the files that firmware boots from a CD.
//!
//! The catalogue consists of 32-byte entries: a validation entry, the default entry, then sections. A section is a
//! header (type `90`, or `91` for the last section) and its entries.

use serde::Serialize;

use crate::error::{Error, OrInternal, Result};
use crate::extent::{Extent, Sector};
use crate::source::Source;
use crate::volume::{Volume, VolumeDescriptor};

const ENTRY_LEN: usize = 32;
/// Number of catalogue bytes to read. One sector holds 64 entries, and published images use four.
const CATALOG_LEN: u32 = 2048;

/// The boot info table, which isolinux uses to find its own file. The four numbers are the sector of the volume
/// descriptor, the sector of the file, the length of the file, and a checksum.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BootInfoTable(pub(crate) [u32; 4]);

impl BootInfoTable {
    /// Offset of the table in the isolinux file. `SECTOR_AT` is the offset of the table field with the sector of that
    /// file.
    pub(crate) const OFFSET: u64 = 8;
    pub(crate) const SECTOR_AT: u64 = 12;
    /// Length of the table in bytes. The bytes after the four numbers are zero.
    pub(crate) const LEN: usize = 56;
    /// Offset of the first byte after the table.
    pub(crate) const END: u64 = 64;
    /// Maximum length of a file with a table. isolinux is about 40 KiB.
    pub(crate) const MAX_FILE_LEN: u64 = 1 << 20;

    /// Computes the table of a file at `sector`. The checksum covers the bytes of the file after the table.
    pub(crate) fn new(volume: &Volume, sector: Sector, file: &[u8]) -> Result<Self> {
        let after = file.get(64..).or_internal("file too short for a boot info table", sector.offset())?;
        let (words, rest) = after.as_chunks::<4>();
        // The last word is padded with zeros.
        let last = rest.iter().rev().fold(0, |word, byte| word << 8 | u32::from(*byte));
        let checksum = words.iter().map(|word| u32::from_le_bytes(*word)).fold(last, u32::wrapping_add);
        let len = u32::try_from(file.len()).or_internal("boot image of 4 GiB", sector.offset())?;
        Ok(Self([volume.primary().sector.0, sector.0, len, checksum]))
    }
}

/// The firmware platform that a boot entry is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum BootPlatform {
    /// 80x86 BIOS.
    Bios,
    /// UEFI.
    Efi,
    /// Another platform, by its El Torito platform id.
    Other(u8),
}

impl From<u8> for BootPlatform {
    fn from(byte: u8) -> Self {
        match byte {
            0x00 => Self::Bios,
            0xEF => Self::Efi,
            other => Self::Other(other),
        }
    }
}

/// An entry of the catalogue: a boot image and how firmware loads it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct BootEntry {
    /// Offset of the entry in the ISO image.
    pub position: u64,
    /// The firmware platform of the entry.
    pub platform: BootPlatform,
    /// `true` if the entry is marked as bootable.
    #[serde(rename = "bootable")]
    pub is_bootable: bool,
    /// The emulated medium; 0 for no emulation.
    pub media: u8,
    /// The segment where a BIOS loads the boot image; 0 for the default.
    pub load_segment: u16,
    /// Number of 512-byte sectors to load, limited to 16 bits.
    pub load_count: u16,
    /// First sector of the boot image.
    pub sector: Sector,
}

/// The boot catalogue of a volume.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct BootCatalog {
    /// Sector of the catalogue.
    pub sector: Sector,
    /// `true` if the words of the validation entry add up to zero, as required.
    pub checksum_ok: bool,
    /// `true` if every section has as many entries as its header states, within the first sector of the catalogue.
    pub sections_complete: bool,
    /// The default entry, followed by the entries of the sections.
    pub entries: Vec<BootEntry>,
}

impl BootCatalog {
    /// Reads the catalogue; `None` if the volume has no El Torito boot record.
    ///
    /// # Errors
    ///
    /// Returns an error if the catalogue or a boot image is outside of the image, or if the catalogue is malformed.
    pub(crate) fn read(source: &Source, volume: &Volume) -> Result<Option<Self>> {
        let boot = volume.descriptors().iter().find_map(|descriptor| match descriptor {
            VolumeDescriptor::Boot { sector, catalog: Some(catalog), .. } => Some((*sector, *catalog)),
            _ => None,
        });
        let Some((descriptor, sector)) = boot else { return Ok(None) };
        let catalog = Extent::at_sector(sector, CATALOG_LEN);
        if sector < Sector(16) || catalog.end() > source.len() {
            return Err(outside(source, descriptor.offset() + 71, "sector of the boot catalogue", sector));
        }
        Self::parse(source, sector, &source.read_extent(catalog)?).map(Some)
    }

    fn parse(source: &Source, sector: Sector, bytes: &[u8]) -> Result<Self> {
        let (entries, _) = bytes.as_chunks::<ENTRY_LEN>();
        let [validation, default, sections @ ..] = entries else {
            return Err(source.malformed(sector.offset(), "boot catalogue", "two entries", bytes.len()));
        };
        let [1, platform, .., 0x55, 0xAA] = validation else {
            let actual = validation.escape_ascii();
            return Err(source.malformed(sector.offset(), "validation entry", "01 … 55 AA", actual));
        };
        let words = validation.as_chunks::<2>().0.iter().map(|word| u16::from_le_bytes(*word));
        let checksum_ok = words.fold(0, u16::wrapping_add) == 0;
        let position = |number: u64| sector.offset() + number * ENTRY_LEN as u64;
        let mut platform = BootPlatform::from(*platform);
        let mut entries = vec![BootEntry::parse(source, position(1), default, platform)?];
        let mut expected = 0;
        let mut more = false;
        for (entry, number) in sections.iter().zip(2..) {
            if expected > 0 {
                expected -= 1;
                entries.push(BootEntry::parse(source, position(number), entry, platform)?);
            } else if let [kind @ (0x90 | 0x91), id, low, high, ..] = *entry {
                platform = BootPlatform::from(id);
                expected = u16::from_le_bytes([low, high]);
                more = kind == 0x90;
            } else {
                break;
            }
        }
        Ok(Self { sector, checksum_ok, sections_complete: expected == 0 && !more, entries })
    }
}

impl BootEntry {
    fn parse(
        source: &Source,
        position: u64,
        entry: &[u8; ENTRY_LEN],
        platform: BootPlatform,
    ) -> Result<Self> {
        let [indicator, media, segment_low, segment_high, _, _, count_low, count_high, rest @ ..] = *entry;
        let [a, b, c, d, ..] = rest;
        let sector = Sector(u32::from_le_bytes([a, b, c, d]));
        let is_bootable = indicator == 0x88;
        if is_bootable && (sector < Sector(16) || sector.offset() >= source.len()) {
            return Err(outside(source, position + 8, "sector of a boot image", sector));
        }
        let load_segment = u16::from_le_bytes([segment_low, segment_high]);
        let load_count = u16::from_le_bytes([count_low, count_high]);
        Ok(Self { position, platform, is_bootable, media, load_segment, load_count, sector })
    }
}

/// Returns the error for a sector outside of the image.
fn outside(source: &Source, position: u64, what: &'static str, sector: Sector) -> Error {
    let expected = format!("sector 16 or a later one, within {} bytes", source.len());
    source.malformed(position, what, expected, sector)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn catalog() -> Vec<u8> {
        let mut bytes = vec![0; 2048];
        bytes[0] = 1;
        bytes[28..32].copy_from_slice(&[0xAA, 0x55, 0x55, 0xAA]);
        bytes[32] = 0x88;
        bytes[38] = 4;
        bytes[40] = 45;
        bytes[64..68].copy_from_slice(&[0x91, 0xEF, 1, 0]);
        bytes[96] = 0x88;
        bytes[104] = 64;
        bytes
    }

    #[test]
    fn default_and_section_entries_are_read() {
        let source = Source::from_bytes("test", vec![0; 65 * 2048]);
        let catalog = BootCatalog::parse(&source, Sector(44), &catalog()).unwrap();
        assert!(catalog.checksum_ok);
        let entries: Vec<_> = catalog.entries.iter().map(|entry| (entry.platform, entry.sector)).collect();
        assert_eq!(entries, [(BootPlatform::Bios, Sector(45)), (BootPlatform::Efi, Sector(64))]);
        assert_eq!(catalog.entries[1].position, 44 * 2048 + 96);
    }

    #[test]
    fn boot_info_table_of_a_short_file_is_an_internal_error() {
        let image =
            fixtures::Recipe::new(fixtures::Architecture::X86_64, fixtures::Era::E2023_07).master().image;
        let volume = Volume::read(&Source::from_bytes("test", image.to_vec())).unwrap();
        let table = |len: usize| BootInfoTable::new(&volume, Sector(45), &vec![1; len]);
        assert_eq!(table(70).unwrap().0, [16, 45, 70, 0x0101_0101 + 0x0101]);
        let error = table(63).unwrap_err();
        assert!(matches!(error, crate::Error::Internal { offset: 92_160, .. }), "{error}");
    }

    #[test]
    fn truncated_catalogue_is_not_complete() {
        let source = Source::from_bytes("test", vec![0; 65 * 2048]);
        let complete =
            |bytes: &[u8]| BootCatalog::parse(&source, Sector(44), bytes).unwrap().sections_complete;
        assert!(complete(&catalog()));
        let mut another = catalog();
        another[64] = 0x90;
        assert!(!complete(&another), "a section is announced that does not come");
        assert!(!complete(&catalog()[..96]), "the section's entry is missing");
    }

    #[test]
    fn rejects_boot_images_outside_of_the_image() {
        let source = Source::from_bytes("test", vec![0; 64 * 2048]);
        let error = BootCatalog::parse(&source, Sector(44), &catalog()).unwrap_err().to_string();
        assert!(error.contains("byte 90216: sector of a boot image"), "{error}");
    }
}
