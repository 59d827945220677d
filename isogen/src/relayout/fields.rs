//! Converts sector numbers to fields and creates patches.

use crate::error::{Error, Result};
use crate::extent::{Extent, Sector};
use crate::plan::{Patch, Segment};

/// Number of zero sectors after the last file, as in the images of builders. Some drives fail to read the end of a
/// disc.
pub(super) const PADDING_SECTORS: u64 = 150;

/// Converts a sector number to the 32-bit type of ISO 9660.
///
/// # Errors
///
/// Returns an error if the number exceeds 32 bits, because the edits make the image too large.
pub(super) fn to_sector(number: u64) -> Result<Sector> {
    u32::try_from(number).map(Sector).map_err(|_| {
        let (value, reason) = (format!("{number} sectors"), "ISO 9660 stores at most 4294967295");
        Error::InvalidEdit { what: "size of the new image", value, reason }
    })
}

pub(super) fn bytes_patch(offset: u64, bytes: impl Into<Vec<u8>>) -> Patch {
    Patch { offset, segment: Segment::Bytes(bytes.into().into()) }
}

pub(super) fn zero_patch(extent: Extent) -> Patch {
    Patch { offset: extent.offset(), segment: Segment::Zero(extent.len()) }
}
