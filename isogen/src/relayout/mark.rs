//! The mark of a new layout, for whoever holds an image and wonders how it came to be.
//!
//! It stands in the field of the primary volume descriptor that the format leaves to applications, where builders leave
//! blanks. What another program wrote there stays.

use super::fields;
use crate::base::BaseImage;
use crate::error::Result;
use crate::extent::Extent;
use crate::plan::Patch;

const TAG: &str = "KINDLING LAYOUT 1: ";
/// Where the field is in the descriptor.
const FIELD_AT: u64 = 883;
const FIELD_LEN: u64 = 512;

/// The change that writes the mark, if the field is free.
pub(super) fn patch(image: &BaseImage, reason: &str) -> Result<Option<Patch>> {
    let Some((extent, field)) = field(image)? else { return Ok(None) };
    let blank = field.last().copied().unwrap_or_default();
    if !field.starts_with(TAG.as_bytes()) && field.iter().any(|byte| *byte != blank) {
        return Ok(None);
    }
    let mut bytes = format!("{TAG}{reason}").into_bytes();
    bytes.resize(field.len(), blank);
    Ok(Some(fields::patch(extent.offset(), bytes)))
}

/// The reason in the mark.
pub(super) fn read(image: &BaseImage) -> Result<Option<String>> {
    let field = field(image)?.map(|(_, field)| field).unwrap_or_default();
    let reason = field.strip_prefix(TAG.as_bytes());
    Ok(reason.map(|reason| String::from_utf8_lossy(reason).trim_end_matches([' ', '\0']).to_owned()))
}

fn field(image: &BaseImage) -> Result<Option<(Extent, Vec<u8>)>> {
    let start = image.volume().primary().sector.offset() + FIELD_AT;
    let extent = Extent::new(start, FIELD_LEN);
    extent.map(|extent| Ok((extent, image.source().read_extent(extent)?))).transpose()
}
