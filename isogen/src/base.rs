//! A live image, opened: the table from which every plan is made.

use std::fmt;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use serde::Serialize;

use crate::areas::{Features, IgnitionArea, SystemAreaHeaders, read_kargs};
use crate::edits::Edits;
use crate::eltorito::{BootCatalog, Platform};
use crate::error::{Error, Result};
use crate::extent::Extent;
use crate::initrd::{Archive, ArchiveError, Limits};
use crate::kargs::{KargsAreas, KargsEdit};
use crate::miniso::MinimalDescription;
use crate::partitions::PartitionTables;
use crate::plan::{Patch, Plan, Segment};
use crate::pxe::DIRECTORY as PXE_DIRECTORY;
use crate::source::Source;
use crate::volume::{Entry, Volume};
use crate::write::EDIT_MARKER;

/// The machine that an image is for.
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

/// How a changed image is laid out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// As the base: all changes are in its embed areas.
    InPlace,
    /// As the image describes its minimal form.
    Described,
    /// Anew, for this reason.
    Relayout(&'static str),
}

impl fmt::Display for Way {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::InPlace => f.write_str("in place"),
            Self::Described => f.write_str("as the live image describes it"),
            Self::Relayout(reason) => write!(f, "laid out anew: {reason}"),
        }
    }
}

/// An opened CoreOS live image. Immutable; everything that plans rely on has been read and checked.
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
    /// Unpacked when it is first asked for: about a megabyte, which all plans share.
    pub(crate) minimal: OnceLock<Arc<MinimalDescription>>,
    /// Whether an edit in place was begun and not completed.
    interrupted: bool,
}

impl BaseImage {
    /// Opens an image file and reads its structures: some tens of kilobytes, whatever the size of the image.
    ///
    /// # Errors
    ///
    /// Fails where the file is no complete ISO 9660 image, is not a CoreOS live image, or contradicts itself.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        Self::from_source(Source::open(path)?)
    }

    /// Reads the structures of an image.
    ///
    /// # Errors
    ///
    /// As [`open`](Self::open).
    pub fn from_source(source: Source) -> Result<Self> {
        let source = Arc::new(source);
        let volume = Volume::read(&source)?;
        let headers = SystemAreaHeaders::read(&source)?;
        let ignition = IgnitionArea::read(&source, &volume, &headers)?;
        let mut kargs = read_kargs(&source, &volume, &headers)?;
        check_apart(&source, ignition, kargs.as_ref())?;
        if ignition.is_none() && volume.tree().find(PXE_DIRECTORY).is_none() {
            return Err(not_core_os(&source, &volume, PXE_DIRECTORY));
        }
        let interrupted = ignition.map(|area| is_interrupted(&source, area)).transpose()?.unwrap_or_default();
        if let Some(kargs) = &mut kargs {
            kargs.interrupted = interrupted;
        }
        Ok(Self {
            interrupted,
            minimal: OnceLock::new(),
            catalog: BootCatalog::read(&source, &volume)?,
            partitions: PartitionTables::read(&source)?,
            features: Features::read(&source, &volume)?,
            source,
            volume,
            headers,
            ignition,
            kargs,
        })
    }

    /// The bytes of the image.
    #[must_use]
    pub fn source(&self) -> &Arc<Source> {
        &self.source
    }

    /// Its ISO 9660 structures.
    #[must_use]
    pub fn volume(&self) -> &Volume {
        &self.volume
    }

    /// Its El Torito boot catalogue.
    #[must_use]
    pub fn boot_catalog(&self) -> Option<&BootCatalog> {
        self.catalog.as_ref()
    }

    /// Its partition tables.
    #[must_use]
    pub fn partitions(&self) -> &PartitionTables {
        &self.partitions
    }

    /// Its headers in the system area.
    #[must_use]
    pub fn headers(&self) -> &SystemAreaHeaders {
        &self.headers
    }

    /// Where it takes an initrd archive. Images for s390x of before 2023 have no such area.
    #[must_use]
    pub fn ignition_area(&self) -> Option<IgnitionArea> {
        self.ignition
    }

    /// Where it takes an initrd archive, or an error that says it does not.
    ///
    /// # Errors
    ///
    /// Fails for images without such an area.
    pub fn require_ignition_area(&self) -> Result<IgnitionArea> {
        let missing = "place for an Ignition config";
        self.ignition.ok_or_else(|| not_core_os(&self.source, &self.volume, missing))
    }

    /// Where it has its kernel arguments.
    #[must_use]
    pub fn kargs(&self) -> Option<&KargsAreas> {
        self.kargs.as_ref()
    }

    /// Where it has its kernel arguments, or an error that says it has none.
    ///
    /// # Errors
    ///
    /// Fails for images without such areas.
    pub fn require_kargs(&self) -> Result<&KargsAreas> {
        self.kargs.as_ref().ok_or_else(|| Error::NoKargs { file: self.source.name().to_owned() })
    }

    /// What its live system understands.
    #[must_use]
    pub fn features(&self) -> &Features {
        &self.features
    }

    /// The machine it is for, judged by its boot files; `None` where they tell nothing.
    #[must_use]
    pub fn architecture(&self) -> Option<Architecture> {
        let has = |path: &str| self.volume.tree().find(path).is_some_and(|entry| !entry.extent.is_empty());
        let bios =
            |catalog: &BootCatalog| catalog.entries.iter().any(|entry| entry.platform == Platform::Bios);
        if has("images/cdboot.img") {
            Some(Architecture::S390x)
        } else if has("ppc") || has("boot/grub/grub.cfg") {
            Some(Architecture::Ppc64le)
        } else if has("isolinux/isolinux.bin") || self.catalog.as_ref().is_some_and(bios) {
            Some(Architecture::X86_64)
        } else if has("images/efiboot.img") {
            Some(Architecture::Aarch64)
        } else {
            None
        }
    }

    /// The archive that the Ignition area holds now.
    ///
    /// # Errors
    ///
    /// Fails where the area holds neither archives nor zeros, and says so in particular where an edit in place was
    /// interrupted.
    pub fn archive(&self) -> Result<Archive> {
        let extent = self.require_ignition_area()?.extent;
        if self.interrupted {
            return Err(self.interrupted_error());
        }
        let area = Plan::of(Arc::clone(&self.source), [Segment::Base(extent)]);
        Archive::read(area.reader(), Limits::AREA).map_err(|error| self.archive_error(extent.offset(), error))
    }

    pub(crate) fn archive_error(&self, offset: u64, source: ArchiveError) -> Error {
        Error::Archive { file: self.source.name().to_owned(), offset, source }
    }

    /// The entry of a file that an operation needs.
    ///
    /// # Errors
    ///
    /// Fails where the image has no such file.
    pub fn require_file(&self, path: &str) -> Result<&Entry> {
        let missing = || Error::NotFound { file: self.source.name().to_owned(), path: path.to_owned() };
        self.volume.file(path).ok_or_else(missing)
    }

    /// The bytes of one file of the image.
    ///
    /// # Errors
    ///
    /// Fails where the image has no such file.
    pub fn file(&self, path: &str) -> Result<Plan> {
        let extent = self.require_file(path)?.extent;
        Ok(Plan::of(Arc::clone(&self.source), [Segment::Base(extent)]))
    }

    /// The image with changes: [in place](Self::plan_in_place) where they fit into its embed areas, the minimal form
    /// after its description where there is one, else [laid out anew](crate::relayout).
    ///
    /// # Errors
    ///
    /// Fails where a change is refused or the image has no area for it.
    pub fn plan(&self, edits: &Edits) -> Result<Plan> {
        match self.way(edits)? {
            Way::InPlace => self.plan_in_place(edits),
            Way::Described => self.plan_described(edits),
            Way::Relayout(reason) => self.plan_relayout(edits, reason),
        }
    }

    /// Which way [`plan`](Self::plan) takes for some edits, and why.
    ///
    /// # Errors
    ///
    /// Fails where a change is refused or the image has no area for it.
    pub fn way(&self, edits: &Edits) -> Result<Way> {
        if !edits.images.is_empty() {
            return Ok(Way::Relayout("an initrd image is added"));
        }
        self.check_complete(edits)?;
        match edits.archive.as_ref().map(|archive| self.archive_patches(archive)).transpose() {
            Err(Error::ArchiveTooLarge { .. }) => {
                return Ok(Way::Relayout("the archive is larger than its area"));
            }
            fitting => drop(fitting?),
        }
        if edits.kargs.is_some() || edits.minimal.is_some() {
            match self.require_kargs()?.patches(&self.edited_kargs(edits)?) {
                Err(Error::Kargs { reason: crate::error::KargsError::TooLarge { .. }, .. }) => {
                    return Ok(Way::Relayout("the kernel arguments are longer than their areas"));
                }
                fitting => drop(fitting?),
            }
        }
        match &edits.minimal {
            None => Ok(Way::InPlace),
            Some(_) if self.volume().file(crate::miniso::PATH).is_some() => Ok(Way::Described),
            Some(_) => Ok(Way::Relayout("the image does not describe its minimal form")),
        }
    }

    /// The minimal form after `miniso.dat`, with the other edits in its areas.
    fn plan_described(&self, edits: &Edits) -> Result<Plan> {
        let minimal = self.minimal(None)?;
        let kargs = KargsEdit::Set(self.edited_kargs(edits)?);
        let edits = Edits { minimal: None, kargs: Some(kargs), ..edits.clone() };
        let image =
            Self::from_source(Source::new(self.source().name().to_owned(), minimal.len(), minimal.clone()))?;
        Ok(image.plan(&edits)?.resolved(&minimal))
    }

    /// The image with changes, all of them within its embed areas.
    ///
    /// # Errors
    ///
    /// Fails where a change does not fit, is refused, or the image has no area for it.
    pub fn plan_in_place(&self, edits: &Edits) -> Result<Plan> {
        self.check_complete(edits)?;
        let mut patches = Vec::new();
        if let Some(archive) = &edits.archive {
            patches.extend(self.archive_patches(archive)?);
        }
        if let Some(edit) = &edits.kargs {
            let kargs = self.require_kargs()?;
            patches.extend(kargs.patches(&kargs.edited(edit)?)?);
        }
        Plan::whole(Arc::clone(&self.source)).patched(patches)
    }

    /// After an edit in place that was interrupted, only edits that replace all of its places make an image whole.
    pub(crate) fn check_complete(&self, edits: &Edits) -> Result<()> {
        let kargs =
            matches!(&edits.kargs, Some(KargsEdit::Set(_) | KargsEdit::Reset | KargsEdit::Default(_)));
        let whole = edits.archive.is_some() && (kargs || self.kargs.is_none());
        if self.interrupted && !whole { Err(self.interrupted_error()) } else { Ok(()) }
    }

    fn interrupted_error(&self) -> Error {
        Error::Interrupted { file: self.source.name().to_owned() }
    }

    pub(crate) fn archive_patches(&self, archive: &bytes::Bytes) -> Result<[Patch; 2]> {
        let area = self.require_ignition_area()?.extent;
        let len = archive.len() as u64;
        let Some(rest) = area.len().checked_sub(len) else {
            return Err(Error::ArchiveTooLarge {
                file: self.source.name().to_owned(),
                len,
                capacity: area.len(),
            });
        };
        // Zeros to the end of the area: a longer archive of before must not show behind a shorter one.
        Ok([
            Patch { offset: area.offset(), segment: Segment::Bytes(archive.clone()) },
            Patch { offset: area.offset() + len, segment: Segment::Zero(rest) },
        ])
    }

    /// Makes sure that the image holds no customisations: an empty Ignition area and its default kernel arguments.
    ///
    /// # Errors
    ///
    /// Fails with what is not as published.
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

/// Tells whether an area begins with the marker of an edit that was not completed.
fn is_interrupted(source: &Source, area: IgnitionArea) -> Result<bool> {
    let start = Extent::new(area.extent.offset(), area.extent.len().min(EDIT_MARKER.len() as u64));
    Ok(start.map(|start| source.read_extent(start)).transpose()?.is_some_and(|start| start == EDIT_MARKER))
}

/// Areas that share bytes would undo each other's edits.
fn check_apart(source: &Source, ignition: Option<IgnitionArea>, kargs: Option<&KargsAreas>) -> Result<()> {
    let Some(ignition) = ignition else { return Ok(()) };
    let areas = kargs.map_or(&[][..], KargsAreas::areas);
    match areas.iter().find(|area| area.extent.overlaps(ignition.extent)) {
        Some(area) => Err(source.malformed(
            area.extent.offset(),
            "kargs area",
            "bytes of its own",
            format!("{}, which overlaps the Ignition area {}", area.extent, ignition.extent),
        )),
        None => Ok(()),
    }
}
