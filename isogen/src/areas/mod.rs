//! Embed areas: the places of a live image that may be overwritten without changing its layout.
//!
//! Builders of different years described them differently: in JSON files under `coreos/`, in headers at the end of the
//! system area, or not at all. Newer descriptions are asked first; positions are never assumed.

mod features;
mod header;
mod ignition;
mod kargs;
mod marker;

use serde::de::DeserializeOwned;

use crate::error::{Error, Result};
use crate::source::Source;
use crate::volume::{Entry, Volume};

pub use features::Features;
pub use header::SystemAreaHeaders;
pub use ignition::{IgnitionArea, IgnitionOrigin};
pub(crate) use kargs::{KargsDescription, read as read_kargs};

/// Largest JSON description that is read. Real ones stay below a KiB.
const MAX_DESCRIPTION_LEN: u64 = 64 << 10;
/// The description of the Ignition area.
pub(crate) const IGNITION_INFO: &str = "coreos/igninfo.json";
/// The description of the kernel-argument areas.
pub(crate) const KARGS_INFO: &str = "coreos/kargs.json";
/// The list of what the live system understands.
pub(crate) const FEATURES: &str = "coreos/features.json";
/// The Ignition area of images that have no description of it.
pub(crate) const IGNITION_FILE: &str = "images/ignition.img";

/// Reads a JSON description of the image; `None` where it has no such file.
fn describe<T: DeserializeOwned>(source: &Source, volume: &Volume, path: &str) -> Result<Option<T>> {
    let Some(entry) = volume.file(path) else { return Ok(None) };
    if entry.extent.len() > MAX_DESCRIPTION_LEN {
        let reason =
            format!("it has {} bytes, a description at most {MAX_DESCRIPTION_LEN}", entry.extent.len());
        return Err(bad_description(source, path, reason));
    }
    let bytes = source.read_extent(entry.extent)?;
    serde_json::from_slice(&bytes).map(Some).map_err(|error| bad_description(source, path, error.to_string()))
}

/// The file that a description names.
fn described_file<'a>(source: &Source, volume: &'a Volume, path: &str, named: &str) -> Result<&'a Entry> {
    volume
        .file(named)
        .ok_or_else(|| bad_description(source, path, format!("it names {named:?}, which does not exist")))
}

fn bad_description(source: &Source, path: &str, reason: String) -> Error {
    Error::Description { file: source.name().to_owned(), path: path.to_owned(), reason }
}
