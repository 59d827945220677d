//! Finds the kernel-argument areas of an image.

use serde::{Deserialize, Serialize};

use super::description::{DescribedImage, KARGS_INFO};
use super::header::{KargsHeader, SystemAreaHeaders};
use super::marker;
use crate::error::Result;
use crate::extent::Extent;
use crate::kargs::{KargsArea, KargsAreas, KargsOrigin};

/// Maximum length of an area. Typical kernels accept command lines of up to 2 KiB.
const MAX_AREA_LEN: u64 = 2048;

/// The contents of `coreos/kargs.json`. The order of the fields is the order of the JSON keys.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct KargsDescription {
    pub(crate) default: String,
    pub(crate) files: Vec<KargsFile>,
    pub(crate) size: u64,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct KargsFile {
    pub(crate) path: String,
    pub(crate) offset: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) pad: Option<char>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) end: Option<char>,
}

impl KargsDescription {
    pub(crate) fn read(image: DescribedImage<'_>) -> Result<Option<Self>> {
        image.read_description(KARGS_INFO)
    }

    /// Returns the JSON text of the file, in the format of the builders' files.
    pub(crate) fn to_json(&self, image: DescribedImage<'_>) -> Result<Vec<u8>> {
        let json = serde_json::to_vec_pretty(self);
        json.map_err(|error| image.invalid_description(KARGS_INFO, error.to_string()))
    }
}

/// Reads the areas, or returns `None` if the image has none.
pub(crate) fn read_kargs_areas(
    image: DescribedImage<'_>,
    headers: &SystemAreaHeaders,
) -> Result<Option<KargsAreas>> {
    if let Some(description) = KargsDescription::read(image)? {
        return areas_from_description(image, &description).map(Some);
    }
    match &headers.kargs {
        Some(header) => areas_from_header(image, header).map(Some),
        None if headers.has_early_kargs => Ok(None),
        None => marker::search_configs(image.source, image.volume),
    }
}

fn areas_from_description(image: DescribedImage<'_>, description: &KargsDescription) -> Result<KargsAreas> {
    let invalid = |reason: String| image.invalid_description(KARGS_INFO, reason);
    let size = description.size;
    if size > MAX_AREA_LEN {
        return Err(invalid(format!("area size {size} exceeds the limit of {MAX_AREA_LEN} bytes")));
    }
    let len = description.default.len() as u64;
    if len > size {
        return Err(invalid(format!("the default kernel arguments have {len} bytes, the areas only {size}")));
    }
    let mut areas = Vec::new();
    for file in &description.files {
        let whole = image.named_file(KARGS_INFO, &file.path)?.extent;
        let extent = Extent::new(file.offset, size).and_then(|inner| whole.subextent(inner));
        let extent = extent.ok_or_else(|| {
            let (offset, len, path) = (file.offset, whole.len(), &file.path);
            invalid(format!("offset {offset} and size {size} do not lie within the {len} bytes of {path}"))
        })?;
        areas.push(KargsArea { pad: file.pad, end: file.end, ..KargsArea::read(image.source, extent)? });
    }
    let default = Some(description.default.trim().to_owned());
    KargsAreas::new(image.source, areas, default, KargsOrigin::Description).map_err(invalid)
}

fn areas_from_header(image: DescribedImage<'_>, header: &KargsHeader) -> Result<KargsAreas> {
    const HEADER_NAME: &str = "the coreKarg header of the system area";
    let invalid = |reason: String| image.invalid_description(HEADER_NAME, reason);
    let len = header.area_len;
    if len > MAX_AREA_LEN {
        return Err(invalid(format!("area length {len} exceeds the limit of {MAX_AREA_LEN} bytes")));
    }
    let read_area = |offset: u64| {
        let extent = Extent::new(offset, len).filter(|extent| extent.end() <= image.source.len());
        let extent = extent.ok_or_else(|| invalid(format!("offset {offset} is outside the image")))?;
        KargsArea::read(image.source, extent)
    };
    let default = read_area(header.default_offset)?;
    let default = default.text().map_err(|error| invalid(error.to_string()))?.to_owned();
    let areas = header.offsets.iter().map(|offset| read_area(*offset)).collect::<Result<Vec<_>>>()?;
    KargsAreas::new(image.source, areas, Some(default), KargsOrigin::Header).map_err(invalid)
}
