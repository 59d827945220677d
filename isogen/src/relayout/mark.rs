//! The mark of a re-layout: it records the reason in the image.
//!
//! The mark is in the field for applications of the primary volume descriptor, which builders leave blank. If another
//! program wrote there, its bytes stay and the image has no mark.

use super::fields;
use crate::base::BaseImage;
use crate::error::Result;
use crate::extent::Extent;
use crate::plan::Patch;

const TAG: &str = "KINDLING LAYOUT 1: ";
/// Offset of the field in the volume descriptor.
const FIELD_AT: u64 = 883;
const FIELD_LEN: u64 = 512;

/// Returns the change that writes the mark, if the field is blank.
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

/// Returns the reason in the mark.
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
