//! The El Torito boot catalogue: which files firmware starts from a CD.
//!
//! Entries of 32 bytes: a validation entry, the default entry, then sections, each a header (`90`, or `91` for the
//! last) and its entries.

use serde::Serialize;

use crate::bytes_at::{u16_le, u32_le};
use crate::error::Result;
use crate::extent::{Extent, Sector};
use crate::source::Source;
use crate::volume::{Descriptor, Volume};

const ENTRY_LEN: usize = 32;
/// Bytes of the catalogue that are read: one sector holds 64 entries, real ones use four.
const CATALOG_LEN: u32 = 2048;

/// The machine that an entry is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Platform {
    /// 80x86 BIOS.
    Bios,
    /// UEFI.
    Efi,
    /// Another number.
    Other(u8),
}

impl From<u8> for Platform {
    fn from(byte: u8) -> Self {
        match byte {
            0x00 => Self::Bios,
            0xEF => Self::Efi,
            other => Self::Other(other),
        }
    }
}

/// One boot image of the catalogue.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct BootEntry {
    /// Where the entry stands in the image.
    pub position: u64,
    /// The machine it is for.
    pub platform: Platform,
    /// Whether firmware may start it.
    pub bootable: bool,
    /// The emulation; 0 for none.
    pub media: u8,
    /// The segment that a BIOS loads it to; 0 for the usual one.
    pub load_segment: u16,
    /// Sectors of 512 bytes to load, as far as 16 bits can say.
    pub load_count: u16,
    /// Where the boot image begins.
    pub sector: Sector,
}

/// The boot catalogue of a volume.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct BootCatalog {
    /// Where it stands.
    pub sector: Sector,
    /// Whether the words of the validation entry add up to zero, as they should.
    pub checksum_ok: bool,
    /// Whether every section has the entries that its header counts, within the one sector that is read.
    pub sections_complete: bool,
    /// The default entry, then those of the sections.
    pub entries: Vec<BootEntry>,
}

impl BootCatalog {
    /// Reads the catalogue that the volume's boot record names; `None` where it names none.
    ///
    /// # Errors
    ///
    /// Fails where the catalogue or a boot image lies outside of the image, or the catalogue is not one.
    pub fn read(source: &Source, volume: &Volume) -> Result<Option<Self>> {
        let boot = volume.descriptors().iter().find_map(|descriptor| match descriptor {
            Descriptor::Boot { sector, catalog: Some(catalog), .. } => Some((*sector, *catalog)),
            _ => None,
        });
        let Some((descriptor, sector)) = boot else { return Ok(None) };
        if sector < Sector(16) || Extent::at_sector(sector, CATALOG_LEN).end() > source.len() {
            let expected = format!("a sector from 16 on, within {} bytes", source.len());
            return Err(source.malformed(
                descriptor.offset() + 71,
                "sector of the boot catalogue",
                expected,
                sector,
            ));
        }
        let bytes = source.read_extent(Extent::at_sector(sector, CATALOG_LEN))?;
        Self::parse(source, sector, &bytes).map(Some)
    }

    fn parse(source: &Source, sector: Sector, bytes: &[u8]) -> Result<Self> {
        let (entries, _) = bytes.as_chunks::<ENTRY_LEN>();
        let [validation, default, sections @ ..] = entries else {
            return Err(source.malformed(sector.offset(), "boot catalogue", "two entries", bytes.len()));
        };
        let key = (validation.first().copied(), validation.get(30..).unwrap_or_default());
        if key != (Some(1), &[0x55, 0xAA]) {
            let found = validation.escape_ascii();
            return Err(source.malformed(sector.offset(), "validation entry", "01 … 55 AA", found));
        }
        let sum =
            (0..ENTRY_LEN).step_by(2).filter_map(|at| u16_le(validation, at)).fold(0, u16::wrapping_add);
        let mut catalog =
            Self { sector, checksum_ok: sum == 0, sections_complete: true, entries: Vec::new() };
        let mut platform = Platform::from(validation.get(1).copied().unwrap_or_default());
        catalog.add(source, default, 1, platform)?;
        let mut expected = 0;
        let mut more = false;
        for (entry, number) in sections.iter().zip(2..) {
            if expected > 0 {
                expected -= 1;
                catalog.add(source, entry, number, platform)?;
            } else if let [kind @ (0x90 | 0x91), id, ..] = entry {
                platform = Platform::from(*id);
                expected = u16_le(entry, 2).unwrap_or_default();
                more = *kind == 0x90;
            } else {
                break;
            }
        }
        catalog.sections_complete = expected == 0 && !more;
        Ok(catalog)
    }

    fn add(&mut self, source: &Source, entry: &[u8], number: u64, platform: Platform) -> Result<()> {
        let byte = |offset: usize| entry.get(offset).copied().unwrap_or_default();
        let position = self.sector.offset() + number * ENTRY_LEN as u64;
        let sector = Sector(u32_le(entry, 8).unwrap_or_default());
        let bootable = byte(0) == 0x88;
        if bootable && (sector < Sector(16) || sector.offset() >= source.len()) {
            let expected = format!("a sector from 16 on, within {} bytes", source.len());
            return Err(source.malformed(position + 8, "sector of a boot image", expected, sector));
        }
        self.entries.push(BootEntry {
            position,
            platform,
            bootable,
            media: byte(1),
            load_segment: u16_le(entry, 2).unwrap_or_default(),
            load_count: u16_le(entry, 6).unwrap_or_default(),
            sector,
        });
        Ok(())
    }
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
        assert_eq!(entries, [(Platform::Bios, Sector(45)), (Platform::Efi, Sector(64))]);
        assert_eq!(catalog.entries[1].position, 44 * 2048 + 96);
    }

    #[test]
    fn a_catalogue_that_ends_early_says_so() {
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
    fn a_boot_image_outside_is_refused() {
        let source = Source::from_bytes("test", vec![0; 64 * 2048]);
        let error = BootCatalog::parse(&source, Sector(44), &catalog()).unwrap_err().to_string();
        assert!(error.contains("byte 90216: sector of a boot image"), "{error}");
    }
}
