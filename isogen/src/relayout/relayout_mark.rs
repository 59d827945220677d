//! The mark of a re-layout, which records the reason for the re-layout in the image.
//!
//! The mark is in the application use field of the primary volume descriptor, which builders leave blank. If another
//! program has written to the field, the re-layout keeps those bytes, and the image has no mark.

use super::fields;
use crate::base::BaseImage;
use crate::error::{OrInternal, Result};
use crate::extent::Extent;
use crate::plan::Patch;

const MARK_PREFIX: &str = "KINDLING LAYOUT 1: ";
/// Offset of the field in the volume descriptor.
const MARK_FIELD_AT: u64 = 883;
const MARK_FIELD_LEN: u64 = 512;

/// Returns the patch that writes the mark, or `None` if the field is not blank.
pub(super) fn mark_patch(image: &BaseImage, reason: &str) -> Result<Option<Patch>> {
    let (extent, field) = mark_field(image)?;
    let blank = *field.last().or_internal("empty field for applications", extent.offset())?;
    if !field.starts_with(MARK_PREFIX.as_bytes()) && field.iter().any(|byte| *byte != blank) {
        return Ok(None);
    }
    let mut bytes = format!("{MARK_PREFIX}{reason}").into_bytes();
    bytes.resize(field.len(), blank);
    Ok(Some(fields::bytes_patch(extent.offset(), bytes)))
}

impl BaseImage {
    /// Returns the reason for the re-layout, or `None` if the image has no mark because a builder made it.
    ///
    /// # Errors
    ///
    /// Returns an error if the image cannot be read.
    pub(crate) fn layout_reason(&self) -> Result<Option<String>> {
        let (_, field) = mark_field(self)?;
        let reason = field.strip_prefix(MARK_PREFIX.as_bytes());
        Ok(reason.map(|reason| String::from_utf8_lossy(reason).trim_end_matches([' ', '\0']).to_owned()))
    }
}

fn mark_field(image: &BaseImage) -> Result<(Extent, Vec<u8>)> {
    let start = image.volume().primary().sector.offset() + MARK_FIELD_AT;
    let extent =
        Extent::new(start, MARK_FIELD_LEN).or_internal("offset of the field for applications", start)?;
    Ok((extent, image.source().read_extent(extent)?))
}
