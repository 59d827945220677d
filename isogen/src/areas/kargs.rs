//! Finds the kernel-argument areas of an image.

use serde::{Deserialize, Serialize};

use super::description::{self, KARGS_INFO};
use super::header::{KargsHeader, SystemAreaHeaders};
use super::marker;
use crate::error::Result;
use crate::extent::Extent;
use crate::kargs::{KargsArea, KargsAreas, KargsOrigin};
use crate::source::Source;
use crate::volume::Volume;

/// The longest area. Most kernels accept command lines of at most 2 KiB.
const MAX_AREA_LEN: u64 = 2048;

/// `coreos/kargs.json`. The fields are written in this order.
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
    pub(crate) fn read(source: &Source, volume: &Volume) -> Result<Option<Self>> {
        description::read(source, volume, KARGS_INFO)
    }

    /// Returns the text of the file, formatted like the builders' files.
    pub(crate) fn to_json(&self, source: &Source) -> Result<Vec<u8>> {
        let json = serde_json::to_vec_pretty(self);
        json.map_err(|error| description::invalid(source, KARGS_INFO, error.to_string()))
    }
}

/// Reads the areas; `None` if the image has none.
pub(crate) fn read(
    source: &Source,
    volume: &Volume,
    headers: &SystemAreaHeaders,
) -> Result<Option<KargsAreas>> {
    if let Some(found) = KargsDescription::read(source, volume)? {
        return described(source, volume, &found).map(Some);
    }
    match &headers.kargs {
        Some(header) => from_header(source, header).map(Some),
        None if headers.early_kargs => Ok(None),
        None => marker::search(source, volume),
    }
}

fn described(source: &Source, volume: &Volume, found: &KargsDescription) -> Result<KargsAreas> {
    let bad = |reason: String| description::invalid(source, KARGS_INFO, reason);
    let size = found.size;
    if size > MAX_AREA_LEN {
        return Err(bad(format!("size is {size}, an area has at most {MAX_AREA_LEN} bytes")));
    }
    if found.default.len() as u64 > size {
        return Err(bad(format!("the default has {} bytes, the areas {size}", found.default.len())));
    }
    let mut areas = Vec::new();
    for file in &found.files {
        let whole = description::named_file(source, volume, KARGS_INFO, &file.path)?.extent;
        let extent = Extent::new(file.offset, size).and_then(|inner| whole.part(inner)).ok_or_else(|| {
            let (offset, len) = (file.offset, whole.len());
            bad(format!("offset {offset} and size {size} do not lie within the {len} bytes of {}", file.path))
        })?;
        areas.push(KargsArea { pad: file.pad, end: file.end, ..KargsArea::read(source, extent)? });
    }
    let default = Some(found.default.trim().to_owned());
    KargsAreas::new(source, areas, default, KargsOrigin::Description).map_err(bad)
}

fn from_header(source: &Source, header: &KargsHeader) -> Result<KargsAreas> {
    const WHERE: &str = "the coreKarg header of the system area";
    let bad = |reason: String| description::invalid(source, WHERE, reason);
    if header.area_len > MAX_AREA_LEN {
        return Err(bad(format!(
            "the length is {}, an area has at most {MAX_AREA_LEN} bytes",
            header.area_len
        )));
    }
    let read = |offset: u64| {
        let extent = Extent::new(offset, header.area_len).filter(|extent| extent.end() <= source.len());
        let extent = extent.ok_or_else(|| bad(format!("offset {offset} does not lie in the image")))?;
        KargsArea::read(source, extent)
    };
    let default = read(header.default_offset)?;
    let default = default.text().map_err(|error| bad(error.to_string()))?.to_owned();
    let areas = header.offsets.iter().map(|offset| read(*offset)).collect::<Result<Vec<_>>>()?;
    KargsAreas::new(source, areas, Some(default), KargsOrigin::Header).map_err(bad)
}
