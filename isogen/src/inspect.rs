//! Describes an image as a serializable structure, for users and programs.

use serde::Serialize;

use crate::areas::{Features, IgnitionArea, IgnitionOrigin, KARGS_INFO};
use crate::base::{Architecture, BaseImage};
use crate::eltorito::BootCatalog;
use crate::error::{Error, OrInternal, format_with_causes};
use crate::extent::Extent;
use crate::initrd::{Archive, IGNITION_CONFIG};
use crate::kargs::{KargsArea, KargsAreas, KargsOrigin};
use crate::partitions::PartitionTables;
use crate::volume::{EntryId, VolumeFinding};

/// A serializable description of an image.
#[derive(Debug, Serialize)]
#[non_exhaustive]
pub struct Inspection {
    /// The name of the image.
    pub file: String,
    /// The length of the image in bytes.
    pub len: u64,
    /// Identifiers and size of the ISO 9660 volume.
    pub volume: VolumeSummary,
    /// The architecture that the image boots on; `None` if the boot files do not reveal it.
    pub architecture: Option<Architecture>,
    /// The generation of the image format: the month in which builders began to make images like this one.
    pub generation: &'static str,
    /// The reason why the image was re-laid out; `None` if the image has the layout of its builder.
    #[serde(rename = "new_layout")]
    pub relayout_reason: Option<String>,
    /// The boot loaders and kernels that secure boot verifies, and the file system images that contain them.
    pub boot_files: Vec<BootFileSummary>,
    /// The El Torito boot catalogue; `None` if the image has none.
    pub boot_catalog: Option<BootCatalog>,
    /// The partition tables in the system area.
    pub partitions: PartitionTables,
    /// The Ignition area and its contents; `None` if the image has no area.
    pub ignition_area: Option<IgnitionSummary>,
    /// The kernel-argument areas and their contents; `None` if the image has no areas.
    pub kargs: Option<KargsSummary>,
    /// The features of the live system.
    pub features: Features,
    /// The minimal ISO, or the reason why the minimal ISO is not available.
    pub minimal: MinimalSummary,
    /// All files and directories, in the order of the directory tree.
    pub files: Vec<FileSummary>,
    /// Irregularities of the volume that do not prevent its use.
    pub findings: Vec<VolumeFinding>,
}

/// A file that takes part in booting. Its digest is the same in all images made from one base image.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct BootFileSummary {
    /// Path of the file.
    pub path: String,
    /// Length of the file in bytes.
    pub len: u64,
    /// SHA-256 digest of the file.
    pub sha256: crate::digest::Digest,
}

/// Identifiers and size of a volume.
#[derive(Debug, Serialize)]
#[non_exhaustive]
pub struct VolumeSummary {
    /// The volume identifier.
    pub id: String,
    /// The volume set identifier.
    pub set_id: String,
    /// The system identifier.
    pub system_id: String,
    /// Number of sectors in the volume.
    pub sectors: u32,
    /// The Joliet level, if the volume has a Joliet tree.
    pub joliet_level: Option<u8>,
    /// `true` if the directory tree has Rock Ridge entries.
    #[serde(rename = "rock_ridge")]
    pub has_rock_ridge: bool,
}

/// The contents of the Ignition area.
#[derive(Debug, Serialize)]
#[non_exhaustive]
pub struct IgnitionSummary {
    /// Position of the area in the image.
    pub extent: Extent,
    /// The source of the area's position.
    pub origin: IgnitionOrigin,
    /// Length of the area's contents in bytes, without trailing zeros.
    #[serde(rename = "used")]
    pub used_len: u64,
    /// The members of the area's archives.
    pub members: Vec<MemberSummary>,
    /// The error from reading the members, with all causes; `None` if the members were read.
    pub error: Option<String>,
    /// The Ignition config, if the area contains one. It is not serialized, because it may contain secrets.
    #[serde(skip)]
    pub config: Option<bytes::Bytes>,
}

/// A member of an initrd archive.
#[derive(Debug, Serialize)]
#[non_exhaustive]
pub struct MemberSummary {
    /// Name of the member.
    pub name: String,
    /// Length of the contents in bytes.
    pub len: u64,
}

/// The kernel arguments and their areas.
#[derive(Debug, Serialize)]
#[non_exhaustive]
pub struct KargsSummary {
    /// The source of the areas' positions.
    pub origin: KargsOrigin,
    /// The current arguments; `None` if they cannot be read.
    pub current: Option<String>,
    /// The default arguments, set by the image builder; `None` if the image does not record them.
    pub default: Option<String>,
    /// Length of each area in bytes. The maximum length of a command line is one byte less.
    pub area_len: u64,
    /// Number of bytes that can be appended to the current arguments.
    #[serde(rename = "free")]
    pub free_len: u64,
    /// The areas, in ascending order of their position in the image.
    pub areas: Vec<KargsAreaSummary>,
    /// The error from reading the current arguments; `None` if the arguments were read.
    pub error: Option<String>,
}

/// A kernel-argument area.
#[derive(Debug, Serialize)]
#[non_exhaustive]
pub struct KargsAreaSummary {
    /// Position of the area in the image.
    pub extent: Extent,
    /// Path of the file that contains the area; `None` if no file contains it.
    pub file: Option<String>,
}

/// The minimal ISO that an image describes.
#[derive(Debug, Serialize)]
#[non_exhaustive]
pub struct MinimalSummary {
    /// `true` if the image has a valid description of its minimal ISO.
    #[serde(rename = "available")]
    pub is_available: bool,
    /// Length of the minimal ISO in bytes.
    pub len: Option<u64>,
    /// SHA-256 digest of the minimal ISO.
    pub sha256: Option<crate::digest::Digest>,
    /// Version of the program that wrote the description.
    pub writer: Option<String>,
    /// The reason why the minimal ISO is not available.
    pub error: Option<String>,
}

/// An entry of the directory tree.
#[derive(Debug, Serialize)]
#[non_exhaustive]
pub struct FileSummary {
    /// Path with Rock Ridge names, or with ISO 9660 names if the image has no Rock Ridge entries.
    pub path: String,
    /// Path with ISO 9660 names.
    pub iso_path: String,
    /// `true` for a directory.
    #[serde(rename = "directory")]
    pub is_directory: bool,
    /// Position of the contents in the image.
    pub extent: Extent,
    /// Offset of the directory record in the image.
    #[serde(rename = "record")]
    pub record_offset: u64,
}

impl BaseImage {
    /// Returns a description of the image. If an embed area cannot be read, the summary of that area contains the
    /// error.
    ///
    /// # Errors
    ///
    /// Returns an error if the storage fails.
    pub fn inspect(&self) -> Result<Inspection, Error> {
        let volume = self.volume();
        Ok(Inspection {
            file: self.source().name().to_owned(),
            len: self.source().len(),
            volume: VolumeSummary {
                id: volume.id().to_owned(),
                set_id: volume.primary().volume_set_id.clone(),
                system_id: volume.primary().system_id.clone(),
                sectors: volume.primary().space_size,
                joliet_level: volume.joliet().and_then(|descriptor| descriptor.joliet).map(|level| level.0),
                has_rock_ridge: volume.tree().entries().any(|(_, entry)| entry.mode.is_some()),
            },
            architecture: self.architecture(),
            generation: self.generation(),
            relayout_reason: self.layout_reason()?,
            boot_files: self.boot_files()?,
            boot_catalog: self.boot_catalog().cloned(),
            partitions: self.partitions().clone(),
            ignition_area: self.ignition_area().map(|area| self.inspect_ignition(area)).transpose()?,
            kargs: self.kargs().map(|kargs| self.inspect_kargs(kargs)),
            features: self.features().clone(),
            minimal: self.inspect_minimal()?,
            files: self.inspect_files()?,
            findings: volume.findings().to_vec(),
        })
    }

    /// Returns the generation of the image format, derived from the embed mechanisms of the image.
    pub(crate) fn generation(&self) -> &'static str {
        let has_filler = |area: &KargsArea| area.pad.is_some();
        let kargs = self.kargs();
        let has = |path: &str| self.volume().file(path).is_some();
        let headers = self.headers().ignition.is_some() || self.headers().kargs.is_some();
        if kargs.is_some_and(|kargs| kargs.areas().iter().any(has_filler)) {
            let older = has("zipl.prm") || has("images/pxeboot/kernel.img") || has("ppc/bootinfo.txt");
            if older { "2023-07" } else { "2024-12" }
        } else if self.ignition_area().is_some_and(|area| area.origin == IgnitionOrigin::Description) {
            "2023-03"
        } else if !self.features().installer_config_directives.is_empty() {
            "2022-09"
        } else if has("coreos/miniso.dat") {
            if headers { "2021-12" } else { "2022-02" }
        } else if has(KARGS_INFO) {
            "2021-09"
        } else if kargs.is_some() {
            "2021-01"
        } else {
            "2020-09"
        }
    }

    /// Returns the files that secure boot verifies and the files that contain them: UEFI boot loaders, the file system
    /// image with copies of the boot loaders, and the kernel. Reads each file completely.
    ///
    /// # Errors
    ///
    /// Returns an error if the storage fails.
    pub fn boot_files(&self) -> Result<Vec<BootFileSummary>, Error> {
        const OTHERS: [&str; 3] =
            ["images/efiboot.img", "images/pxeboot/vmlinuz", "images/pxeboot/kernel.img"];
        let tree = self.volume().tree();
        let signed = |path: &str| OTHERS.contains(&path) || path.to_ascii_lowercase().ends_with(".efi");
        let mut files = Vec::new();
        for (id, entry) in tree.files() {
            let path = tree.path(id);
            if signed(&path) {
                let plan = self.plan_extent(entry.extent);
                files.push(BootFileSummary { path, len: plan.len(), sha256: plan.sha256()? });
            }
        }
        files.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(files)
    }

    fn inspect_ignition(&self, area: IgnitionArea) -> Result<IgnitionSummary, Error> {
        let member = |(name, contents): (&str, &bytes::Bytes)| MemberSummary {
            name: name.to_owned(),
            len: contents.len() as u64,
        };
        // If the archive cannot be read, `error` contains the reason and `members` is empty.
        let (archive, error) = value_and_error(self.archive());
        let archive: Archive = archive.unwrap_or_default();
        Ok(IgnitionSummary {
            extent: area.extent,
            origin: area.origin,
            used_len: self.used_len(area.extent)?,
            members: archive.iter().map(member).collect(),
            error,
            config: archive.get(IGNITION_CONFIG).cloned(),
        })
    }

    /// Returns the length of an extent without its trailing zeros. Reads the extent backwards, because most areas are
    /// mostly zeros.
    fn used_len(&self, extent: Extent) -> Result<u64, Error> {
        const STEP: u64 = 64 << 10;
        let mut end = extent.end();
        while end > extent.offset() {
            let start = end.saturating_sub(STEP).max(extent.offset());
            let chunk = extent.slice(start - extent.offset()..end - extent.offset());
            let bytes = self.source().read_extent(chunk)?;
            if let Some(last) = bytes.iter().rposition(|byte| *byte != 0) {
                return Ok(start + last as u64 + 1 - extent.offset());
            }
            end = start;
        }
        Ok(0)
    }

    fn inspect_kargs(&self, kargs: &KargsAreas) -> KargsSummary {
        let (current, error) = value_and_error(kargs.current());
        let len = current.map_or(0, |current| current.len() as u64 + 1);
        let file =
            |area: &KargsArea| KargsAreaSummary { extent: area.extent, file: self.file_at(area.extent) };
        KargsSummary {
            origin: kargs.origin,
            current: current.map(ToOwned::to_owned),
            default: kargs.default().ok().map(ToOwned::to_owned),
            area_len: kargs.area_len(),
            free_len: kargs.area_len().saturating_sub(len),
            areas: kargs.areas().iter().map(file).collect(),
            error,
        }
    }

    fn inspect_minimal(&self) -> Result<MinimalSummary, Error> {
        let (description, error) = value_and_error(self.minimal_description());
        let plan = description.as_ref().map(|description| description.plan(self.source())).transpose()?;
        Ok(MinimalSummary {
            is_available: description.is_some(),
            len: plan.map(|plan| plan.len()),
            sha256: description.as_ref().map(|description| description.digest),
            writer: description.map(|description| description.writer.clone()),
            error,
        })
    }

    fn inspect_files(&self) -> Result<Vec<FileSummary>, Error> {
        let tree = self.volume().tree();
        let mut files = Vec::new();
        let mut pending = vec![EntryId::ROOT];
        while let Some(id) = pending.pop() {
            let entry = tree.entry(id).or_internal("entry of another tree", 0)?;
            let children: Vec<EntryId> = tree.children(id).map(|(id, _)| id).collect();
            pending.extend(children.into_iter().rev());
            if id != EntryId::ROOT {
                files.push(FileSummary {
                    path: tree.path(id),
                    iso_path: tree.iso_path(id),
                    is_directory: entry.directory.is_some(),
                    extent: entry.extent,
                    record_offset: entry.record.position,
                });
            }
        }
        Ok(files)
    }
}

/// Splits a result into its value and the text of its error, which includes all causes.
fn value_and_error<T, E: std::error::Error>(result: Result<T, E>) -> (Option<T>, Option<String>) {
    match result {
        Ok(value) => (Some(value), None),
        Err(error) => (None, Some(format_with_causes(&error))),
    }
}
