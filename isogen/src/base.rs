//! Opens and reads a base image. `planner` and other modules above this one plan with it.

use std::path::Path;
use std::sync::{Arc, OnceLock};

use serde::Serialize;

use crate::areas::{DescribedImage, Features, IgnitionArea, SystemAreaHeaders, read_kargs_areas};
use crate::eltorito::{BootCatalog, BootPlatform};
use crate::error::{Error, Result};
use crate::extent::Extent;
use crate::initrd::{Archive, ArchiveLimits};
use crate::kargs::{KargsArea, KargsAreas};
use crate::miniso::{self, MinimalDescription};
use crate::partitions::PartitionTables;
use crate::plan::{Plan, Segment};
use crate::source::Source;
use crate::volume::{TreeEntry, Volume};
use crate::write::EDIT_MARKER;

/// The directory of the PXE files.
pub(crate) const PXE_DIRECTORY: &str = "images/pxeboot";

/// The CPU architecture of an image.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Architecture {
    /// 64-bit x86.
    #[serde(rename = "x86_64")]
    X86_64,
    /// 64-bit ARM.
    Aarch64,
    /// 64-bit little-endian POWER.
    Ppc64le,
    /// IBM Z.
    S390x,
}

/// A base image that has been opened.
///
/// It is immutable. All structures that plans rely on have been read and checked.
#[derive(Debug)]
pub struct BaseImage {
    source: Arc<Source>,
    volume: Volume,
    catalog: Option<BootCatalog>,
    partitions: PartitionTables,
    headers: SystemAreaHeaders,
    ignition: Option<IgnitionArea>,
    kargs: Option<KargsAreas>,
    features: Features,
    /// Unpacked on first use: about a megabyte that all plans share.
    minimal: OnceLock<Arc<MinimalDescription>>,
    /// Whether the minimal ISO that `miniso.dat` describes has the recorded digest.
    minimal_verified: OnceLock<bool>,
    /// Whether an in-place edit was started but not completed.
    is_interrupted: bool,
}

impl BaseImage {
    /// Opens an image file and reads its structures. That reads some tens of kilobytes, independent of the image's
    /// size.
    ///
    /// # Errors
    ///
    /// Returns an error if the file is not a complete ISO 9660 image, is not a CoreOS live ISO, or contradicts
    /// itself.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        Self::from_source(Source::open(path)?)
    }

    /// Reads the structures of an image.
    ///
    /// # Errors
    ///
    /// See [`open`](Self::open).
    pub fn from_source(source: Source) -> Result<Self> {
        let source = Arc::new(source);
        let volume = Volume::read(&source)?;
        let headers = SystemAreaHeaders::read(&source)?;
        let described = DescribedImage { source: &source, volume: &volume };
        let ignition = IgnitionArea::read(described, &headers)?;
        let mut kargs = read_kargs_areas(described, &headers)?;
        check_areas_disjoint(&source, ignition, kargs.as_ref())?;
        if ignition.is_none() && volume.tree().find(PXE_DIRECTORY).is_none() {
            return Err(not_core_os(&source, &volume, PXE_DIRECTORY));
        }
        let is_interrupted = match ignition.map(|area| area.extent.slice(0..EDIT_MARKER.len() as u64)) {
            Some(start) => source.read_extent(start)? == EDIT_MARKER,
            None => false,
        };
        if let Some(kargs) = &mut kargs {
            kargs.is_interrupted = is_interrupted;
        }
        Ok(Self {
            is_interrupted,
            minimal: OnceLock::new(),
            minimal_verified: OnceLock::new(),
            catalog: BootCatalog::read(&source, &volume)?,
            partitions: PartitionTables::read(&source)?,
            features: Features::read(described)?,
            source,
            volume,
            headers,
            ignition,
            kargs,
        })
    }

    /// Returns the bytes of the image.
    #[must_use]
    pub fn source(&self) -> &Arc<Source> {
        &self.source
    }

    /// Returns the ISO 9660 structures.
    #[must_use]
    pub fn volume(&self) -> &Volume {
        &self.volume
    }

    /// Returns the El Torito boot catalogue.
    #[must_use]
    pub fn boot_catalog(&self) -> Option<&BootCatalog> {
        self.catalog.as_ref()
    }

    /// Returns the partition tables.
    #[must_use]
    pub fn partitions(&self) -> &PartitionTables {
        &self.partitions
    }

    /// Returns the source and the volume, for reading descriptions.
    pub(crate) fn described(&self) -> DescribedImage<'_> {
        DescribedImage { source: &self.source, volume: &self.volume }
    }

    /// Returns the headers in the system area.
    pub(crate) fn headers(&self) -> &SystemAreaHeaders {
        &self.headers
    }

    /// Returns the embed area for initrd archives. Images for s390x from before 2023 do not have one.
    #[must_use]
    pub fn ignition_area(&self) -> Option<IgnitionArea> {
        self.ignition
    }

    /// Returns the embed area for initrd archives.
    ///
    /// # Errors
    ///
    /// Returns an error if the image does not have one.
    pub fn require_ignition_area(&self) -> Result<IgnitionArea> {
        let missing = "Ignition embed area";
        self.ignition.ok_or_else(|| not_core_os(&self.source, &self.volume, missing))
    }

    /// Returns the embed areas for kernel arguments.
    #[must_use]
    pub fn kargs(&self) -> Option<&KargsAreas> {
        self.kargs.as_ref()
    }

    /// Returns the embed areas for kernel arguments.
    ///
    /// # Errors
    ///
    /// Returns an error if the image does not have any.
    pub fn require_kargs(&self) -> Result<&KargsAreas> {
        self.kargs.as_ref().ok_or_else(|| Error::NoKargs { file: self.source.name().to_owned() })
    }

    /// Returns the features that the live system supports.
    #[must_use]
    pub fn features(&self) -> &Features {
        &self.features
    }

    /// Returns the architecture that the boot files are for, `None` if they do not show it.
    #[must_use]
    pub fn architecture(&self) -> Option<Architecture> {
        let has = |path: &str| self.volume.tree().find(path).is_some_and(|entry| !entry.extent.is_empty());
        let bios =
            |catalog: &BootCatalog| catalog.entries.iter().any(|entry| entry.platform == BootPlatform::Bios);
        if has("images/cdboot.img") {
            Some(Architecture::S390x)
        } else if self.catalog.is_none() && (has("ppc") || has("boot/grub/grub.cfg")) {
            // Images for ppc64le have no boot catalog. Images of other architectures may have files of GRUB.
            Some(Architecture::Ppc64le)
        } else if has("isolinux/isolinux.bin") || self.catalog.as_ref().is_some_and(bios) {
            Some(Architecture::X86_64)
        } else if has("images/efiboot.img") {
            Some(Architecture::Aarch64)
        } else {
            None
        }
    }

    /// Reads the archive in the Ignition area.
    ///
    /// # Errors
    ///
    /// Returns an error if the area contains neither archives nor zeros. The error is [`Error::Interrupted`] after an
    /// in-place edit that was not completed.
    pub fn archive(&self) -> Result<Archive> {
        let extent = self.require_ignition_area()?.extent;
        self.require_no_interrupted_edit()?;
        let archive = Archive::read(self.plan_extent(extent).reader(), ArchiveLimits::IGNITION_AREA);
        let (file, offset) = (self.source.name().to_owned(), extent.offset());
        archive.map_err(|source| Error::Archive { file, offset, source })
    }

    /// Returns the directory entry of a file.
    ///
    /// # Errors
    ///
    /// Returns an error if the image does not have the file.
    pub fn require_file(&self, path: &str) -> Result<&TreeEntry> {
        self.volume.file(path).ok_or_else(|| self.source.not_found(path))
    }

    /// Returns the bytes of a file.
    ///
    /// # Errors
    ///
    /// Returns an error if the image does not have the file.
    pub fn file(&self, path: &str) -> Result<Plan> {
        Ok(self.plan_extent(self.require_file(path)?.extent))
    }

    /// Returns the bytes of an extent.
    pub(crate) fn plan_extent(&self, extent: Extent) -> Plan {
        Plan::new(Arc::clone(&self.source), [Segment::Base(extent)])
    }

    /// Returns the path of the file that contains an extent.
    #[must_use]
    pub fn file_at(&self, extent: Extent) -> Option<String> {
        let tree = self.volume().tree();
        tree.files().find(|(_, file)| file.extent.contains(extent)).map(|(id, _)| tree.path(id))
    }

    /// Returns the paths of the files that overlap an extent, in the order of the image.
    #[must_use]
    pub fn files_in(&self, extent: Extent) -> Vec<String> {
        let tree = self.volume().tree();
        let mut found: Vec<_> = tree.files().filter(|(_, file)| file.extent.overlaps(extent)).collect();
        found.sort_by_key(|(_, file)| file.extent.offset());
        found.into_iter().map(|(id, _)| tree.path(id)).collect()
    }

    /// Returns the path of the file that contains an extent, and the offset of the extent in it.
    pub(crate) fn locate_in_file(&self, extent: Extent) -> Option<(String, u64)> {
        let path = self.file_at(extent)?;
        let offset = extent.offset().checked_sub(self.require_file(&path).ok()?.extent.offset())?;
        Some((path, offset))
    }

    /// Returns the path of a file as the image spells it: without Rock Ridge, names are cut to 8.3.
    pub(crate) fn path_in_image(&self, path: &str) -> String {
        let tree = self.volume.tree();
        tree.find_id(path).map_or_else(|| path.to_owned(), |id| tree.path(id))
    }

    /// Returns the description of this image's minimal ISO. It is read on the first call.
    ///
    /// # Errors
    ///
    /// Returns an error if the image has no valid description.
    pub(crate) fn minimal_description(&self) -> Result<Arc<MinimalDescription>> {
        if let Some(description) = self.minimal.get() {
            return Ok(Arc::clone(description));
        }
        let read = Arc::new(self.read_minimal_description()?);
        Ok(Arc::clone(self.minimal.get_or_init(|| read)))
    }

    /// Returns how many bytes of a plan this image keeps in memory for all of its plans: bytes of the minimal ISO that
    /// `miniso.dat` contains.
    #[must_use]
    pub fn shared_bytes(&self, plan: &Plan) -> usize {
        self.minimal.get().map_or(0, |description| plan.bytes_within(&description.literal))
    }

    fn read_minimal_description(&self) -> Result<MinimalDescription> {
        let missing = || Error::NoMinimal { file: self.source().name().to_owned() };
        let extent = self.volume().file(miniso::MINISO_PATH).ok_or_else(missing)?.extent;
        if extent.len() > miniso::MAX_MINISO_LEN {
            let expected = format!("at most {} bytes", miniso::MAX_MINISO_LEN);
            return Err(self.source().malformed(extent.offset(), "miniso.dat", expected, extent.len()));
        }
        MinimalDescription::parse(self.source(), extent.offset(), &self.source().read_extent(extent)?)
    }

    /// Hashes the minimal image that `miniso.dat` describes, in memory bounded by a buffer, and compares the result
    /// with the recorded digest. The digests differ if a file that both images share was changed. This reads about a
    /// hundred megabytes.
    ///
    /// # Errors
    ///
    /// Returns an error if the digests differ, if the image has no valid description, or if the image cannot be read.
    pub fn verify_minimal(&self) -> Result<()> {
        let verified = self.minimal_description().and_then(|description| description.verify(self.source()));
        if !matches!(&verified, Err(error) if leaves_description_unknown(error)) {
            self.set_minimal_verified(verified.is_ok());
        }
        verified
    }

    /// Records the result of an earlier [`verify_minimal`](Self::verify_minimal) of the same bytes. Without this call,
    /// the first plan of a minimal ISO verifies the description. Later calls have no effect.
    pub fn set_minimal_verified(&self, is_verified: bool) {
        self.minimal_verified.get_or_init(|| is_verified);
    }

    /// Returns `true` if the minimal ISO can be made from `miniso.dat`. Verifies the description if that was not done
    /// before.
    pub(crate) fn is_minimal_verified(&self) -> Result<bool> {
        if let Some(known) = self.minimal_verified.get() {
            return Ok(*known);
        }
        match self.verify_minimal() {
            Err(error) if leaves_description_unknown(&error) => Err(error),
            result => Ok(result.is_ok()),
        }
    }

    /// Checks that no in-place edit was started but not completed.
    pub(crate) fn require_no_interrupted_edit(&self) -> Result<()> {
        let interrupted = || Error::Interrupted { file: self.source.name().to_owned() };
        if self.is_interrupted { Err(interrupted()) } else { Ok(()) }
    }

    /// Checks that the image is not customised: its Ignition area is empty and its kernel arguments are the default
    /// ones.
    ///
    /// # Errors
    ///
    /// Returns an error that names the customised area.
    pub fn require_pristine(&self) -> Result<()> {
        let customized = |what| Err(Error::Customized { file: self.source.name().to_owned(), what });
        if self.ignition.is_some() && !self.archive()?.is_empty() {
            return customized("the Ignition area");
        }
        match &self.kargs {
            Some(kargs) if kargs.current()? != kargs.default()? => customized("the kernel arguments"),
            _ => Ok(()),
        }
    }
}

fn not_core_os(source: &Source, volume: &Volume, missing: &'static str) -> Error {
    let (file, volume_id) = (source.name().to_owned(), volume.id().to_owned());
    Error::NotCoreOs { file, missing, volume_id }
}

/// Rejects areas that share bytes: edits would overwrite each other.
fn check_areas_disjoint(
    source: &Source,
    ignition: Option<IgnitionArea>,
    kargs: Option<&KargsAreas>,
) -> Result<()> {
    let (Some(ignition), Some(kargs)) = (ignition, kargs) else { return Ok(()) };
    let overlaps = |area: &&KargsArea| area.extent.overlaps(ignition.extent);
    let Some(area) = kargs.areas().iter().find(overlaps) else { return Ok(()) };
    let found = format!("{}, which overlaps the Ignition area {}", area.extent, ignition.extent);
    Err(source.malformed(area.extent.offset(), "kargs area", "an area that overlaps no other", found))
}

/// Returns `true` if an error does not show that the description of the minimal ISO is wrong: a read may succeed the
/// next time, and a build that supports the compression can read the description.
fn leaves_description_unknown(error: &Error) -> bool {
    matches!(error, Error::Read { .. } | Error::UnsupportedCompression { .. })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The description has about a megabyte. All plans share it.
    #[test]
    #[cfg_attr(not(feature = "xz"), ignore = "needs xz")]
    fn minimal_description_is_read_once() {
        let recipe = fixtures::Recipe::new(fixtures::Architecture::X86_64, fixtures::Era::E2023_07);
        let image = BaseImage::from_source(Source::from_bytes("base.iso", recipe.build())).unwrap();
        let [first, second] = [0, 1].map(|_| image.minimal_description().unwrap());
        assert!(Arc::ptr_eq(&first, &second));
    }
}
