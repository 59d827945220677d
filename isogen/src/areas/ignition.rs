//! The area that takes an initrd archive with the Ignition config and the network files.

use serde::{Deserialize, Serialize};

use super::{IGNITION_FILE, IGNITION_INFO, SystemAreaHeaders, bad_description, describe, described_file};
use crate::error::Result;
use crate::extent::Extent;
use crate::source::Source;
use crate::volume::Volume;

/// `coreos/igninfo.json`.
#[derive(Deserialize)]
struct IgnitionDescription {
    file: String,
    #[serde(default)]
    offset: u64,
    length: Option<u64>,
}

/// How the area was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum IgnitionOrigin {
    /// `coreos/igninfo.json` describes it.
    Description,
    /// It is the file `images/ignition.img`.
    File,
    /// The header `coreiso+` in the system area names it.
    Header,
}

/// The Ignition area.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct IgnitionArea {
    /// Where it is in the image.
    pub extent: Extent,
    /// How it was found.
    pub origin: IgnitionOrigin,
}

impl IgnitionArea {
    /// Finds the area; images for s390x of before 2023 have none.
    pub(crate) fn read(
        source: &Source,
        volume: &Volume,
        headers: &SystemAreaHeaders,
    ) -> Result<Option<Self>> {
        if let Some(description) = describe::<IgnitionDescription>(source, volume, IGNITION_INFO)? {
            return Self::described(source, volume, &description).map(Some);
        }
        if let Some(entry) = volume.file(IGNITION_FILE) {
            return Ok(Some(Self { extent: entry.extent, origin: IgnitionOrigin::File }));
        }
        Ok(headers.ignition.map(|extent| Self { extent, origin: IgnitionOrigin::Header }))
    }

    fn described(source: &Source, volume: &Volume, description: &IgnitionDescription) -> Result<Self> {
        let file = described_file(source, volume, IGNITION_INFO, &description.file)?.extent;
        let len = description.length.or_else(|| file.len().checked_sub(description.offset));
        let extent = len.and_then(|len| file.part(Extent::new(description.offset, len)?));
        let extent = extent.ok_or_else(|| {
            let length = description.length.map_or("none".to_owned(), |length| length.to_string());
            let reason = format!(
                "offset {} and length {length} do not lie within the {} bytes of {}",
                description.offset,
                file.len(),
                description.file
            );
            bad_description(source, IGNITION_INFO, reason)
        })?;
        Ok(Self { extent, origin: IgnitionOrigin::Description })
    }
}
