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

/// An image whose descriptions are read.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DescribedImage<'a> {
    pub(crate) source: &'a Source,
    pub(crate) volume: &'a Volume,
}

impl<'a> DescribedImage<'a> {
    /// Reads a JSON description; `None` if the image has no such file.
    pub(super) fn read_description<T: DeserializeOwned>(self, path: &str) -> Result<Option<T>> {
        let Some(entry) = self.volume.file(path) else { return Ok(None) };
        if entry.extent.len() > MAX_DESCRIPTION_LEN {
            let reason = format!("too large: {} bytes (limit {MAX_DESCRIPTION_LEN})", entry.extent.len());
            return Err(self.invalid_description(path, reason));
        }
        let parsed = serde_json::from_slice(&self.source.read_extent(entry.extent)?);
        parsed.map(Some).map_err(|error| self.invalid_description(path, error.to_string()))
    }

    /// Looks up the file `named` in the description at `path`.
    pub(super) fn named_file(self, path: &str, named: &str) -> Result<&'a TreeEntry> {
        let missing = || self.invalid_description(path, format!("it names {named:?}, which does not exist"));
        self.volume.file(named).ok_or_else(missing)
    }

    pub(crate) fn invalid_description(self, path: &str, reason: String) -> Error {
        Error::Description { file: self.source.name().to_owned(), path: path.to_owned(), reason }
    }
}
