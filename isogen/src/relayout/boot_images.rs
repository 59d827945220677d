//! The boot catalogue: the new sectors of its boot images, and the number of sectors that firmware loads.

use std::sync::Arc;

use super::changes::Contents;
use super::fields::patch;
use super::placement::{PlacedFile, Placement};
use crate::base::BaseImage;
use crate::bytes_at::u32_le;
use crate::eltorito::{BootEntry, Platform};
use crate::error::{Error, Result};
use crate::extent::{Extent, SECTOR_SIZE, Sector};
use crate::partitions::DISK_SECTOR_SIZE;
use crate::plan::{Patch, Plan};
use crate::volume::EntryId;

/// Offset and length of the boot info table in isolinux.
const INFO_TABLE_AT: u64 = 8;
const INFO_TABLE_LEN: u64 = 56;
/// The longest boot image that gets a new boot info table: isolinux has about 40 KiB.
const MAX_ISOLINUX_LEN: u64 = 1 << 20;
/// Disk sectors in a sector.
const FACTOR: u64 = SECTOR_SIZE / DISK_SECTOR_SIZE;

/// A boot image before and after the re-layout.
#[derive(Debug)]
pub(super) struct BootImage {
    /// Offset of its entry in the boot catalogue.
    position: u64,
    old: Sector,
    old_count: u16,
    /// Length of its file in the base image.
    old_len: u64,
    pub(super) sector: Sector,
    pub(super) count: u16,
    /// The change of the boot info table.
    info_table: Option<Patch>,
}

/// The boot images of the catalogue.
#[derive(Debug)]
pub(super) struct BootImages(Vec<BootImage>);

impl BootImages {
    pub(super) fn new(image: &BaseImage, placement: &Placement) -> Result<Self> {
        let entries = image.boot_catalog().map_or(&[][..], |catalog| &catalog.entries);
        let images = entries.iter().filter(|entry| entry.bootable);
        let images: Result<Vec<Option<BootImage>>> =
            images.map(|entry| BootImage::new(image, placement, entry)).collect();
        Ok(Self(images?.into_iter().flatten().collect()))
    }

    pub(super) fn patches(&self) -> Vec<Patch> {
        let mut patches = Vec::new();
        for image in &self.0 {
            if image.sector != image.old {
                patches.push(patch(image.position + 8, image.sector.0.to_le_bytes()));
            }
            if image.count != image.old_count {
                patches.push(patch(image.position + 6, image.count.to_le_bytes()));
            }
            patches.extend(image.info_table.clone());
        }
        patches
    }

    /// Returns the boot image that begins at a disk sector of the base image.
    pub(super) fn at_disk_sector(&self, sector: u64) -> Option<&BootImage> {
        self.0.iter().find(|image| u64::from(image.old.0) * FACTOR == sector)
    }
}

impl BootImage {
    /// Follows an entry. Returns `None` if it points at bytes that stay and are not a file.
    fn new(image: &BaseImage, placement: &Placement, entry: &BootEntry) -> Result<Option<Self>> {
        let files = image.volume().files_by_extent();
        let Some((old, names)) = files.into_iter().find(|(file, _)| file.offset() == entry.sector.offset())
        else {
            if entry.sector.offset() < placement.kept() {
                return Ok(None);
            }
            return Err(image.source().malformed(
                entry.position + 8,
                "sector of a boot image that moves",
                "the beginning of a file",
                entry.sector,
            ));
        };
        let mut boot = Self {
            position: entry.position,
            old: entry.sector,
            old_count: entry.load_count,
            old_len: old.len(),
            sector: placement.moved_sector(old).unwrap_or(entry.sector),
            count: entry.load_count,
            info_table: None,
        };
        let is_isolinux = entry.platform == Platform::Bios
            && names.iter().any(|id| image.volume().tree().path(*id).ends_with("isolinux.bin"));
        if placement.is_gone(old) {
            let file = replacement(image, placement, &names)?;
            boot.replace(file);
            if is_isolinux {
                boot.info_table = new_info_table(image, file)?;
            }
        } else if is_isolinux && boot.sector != boot.old && old.len() >= INFO_TABLE_AT + INFO_TABLE_LEN {
            boot.info_table = Some(moved_info_table(image, old, boot.sector)?);
        }
        Ok(Some(boot))
    }

    fn replace(&mut self, file: &PlacedFile) {
        self.sector = file.sector();
        // Keep a number that the builder chose: isolinux loads the rest of itself.
        let whole = sectors_to_load(self.old_len);
        if self.old_count == whole.0 || self.old_count == whole.1 {
            self.count = sectors_to_load(file.extent.len()).0;
        }
    }

    /// Returns `true` if a partition of `disk_sectors` is within the file and the rest of its last sector.
    pub(super) fn holds(&self, disk_sectors: u64) -> bool {
        disk_sectors <= self.old_len.div_ceil(SECTOR_SIZE) * FACTOR
    }

    pub(super) fn first_disk_sector(&self) -> u64 {
        u64::from(self.sector.0) * FACTOR
    }

    /// Returns `true` if firmware loads a different number of sectors than from the base image.
    pub(super) fn is_resized(&self) -> bool {
        self.count != self.old_count
    }
}

/// Returns the file that replaces a boot image.
fn replacement<'a>(image: &BaseImage, placement: &'a Placement, names: &[EntryId]) -> Result<&'a PlacedFile> {
    let paths: Vec<String> = names.iter().map(|id| image.volume().tree().path(*id)).collect();
    let new = paths.iter().find_map(|path| placement.new_file(path)).filter(|file| !file.contents.is_empty());
    let reason = "firmware starts it";
    new.ok_or_else(|| Error::Refused { what: "dropping of", value: paths.join(" and "), reason })
}

/// Returns the number of 512-byte sectors of a file, as a 16-bit field may state it: limited to the largest number,
/// since firmware loads what it needs; or modulo 2^16, as genisoimage writes it.
fn sectors_to_load(len: u64) -> (u16, u16) {
    let sectors = len.div_ceil(SECTOR_SIZE) * FACTOR;
    let wrapped = u16::try_from(sectors & u64::from(u16::MAX)).unwrap_or_default();
    (u16::try_from(sectors).unwrap_or(u16::MAX), wrapped)
}

/// Returns the new sector in the boot info table of an isolinux that moves. The checksum covers the bytes after the
/// table.
fn moved_info_table(image: &BaseImage, old: Extent, sector: Sector) -> Result<Patch> {
    let at = old.offset() + 12;
    let field = Extent::new(at, 4).map(|field| image.source().read_extent(field)).transpose()?;
    let stated = field.and_then(|bytes| u32_le(&bytes, 0)).unwrap_or_default();
    if u64::from(stated) * SECTOR_SIZE != old.offset() {
        let expected = (old.offset() / SECTOR_SIZE).to_string();
        return Err(image.source().malformed(
            at,
            "sector in the boot info table of isolinux, which moves",
            expected,
            stated,
        ));
    }
    Ok(patch(sector.offset() + 12, sector.0.to_le_bytes()))
}

/// Returns the boot info table of an isolinux that was replaced: its sector, its length, and the checksum of the bytes
/// after the table.
fn new_info_table(image: &BaseImage, file: &PlacedFile) -> Result<Option<Patch>> {
    if file.extent.len() < INFO_TABLE_AT + INFO_TABLE_LEN {
        return Ok(None);
    }
    let Contents(segments) = &file.contents;
    let bytes = Plan::of(Arc::clone(image.source()), segments.clone()).read_all(MAX_ISOLINUX_LEN)?;
    let (words, last) = bytes.get(64..).unwrap_or_default().as_chunks::<4>();
    let mut padded = [0; 4];
    padded.iter_mut().zip(last).for_each(|(to, from)| *to = *from);
    let words = words.iter().chain(std::iter::once(&padded));
    let sum = words.map(|word| u32::from_le_bytes(*word)).fold(0, u32::wrapping_add);
    let len = u32::try_from(file.extent.len()).unwrap_or(u32::MAX);
    let volume = image.volume().primary().sector.0;
    let mut table: Vec<u8> =
        [volume, file.sector().0, len, sum].into_iter().flat_map(u32::to_le_bytes).collect();
    table.resize(usize::try_from(INFO_TABLE_LEN).unwrap_or_default(), 0);
    Ok(Some(patch(file.extent.offset() + INFO_TABLE_AT, table)))
}
