//! JSON descriptions under `coreos/` of an image.

use serde::de::DeserializeOwned;

use crate::error::{Error, Result};
use crate::source::Source;
use crate::volume::{TreeEntry, Volume};

/// The largest JSON description that is read. Real ones are below a KiB.
const MAX_DESCRIPTION_LEN: u64 = 64 << 10;
/// The JSON description of the Ignition area.
pub(crate) const IGNITION_INFO: &str = "coreos/igninfo.json";
/// The description of the kernel-argument areas.
pub(crate) const KARGS_INFO: &str = "coreos/kargs.json";
/// The list of features that the live system supports.
pub(crate) const FEATURES: &str = "coreos/features.json";
/// The Ignition area of images without a JSON description of it.
pub(crate) const IGNITION_FILE: &str = "images/ignition.img";

/// Reads a JSON description; `None` if the image has no such file.
pub(super) fn read_description<T: DeserializeOwned>(
    source: &Source,
    volume: &Volume,
    path: &str,
) -> Result<Option<T>> {
    let Some(entry) = volume.file(path) else { return Ok(None) };
    if entry.extent.len() > MAX_DESCRIPTION_LEN {
        let reason = format!("too large: {} bytes (limit {MAX_DESCRIPTION_LEN})", entry.extent.len());
        return Err(invalid_description(source, path, reason));
    }
    let parsed = serde_json::from_slice(&source.read_extent(entry.extent)?);
    parsed.map(Some).map_err(|error| invalid_description(source, path, error.to_string()))
}

/// Looks up the file `named` in the description at `path`.
pub(super) fn named_file<'a>(
    source: &Source,
    volume: &'a Volume,
    path: &str,
    named: &str,
) -> Result<&'a TreeEntry> {
    let missing = || invalid_description(source, path, format!("it names {named:?}, which does not exist"));
    volume.file(named).ok_or_else(missing)
}

pub(crate) fn invalid_description(source: &Source, path: &str, reason: String) -> Error {
    Error::Description { file: source.name().to_owned(), path: path.to_owned(), reason }
}
