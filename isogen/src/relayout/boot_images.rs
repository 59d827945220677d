//! Updates the boot catalogue: the sectors of boot images that move, and the number of sectors that firmware loads.

use std::sync::Arc;

use super::changes::FileContents;
use super::fields::bytes_patch;
use super::placement::{PlacedFile, Placement};
use crate::base::BaseImage;
use crate::bytes_at::u32_le;
use crate::eltorito::{BootEntry, BootInfoTable, BootPlatform};
use crate::error::{Error, OrInternal, Result};
use crate::extent::{Extent, SECTOR_SIZE, Sector};
use crate::partitions::DISK_SECTOR_SIZE;
use crate::plan::{Patch, Plan};
use crate::volume::EntryId;

const DISK_SECTORS_PER_SECTOR: u64 = SECTOR_SIZE / DISK_SECTOR_SIZE;

/// A boot image before and after the re-layout.
#[derive(Debug)]
pub(super) struct BootImageChange {
    /// The entry in the boot catalogue of the base image.
    old: BootEntry,
    /// Length of the boot image file in the base image.
    old_len: u64,
    pub(super) sector: Sector,
    pub(super) load_count: u16,
    /// The patch of the boot info table, if it changes.
    info_table: Option<Patch>,
}

/// The changes of the bootable catalogue entries whose boot images are files.
#[derive(Debug)]
pub(super) struct BootImageChanges(Vec<BootImageChange>);

impl BootImageChanges {
    pub(super) fn new(image: &BaseImage, placement: &Placement) -> Result<Self> {
        let entries = image.boot_catalog().map_or(&[][..], |catalog| &catalog.entries);
        let images = entries.iter().filter(|entry| entry.is_bootable);
        let changes = images.filter_map(|entry| BootImageChange::new(image, placement, entry).transpose());
        changes.collect::<Result<_>>().map(Self)
    }

    pub(super) fn patches(&self) -> Vec<Patch> {
        let mut patches = Vec::new();
        for image in &self.0 {
            if image.sector != image.old.sector {
                patches.push(bytes_patch(image.old.position + 8, image.sector.0.to_le_bytes()));
            }
            if image.is_resized() {
                patches.push(bytes_patch(image.old.position + 6, image.load_count.to_le_bytes()));
            }
            patches.extend(image.info_table.clone());
        }
        patches
    }

    /// Returns the boot image that begins at a disk sector of the base image.
    pub(super) fn find_by_old_disk_sector(&self, sector: u64) -> Option<&BootImageChange> {
        self.0.iter().find(|image| u64::from(image.old.sector.0) * DISK_SECTORS_PER_SECTOR == sector)
    }
}

impl BootImageChange {
    /// Creates the change of a catalogue entry. Returns `None` if the entry refers to bytes that do not move and are
    /// not a file.
    fn new(image: &BaseImage, placement: &Placement, entry: &BootEntry) -> Result<Option<Self>> {
        let files = image.volume().files_by_extent();
        let Some((old, names)) = files.into_iter().find(|(file, _)| file.offset() == entry.sector.offset())
        else {
            if entry.sector.offset() < placement.kept_end {
                return Ok(None);
            }
            let (at, what) = (entry.position + 8, "sector of a boot image that moves");
            return Err(image.source().malformed(at, what, "the beginning of a file", entry.sector));
        };
        let mut boot = Self {
            old: entry.clone(),
            old_len: old.len(),
            // A file that does not move keeps its sector.
            sector: placement.moved_extents.get(&old).copied().unwrap_or(entry.sector),
            load_count: entry.load_count,
            info_table: None,
        };
        let is_isolinux = entry.platform == BootPlatform::Bios
            && names.iter().any(|id| image.volume().tree().path(*id).ends_with("isolinux.bin"));
        if placement.removed_extents.contains(&old) {
            let file = replacement_file(image, placement, &names)?;
            boot.replace(file);
            if is_isolinux {
                boot.info_table = patch_new_info_table(image, file)?;
            }
        } else if is_isolinux && boot.sector != entry.sector && old.len() >= BootInfoTable::END {
            boot.info_table = Some(patch_moved_info_table(image, old, boot.sector)?);
        }
        Ok(Some(boot))
    }

    fn replace(&mut self, file: &PlacedFile) {
        self.sector = file.sector;
        // If the builder chose a special number, keep it: firmware has to load only the first sectors of isolinux,
        // which loads its other sectors itself.
        let whole = sectors_to_load(self.old_len);
        if self.old.load_count == whole.0 || self.old.load_count == whole.1 {
            self.load_count = sectors_to_load(u64::from(file.len)).0;
        }
    }

    /// Returns `true` if a partition of `disk_sectors` fits into the boot image, whose length is rounded up to whole
    /// ISO 9660 sectors.
    pub(super) fn contains_partition(&self, disk_sectors: u64) -> bool {
        disk_sectors <= self.old_len.div_ceil(SECTOR_SIZE) * DISK_SECTORS_PER_SECTOR
    }

    pub(super) fn first_disk_sector(&self) -> u64 {
        u64::from(self.sector.0) * DISK_SECTORS_PER_SECTOR
    }

    /// Returns `true` if the number of sectors to load differs from the number in the base image.
    pub(super) fn is_resized(&self) -> bool {
        self.load_count != self.old.load_count
    }
}

fn replacement_file<'a>(
    image: &BaseImage,
    placement: &'a Placement,
    names: &[EntryId],
) -> Result<&'a PlacedFile> {
    let paths: Vec<String> = names.iter().map(|id| image.volume().tree().path(*id)).collect();
    let new = paths.iter().find_map(|path| placement.new_file(path)).filter(|file| !file.contents.is_empty());
    let reason = "the firmware boots from it";
    new.ok_or_else(|| Error::InvalidEdit { what: "removal of", value: paths.join(" and "), reason })
}

/// Returns the possible values of the 16-bit field for the number of 512-byte sectors to load. The first is limited to
/// 65535, which is enough because firmware loads what it needs. The second is the number modulo 2^16, which genisoimage
/// writes.
fn sectors_to_load(len: u64) -> (u16, u16) {
    let sectors = len.div_ceil(SECTOR_SIZE) * DISK_SECTORS_PER_SECTOR;
    let [low, high, ..] = sectors.to_le_bytes();
    (u16::try_from(sectors).unwrap_or(u16::MAX), u16::from_le_bytes([low, high]))
}

/// Returns the patch of the sector number in the boot info table of an isolinux that moves. The checksum does not
/// change, because it covers only the bytes after the table.
fn patch_moved_info_table(image: &BaseImage, old: Extent, sector: Sector) -> Result<Patch> {
    let at = old.offset() + BootInfoTable::SECTOR_AT;
    let field = Extent::new(at, 4).or_internal("offset of a boot info table", at)?;
    let stated = u32_le(&image.source().read_extent(field)?, 0).or_internal("short boot info table", at)?;
    if u64::from(stated) * SECTOR_SIZE != old.offset() {
        let what = "sector in the boot info table of isolinux, which moves";
        return Err(image.source().malformed(at, what, old.offset() / SECTOR_SIZE, stated));
    }
    Ok(bytes_patch(sector.offset() + BootInfoTable::SECTOR_AT, sector.0.to_le_bytes()))
}

/// Returns the patch of the boot info table of a replaced isolinux.
fn patch_new_info_table(image: &BaseImage, file: &PlacedFile) -> Result<Option<Patch>> {
    if u64::from(file.len) < BootInfoTable::END {
        return Ok(None);
    }
    let FileContents(segments) = &file.contents;
    let plan = Plan::new(Arc::clone(image.source()), segments.clone());
    if plan.len() > BootInfoTable::MAX_FILE_LEN {
        let value = format!("{} of {} bytes", file.path, plan.len());
        let reason = "a file with a boot info table has at most 1 MiB";
        return Err(Error::InvalidEdit { what: "boot image", value, reason });
    }
    let bytes = plan.read_all(BootInfoTable::MAX_FILE_LEN)?;
    let table = BootInfoTable::new(image.volume(), file.sector, &bytes)?;
    let mut encoded = table.0.map(u32::to_le_bytes).concat();
    encoded.resize(BootInfoTable::LEN, 0);
    Ok(Some(bytes_patch(file.sector.offset() + BootInfoTable::OFFSET, encoded)))
}
