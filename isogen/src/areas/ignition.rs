//! The Ignition area: the embed area for an initrd archive with the Ignition config and the network files.

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use super::description::{DescribedImage, IGNITION_FILE, IGNITION_INFO};
use super::header::SystemAreaHeaders;
use crate::error::{Error, Result};
use crate::extent::Extent;
use crate::plan::{Patch, Segment};
use crate::source::Source;
use crate::volume::Volume;

/// The contents of `coreos/igninfo.json`.
#[derive(Deserialize)]
struct IgnitionDescription {
    file: String,
    #[serde(default)]
    offset: u64,
    length: Option<u64>,
}

/// The mechanism by which the Ignition area was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum IgnitionOrigin {
    /// `coreos/igninfo.json` describes the area.
    Description,
    /// The area is the file `images/ignition.img`.
    File,
    /// The header `coreiso+` in the system area contains the position of the area.
    Header,
}

/// The position of the Ignition area and how it was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct IgnitionArea {
    /// Position of the area in the image.
    pub extent: Extent,
    /// The mechanism by which the area was found.
    pub origin: IgnitionOrigin,
}

impl IgnitionArea {
    /// Finds the area of an image. It reads only the directories and the descriptions of the area, so it also suits
    /// slow sources.
    ///
    /// # Errors
    ///
    /// Returns an error if the storage fails, if the source is not a complete ISO 9660 image, or if the structures of
    /// the image contradict each other.
    pub fn find(source: &Source) -> Result<Option<Self>> {
        let volume = Volume::read(source)?;
        Self::read(DescribedImage { source, volume: &volume }, &SystemAreaHeaders::read(source)?)
    }

    /// Finds the area, or returns `None` if the image has none, like s390x images from before 2023.
    pub(crate) fn read(image: DescribedImage<'_>, headers: &SystemAreaHeaders) -> Result<Option<Self>> {
        if let Some(description) = image.read_description(IGNITION_INFO)? {
            return Self::from_description(image, &description).map(Some);
        }
        if let Some(entry) = image.volume.file(IGNITION_FILE) {
            return Ok(Some(Self { extent: entry.extent, origin: IgnitionOrigin::File }));
        }
        Ok(headers.ignition.map(|extent| Self { extent, origin: IgnitionOrigin::Header }))
    }

    /// Returns the patches that write a packed archive, followed by zeros, to the area of the image `file`.
    pub(crate) fn patches(&self, file: &str, archive: &Bytes) -> Result<[Patch; 2]> {
        let (len, capacity) = (archive.len() as u64, self.extent.len());
        let Some(rest) = capacity.checked_sub(len) else {
            return Err(Error::ArchiveTooLarge { file: file.to_owned(), len, capacity });
        };
        // The zeros overwrite the rest of a longer archive from an earlier edit.
        let offset = self.extent.offset();
        Ok([
            Patch { offset, segment: Segment::Bytes(archive.clone()) },
            Patch { offset: offset + len, segment: Segment::Zero(rest) },
        ])
    }

    fn from_description(image: DescribedImage<'_>, area: &IgnitionDescription) -> Result<Self> {
        let file = image.named_file(IGNITION_INFO, &area.file)?.extent;
        let len = area.length.or_else(|| file.len().checked_sub(area.offset));
        let extent = len.and_then(|len| file.subextent(Extent::new(area.offset, len)?));
        let extent = extent.ok_or_else(|| {
            let length = area.length.map_or("none".to_owned(), |length| length.to_string());
            let (offset, len, path) = (area.offset, file.len(), &area.file);
            let reason =
                format!("offset {offset} and length {length} do not lie within the {len} bytes of {path}");
            image.invalid_description(IGNITION_INFO, reason)
        })?;
        Ok(Self { extent, origin: IgnitionOrigin::Description })
    }
}
