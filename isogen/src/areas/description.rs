//! Reads the JSON descriptions in the directory `coreos/` of an image.

use serde::de::DeserializeOwned;

use crate::error::{Error, Result};
use crate::source::Source;
use crate::volume::{TreeEntry, Volume};

/// Maximum length of a JSON description. Published descriptions are shorter than 1 KiB.
const MAX_DESCRIPTION_LEN: u64 = 64 << 10;
/// Path of the JSON description of the Ignition area.
pub(crate) const IGNITION_INFO: &str = "coreos/igninfo.json";
/// Path of the JSON description of the kernel-argument areas.
pub(crate) const KARGS_INFO: &str = "coreos/kargs.json";
/// Path of the JSON list of features that the live system supports.
pub(crate) const FEATURES: &str = "coreos/features.json";
/// Path of the Ignition area in images without a JSON description of it.
pub(crate) const IGNITION_FILE: &str = "images/ignition.img";

/// The source and the volume of an image, for reading JSON descriptions.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DescribedImage<'a> {
    pub(crate) source: &'a Source,
    pub(crate) volume: &'a Volume,
}

impl<'a> DescribedImage<'a> {
    /// Reads a JSON description, or returns `None` if the image has no such file.
    pub(super) fn read_description<T: DeserializeOwned>(self, path: &str) -> Result<Option<T>> {
        let Some(entry) = self.volume.file(path) else { return Ok(None) };
        if entry.extent.len() > MAX_DESCRIPTION_LEN {
            let reason = format!("too large: {} bytes (limit {MAX_DESCRIPTION_LEN})", entry.extent.len());
            return Err(self.invalid_description(path, reason));
        }
        let parsed = serde_json::from_slice(&self.source.read_extent(entry.extent)?);
        parsed.map(Some).map_err(|error| self.invalid_description(path, error.to_string()))
    }

    /// Returns the tree entry of `file`, a name that the JSON description at `path` contains.
    pub(super) fn named_file(self, path: &str, file: &str) -> Result<&'a TreeEntry> {
        let missing = || self.invalid_description(path, format!("it names {file:?}, which does not exist"));
        self.volume.file(file).ok_or_else(missing)
    }

    pub(crate) fn invalid_description(self, path: &str, reason: String) -> Error {
        Error::Description { file: self.source.name().to_owned(), path: path.to_owned(), reason }
    }
}
