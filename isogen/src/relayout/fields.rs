//! Sector numbers, both-endian numbers and patches of fields.

use crate::base::BaseImage;
use crate::error::Result;
use crate::extent::{Extent, SECTOR_SIZE, Sector};
use crate::plan::{Patch, Segment};

/// Zero sectors after the last file, as in builders' images: some drives fail to read the end of a disc.
pub(super) const PADDING_SECTORS: u64 = 150;

/// Returns the number of sectors that `len` bytes take.
pub(super) fn sectors(len: u64) -> u64 {
    len.div_ceil(SECTOR_SIZE)
}

/// Converts a sector number, or returns an error if the format cannot store it.
pub(super) fn sector(image: &BaseImage, number: u64) -> Result<Sector> {
    let too_large = || {
        let found = format!("sector {number}");
        image.source().malformed(0, "size of the new image", "at most 4294967295 sectors", found)
    };
    u32::try_from(number).map(Sector).map_err(|_| too_large())
}

/// Encodes a number in both byte orders, as volume descriptors and directory records do.
pub(super) fn both_endian(number: u32) -> [u8; 8] {
    let mut bytes = [0; 8];
    let (little, big) = bytes.split_at_mut(4);
    little.copy_from_slice(&number.to_le_bytes());
    big.copy_from_slice(&number.to_be_bytes());
    bytes
}

pub(super) fn patch(offset: u64, bytes: impl Into<Vec<u8>>) -> Patch {
    Patch { offset, segment: Segment::Bytes(bytes.into().into()) }
}

pub(super) fn zeros(extent: Extent) -> Patch {
    Patch { offset: extent.offset(), segment: Segment::Zero(extent.len()) }
}
