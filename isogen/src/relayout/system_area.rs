//! The system area: the first sixteen sectors, which hold partition tables and the headers of old images.

use super::changes::KargsLayout;
use super::fields::patch;
use super::placement::Placement;
use crate::base::BaseImage;
use crate::error::Result;
use crate::extent::{Extent, Sector};
use crate::plan::Patch;

/// Offsets of the headers of images from 2020 and 2021.
const KARGS_HEADER: u64 = 32_672;
const IGNITION_HEADER: u64 = 32_744;

/// The system area, changed in memory and written as one patch.
pub(super) struct SystemArea {
    before: Vec<u8>,
    bytes: Vec<u8>,
}

impl SystemArea {
    pub(super) fn read(image: &BaseImage) -> Result<Self> {
        let bytes = image.source().read_extent(Extent::at_sector(Sector(0), 32 << 10))?;
        Ok(Self { before: bytes.clone(), bytes })
    }

    pub(super) fn set(&mut self, at: u64, bytes: &[u8]) {
        let Ok(at) = usize::try_from(at) else { return };
        if let Some(field) = self.bytes.get_mut(at..at + bytes.len()) {
            field.copy_from_slice(bytes);
        }
    }

    pub(super) fn clear(&mut self, at: u64, len: usize) {
        self.set(at, &vec![0; len]);
    }

    pub(super) fn get(&self, at: usize, len: usize) -> &[u8] {
        self.bytes.get(at..at + len).unwrap_or_default()
    }

    pub(super) fn patch(&self) -> Option<Patch> {
        (self.bytes != self.before).then(|| patch(0, self.bytes.clone()))
    }

    /// Updates the offset and length in the header of the Ignition area.
    pub(super) fn move_ignition_header(&mut self, image: &BaseImage, placement: &Placement) {
        let Some(extent) = image.headers().ignition else { return };
        match new_offset(image, placement, extent) {
            Some((offset, len)) => {
                self.set(IGNITION_HEADER + 8, &offset.to_le_bytes());
                self.set(IGNITION_HEADER + 16, &len.to_le_bytes());
            }
            None => self.clear(IGNITION_HEADER, 24),
        }
    }

    /// Updates the offsets and the length in the header of the kernel arguments.
    pub(super) fn move_kargs_header(
        &mut self,
        image: &BaseImage,
        placement: &Placement,
        kargs: Option<&KargsLayout>,
    ) {
        let Some(header) = &image.headers().kargs else { return };
        let moved = |offset: u64| {
            let extent = Extent::new(offset, header.area_len)?;
            let (path, inside) = image.file_around(extent)?;
            let Some(file) = placement.new_file(&path) else {
                return Some(placement.moved_offset(extent).unwrap_or(offset));
            };
            // The area of the default arguments is not in `kargs`: it keeps its offset in its file.
            let areas = kargs?;
            Some(file.extent.offset() + areas.offsets.get(&path).copied().unwrap_or(inside))
        };
        let offsets = std::iter::once(header.default_offset).chain(header.offsets.iter().copied());
        match offsets.map(moved).collect::<Option<Vec<_>>>() {
            Some(offsets) => {
                let len = kargs.map_or(header.area_len, |kargs| kargs.len);
                for (value, at) in std::iter::once(len).chain(offsets).zip((KARGS_HEADER + 8..).step_by(8)) {
                    self.set(at, &value.to_le_bytes());
                }
            }
            None => self.clear(KARGS_HEADER, 72),
        }
    }
}

/// Returns the new offset and length of the Ignition area that a header names. The area is a whole file.
fn new_offset(image: &BaseImage, placement: &Placement, extent: Extent) -> Option<(u64, u64)> {
    let path = image.file_at(extent)?;
    if let Some(file) = placement.new_file(&path) {
        return Some((file.extent.offset(), file.extent.len()));
    }
    if placement.dropped.contains(&path) {
        return None;
    }
    Some((placement.moved_offset(extent).unwrap_or(extent.offset()), extent.len()))
}
