//! Edits the system area: the first sixteen sectors, which contain partition tables and the headers of old images.

use super::changes::KargsLayout;
use super::fields::bytes_patch;
use super::placement::Placement;
use crate::base::BaseImage;
use crate::checked_fields::{put_slice, slice_at};
use crate::error::Result;
use crate::extent::{Extent, Sector};
use crate::plan::Patch;

/// Offset of a header in images from 2020 and 2021.
const KARGS_HEADER_AT: usize = 32_672;
const IGNITION_HEADER_AT: usize = 32_744;

/// The system area, changed in memory and written as a single patch.
pub(super) struct SystemArea {
    before: Vec<u8>,
    bytes: Vec<u8>,
}

impl SystemArea {
    pub(super) fn read(image: &BaseImage) -> Result<Self> {
        let bytes = image.source().read_extent(Extent::at_sector(Sector(0), 32 << 10))?;
        Ok(Self { before: bytes.clone(), bytes })
    }

    pub(super) fn set(&mut self, at: usize, bytes: &[u8]) -> Result<()> {
        put_slice(&mut self.bytes, at, bytes)
    }

    pub(super) fn clear(&mut self, at: usize, len: usize) -> Result<()> {
        self.set(at, &vec![0; len])
    }

    pub(super) fn get(&self, at: usize, len: usize) -> Result<&[u8]> {
        slice_at(&self.bytes, at, len)
    }

    pub(super) fn patch(self) -> Option<Patch> {
        (self.bytes != self.before).then(|| bytes_patch(0, self.bytes))
    }

    /// Updates the offset and length in the header of the Ignition area.
    pub(super) fn move_ignition_header(&mut self, image: &BaseImage, placement: &Placement) -> Result<()> {
        let Some(extent) = image.headers().ignition else { return Ok(()) };
        match new_ignition_position(image, placement, extent) {
            Some(position) => self.set(IGNITION_HEADER_AT + 8, &position.map(u64::to_le_bytes).concat()),
            None => self.clear(IGNITION_HEADER_AT, 24),
        }
    }

    /// Updates the offsets and the length in the header of the kernel arguments.
    pub(super) fn move_kargs_header(
        &mut self,
        image: &BaseImage,
        placement: &Placement,
        kargs: Option<&KargsLayout>,
    ) -> Result<()> {
        let Some(header) = &image.headers().kargs else { return Ok(()) };
        let moved = |offset: u64| {
            let extent = Extent::new(offset, header.area_len)?;
            let (path, inside) = image.locate_in_file(extent)?;
            let Some(file) = placement.new_file(&path) else {
                // A file that does not move keeps its offset.
                return Some(placement.moved_offset(extent).unwrap_or(offset));
            };
            // If the arguments change, `kargs` contains the new offsets, except for the area of the default arguments,
            // which keeps its offset in its file.
            let areas = kargs?;
            Some(file.sector.offset() + areas.offsets.get(&path).copied().unwrap_or(inside))
        };
        let offsets = std::iter::once(header.default_offset).chain(header.offsets.iter().copied());
        let Some(offsets) = offsets.map(moved).collect::<Option<Vec<_>>>() else {
            return self.clear(KARGS_HEADER_AT, 72);
        };
        let len = kargs.map_or(header.area_len, |kargs| kargs.len);
        let fields = std::iter::once(len).chain(offsets).flat_map(u64::to_le_bytes);
        self.set(KARGS_HEADER_AT + 8, &fields.collect::<Vec<_>>())
    }
}

/// Returns the new offset and length of the Ignition area in a header. The area is a whole file.
fn new_ignition_position(image: &BaseImage, placement: &Placement, extent: Extent) -> Option<[u64; 2]> {
    let path = image.file_at(extent)?;
    if let Some(file) = placement.new_file(&path) {
        return Some([file.sector.offset(), u64::from(file.len)]);
    }
    if placement.dropped_paths.contains(&path) {
        return None;
    }
    // A file that does not move keeps its offset.
    Some([placement.moved_offset(extent).unwrap_or(extent.offset()), extent.len()])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Error;

    #[test]
    fn access_past_the_end_of_the_area_is_an_internal_error() {
        let mut area = SystemArea { before: vec![0; 32 << 10], bytes: vec![0; 32 << 10] };
        for failed in [area.set(32_767, &[1, 2]), area.clear(32_768, 1), area.get(usize::MAX, 2).map(drop)] {
            assert!(matches!(failed, Err(Error::Internal { .. })), "{failed:?}");
        }
        assert!(area.patch().is_none());
    }
}
