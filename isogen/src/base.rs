//! The base image: opens a CoreOS live ISO, and reads and checks the structures that plans rely on.
//!
//! The modules in a higher layer, such as `planner`, plan artifacts of an opened base image.

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

/// Path of the directory with the PXE files in the image.
pub(crate) const PXE_DIRECTORY: &str = "images/pxeboot";

/// A CPU architecture of CoreOS images.
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

/// An opened base image.
///
/// It is immutable. Opening has read and checked all structures that plans rely on.
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
    /// Description of the minimal ISO. It is unpacked on first use, takes about a megabyte, and all plans share it.
    minimal: OnceLock<Arc<MinimalDescription>>,
    /// Result of the verification of the minimal ISO: `true` if its digest is the digest recorded in `miniso.dat`.
    /// Unset before the verification.
    minimal_verified: OnceLock<bool>,
    /// Whether an in-place edit was started but not completed.
    is_interrupted: bool,
}

impl BaseImage {
    /// Opens an image file and reads its structures. It reads a few tens of kilobytes, independent of the image's size.
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

    /// Returns the source of the image's bytes.
    #[must_use]
    pub fn source(&self) -> &Arc<Source> {
        &self.source
    }

    /// Returns the ISO 9660 structures.
    #[must_use]
    pub fn volume(&self) -> &Volume {
        &self.volume
    }

    /// Returns the El Torito boot catalogue, or `None` if the image has none.
    #[must_use]
    pub fn boot_catalog(&self) -> Option<&BootCatalog> {
        self.catalog.as_ref()
    }

    /// Returns the partition tables of the image. All of them may be missing.
    #[must_use]
    pub fn partitions(&self) -> &PartitionTables {
        &self.partitions
    }

    /// Returns the source and the volume in one type, for the readers of JSON descriptions.
    pub(crate) fn described(&self) -> DescribedImage<'_> {
        DescribedImage { source: &self.source, volume: &self.volume }
    }

    /// Returns the CoreOS headers in the system area.
    pub(crate) fn headers(&self) -> &SystemAreaHeaders {
        &self.headers
    }

    /// Returns the embed area for initrd archives, or `None` if the image has none, like s390x images from before 2023.
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

    /// Returns the embed areas for kernel arguments, or `None` if the image has none.
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

    /// Returns the architecture that the boot files are for, or `None` if the boot files do not reveal it.
    #[must_use]
    pub fn architecture(&self) -> Option<Architecture> {
        let has = |path: &str| self.volume.tree().find(path).is_some_and(|entry| !entry.extent.is_empty());
        let bios =
            |catalog: &BootCatalog| catalog.entries.iter().any(|entry| entry.platform == BootPlatform::Bios);
        if has("images/cdboot.img") {
            Some(Architecture::S390x)
        } else if self.catalog.is_none() && (has("ppc") || has("boot/grub/grub.cfg")) {
            // Images for ppc64le have no boot catalogue. The presence of GRUB files does not distinguish architectures.
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
    /// Returns an error if the area contains neither archives nor zeros. The error is [`Error::Interrupted`] if an
    /// in-place edit was started but not completed.
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

    /// Returns a plan of the contents of a file.
    ///
    /// # Errors
    ///
    /// Returns an error if the image does not have the file.
    pub fn file(&self, path: &str) -> Result<Plan> {
        Ok(self.plan_extent(self.require_file(path)?.extent))
    }

    /// Returns a plan of the bytes in an extent of the image.
    pub(crate) fn plan_extent(&self, extent: Extent) -> Plan {
        Plan::new(Arc::clone(&self.source), [Segment::Base(extent)])
    }

    /// Returns the path of the file that contains an extent, or `None` if no single file contains it.
    #[must_use]
    pub fn file_at(&self, extent: Extent) -> Option<String> {
        let tree = self.volume().tree();
        tree.files().find(|(_, file)| file.extent.contains(extent)).map(|(id, _)| tree.path(id))
    }

    /// Returns the paths of the files that overlap an extent, in the order of the image.
    #[must_use]
    pub fn files_in(&self, extent: Extent) -> Vec<String> {
        let tree = self.volume().tree();
        let mut files: Vec<_> = tree.files().filter(|(_, file)| file.extent.overlaps(extent)).collect();
        files.sort_by_key(|(_, file)| file.extent.offset());
        files.into_iter().map(|(id, _)| tree.path(id)).collect()
    }

    /// Returns the path of the file that contains an extent, and the offset of the extent in the file.
    pub(crate) fn locate_in_file(&self, extent: Extent) -> Option<(String, u64)> {
        let path = self.file_at(extent)?;
        let offset = extent.offset().checked_sub(self.require_file(&path).ok()?.extent.offset())?;
        Some((path, offset))
    }

    /// Returns the path of a file in the spelling of the image. Without Rock Ridge, the image shortens names to the 8.3
    /// form.
    pub(crate) fn path_in_image(&self, path: &str) -> String {
        let tree = self.volume.tree();
        tree.find_id(path).map_or_else(|| path.to_owned(), |id| tree.path(id))
    }

    /// Returns the description of this image's minimal ISO. The first call reads it.
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

    /// Returns the number of bytes of a plan that this image keeps in memory only once for all of its plans. These are
    /// the bytes of the minimal ISO that `miniso.dat` contains.
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

    /// Hashes the minimal ISO that `miniso.dat` describes and compares the result with the recorded digest. The digests
    /// differ if a file that both images share was changed. The verification reads about a hundred megabytes through a
    /// buffer of fixed size.
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

    /// Sets the result of an earlier [`verify_minimal`](Self::verify_minimal) of the same bytes. Without this call, the
    /// first plan of a minimal ISO verifies the description. If the result is already set, the call has no effect.
    pub fn set_minimal_verified(&self, is_verified: bool) {
        self.minimal_verified.get_or_init(|| is_verified);
    }

    /// Returns `true` if the minimal ISO can be made from `miniso.dat`. Verifies the description on the first call.
    pub(crate) fn is_minimal_verified(&self) -> Result<bool> {
        if let Some(is_verified) = self.minimal_verified.get() {
            return Ok(*is_verified);
        }
        match self.verify_minimal() {
            Err(error) if leaves_description_unknown(&error) => Err(error),
            result => Ok(result.is_ok()),
        }
    }

    /// Returns an error if an in-place edit was started but not completed.
    pub(crate) fn require_no_interrupted_edit(&self) -> Result<()> {
        let interrupted = || Error::Interrupted { file: self.source.name().to_owned() };
        if self.is_interrupted { Err(interrupted()) } else { Ok(()) }
    }

    /// Checks that the image is not customised: its Ignition area is empty and it has the default kernel arguments.
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

/// Rejects embed areas that overlap, because an edit of one area would overwrite the other.
fn check_areas_disjoint(
    source: &Source,
    ignition: Option<IgnitionArea>,
    kargs: Option<&KargsAreas>,
) -> Result<()> {
    let (Some(ignition), Some(kargs)) = (ignition, kargs) else { return Ok(()) };
    let overlaps = |area: &&KargsArea| area.extent.overlaps(ignition.extent);
    let Some(area) = kargs.areas().iter().find(overlaps) else { return Ok(()) };
    let actual = format!("{}, which overlaps the Ignition area {}", area.extent, ignition.extent);
    Err(source.malformed(area.extent.offset(), "kargs area", "an area that overlaps no other", actual))
}

/// Returns `true` if an error does not prove that the description of the minimal ISO is wrong. A failed read may
/// succeed the next time, and another build may support the compression.
fn leaves_description_unknown(error: &Error) -> bool {
    matches!(error, Error::Read { .. } | Error::UnsupportedCompression { .. })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All plans share the description, which takes about a megabyte.
    #[test]
    #[cfg_attr(not(feature = "xz"), ignore = "needs xz")]
    fn minimal_description_is_read_once() {
        let recipe = fixtures::Recipe::new(fixtures::Architecture::X86_64, fixtures::Era::E2023_07);
        let image = BaseImage::from_source(Source::from_bytes("base.iso", recipe.build())).unwrap();
        let [first, second] = [0, 1].map(|_| image.minimal_description().unwrap());
        assert!(Arc::ptr_eq(&first, &second));
    }
}
