//! Everything that is known about an image, for people and programs to look at.

use std::sync::Arc;

use serde::Serialize;

use crate::areas::{Features, IgnitionArea, IgnitionOrigin, KARGS_INFO};
use crate::base::{Architecture, BaseImage};
use crate::eltorito::BootCatalog;
use crate::error::{Error, with_causes};
use crate::extent::Extent;
use crate::initrd::{Archive, IGNITION_CONFIG};
use crate::kargs::{KargsArea, KargsAreas, KargsOrigin};
use crate::partitions::PartitionTables;
use crate::plan::{Plan, Segment};
use crate::volume::{EntryId, Finding, Kind};

/// A description of an image.
#[derive(Debug, Serialize)]
pub struct Inspection {
    /// The name of the image.
    pub file: String,
    /// Its length in bytes.
    pub len: u64,
    /// Its volume.
    pub volume: VolumeSummary,
    /// The machine it is for.
    pub architecture: Option<Architecture>,
    /// The generation of its format: the month from which on images were made like this one.
    pub generation: &'static str,
    /// Why the image was laid out anew; none of an image as it was mastered.
    pub new_layout: Option<String>,
    /// The files that firmware and boot loaders check the signatures of, or that hold such files.
    pub boot_files: Vec<BootFile>,
    /// The boot catalogue.
    pub boot_catalog: Option<BootCatalog>,
    /// The partition tables.
    pub partitions: PartitionTables,
    /// The Ignition area and what is in it.
    pub ignition_area: Option<IgnitionSummary>,
    /// The kernel-argument areas and what is in them.
    pub kargs: Option<KargsSummary>,
    /// What the live system understands.
    pub features: Features,
    /// The minimal form, or why there is none.
    pub minimal: MinimalSummary,
    /// Every file and directory, in the order of the directory tree.
    pub files: Vec<FileSummary>,
    /// What is odd, yet bearable.
    pub findings: Vec<Finding>,
}

/// A file that is booted, by its digest: one and the same in every image made of a base.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct BootFile {
    /// Its path.
    pub path: String,
    /// Its length in bytes.
    pub len: u64,
    /// Its SHA-256.
    pub sha256: crate::digest::Digest,
}

/// A volume's identifiers and size.
#[derive(Debug, Serialize)]
pub struct VolumeSummary {
    /// The volume identifier.
    pub id: String,
    /// The volume set identifier.
    pub set_id: String,
    /// The system identifier.
    pub system_id: String,
    /// Sectors in the volume.
    pub sectors: u32,
    /// The Joliet level, where there is a Joliet tree.
    pub joliet_level: Option<u8>,
    /// Whether the tree has Rock Ridge names.
    pub rock_ridge: bool,
}

/// The Ignition area.
#[derive(Debug, Serialize)]
pub struct IgnitionSummary {
    /// Where it is.
    pub extent: Extent,
    /// How it was found.
    pub origin: IgnitionOrigin,
    /// Bytes up to the last one that is not zero.
    pub used: u64,
    /// The members of its archive.
    pub members: Vec<MemberSummary>,
    /// Why they cannot be told.
    pub error: Option<String>,
    /// The Ignition config; not part of the written form, since it holds secrets.
    #[serde(skip)]
    pub config: Option<bytes::Bytes>,
}

/// A member of an archive.
#[derive(Debug, Serialize)]
pub struct MemberSummary {
    /// Its name.
    pub name: String,
    /// Its length in bytes.
    pub len: u64,
}

/// The kernel arguments.
#[derive(Debug, Serialize)]
pub struct KargsSummary {
    /// How the areas were found.
    pub origin: KargsOrigin,
    /// The arguments now; none where the areas disagree.
    pub current: Option<String>,
    /// The arguments with which the image was made.
    pub default: Option<String>,
    /// Bytes of each area. The longest command line is one byte shorter.
    pub area_len: u64,
    /// Bytes that may still be added.
    pub free: u64,
    /// Each area.
    pub areas: Vec<KargsAreaSummary>,
    /// Why there are no current arguments.
    pub error: Option<String>,
}

/// A kernel-argument area.
#[derive(Debug, Serialize)]
pub struct KargsAreaSummary {
    /// Where it is.
    pub extent: Extent,
    /// The file that it is in.
    pub file: Option<String>,
}

/// The minimal form of an image.
#[derive(Debug, Serialize)]
pub struct MinimalSummary {
    /// Whether the image has a usable description of it.
    pub available: bool,
    /// Its length in bytes.
    pub len: Option<u64>,
    /// Its SHA-256.
    pub sha256: Option<crate::digest::Digest>,
    /// The version of the program that described it.
    pub writer: Option<String>,
    /// Why it is not available.
    pub error: Option<String>,
}

/// A file or directory.
#[derive(Debug, Serialize)]
pub struct FileSummary {
    /// Its path.
    pub path: String,
    /// Its path in ISO 9660 names.
    pub iso_path: String,
    /// Whether it is a directory.
    pub directory: bool,
    /// Where its data is.
    pub extent: Extent,
    /// Where its directory record is.
    pub record: u64,
}

impl BaseImage {
    /// Describes the image. What is broken about its areas is told in the description.
    ///
    /// # Errors
    ///
    /// Fails where the storage does.
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
                rock_ridge: volume.tree().entries().any(|(_, entry)| entry.mode.is_some()),
            },
            architecture: self.architecture(),
            generation: self.generation(),
            new_layout: self.layout_reason()?,
            boot_files: self.boot_files()?,
            boot_catalog: self.boot_catalog().cloned(),
            partitions: self.partitions().clone(),
            ignition_area: self.ignition_area().map(|area| self.inspect_ignition(area)).transpose()?,
            kargs: self.kargs().map(|kargs| self.inspect_kargs(kargs)),
            features: self.features().clone(),
            minimal: self.inspect_minimal(),
            files: self.inspect_files(),
            findings: volume.findings().to_vec(),
        })
    }

    /// The generation of the image's format, judged by the mechanisms that it has.
    #[must_use]
    pub fn generation(&self) -> &'static str {
        let named = |area: &KargsArea| area.pad.is_some();
        let kargs = self.kargs();
        let has = |path: &str| self.volume().file(path).is_some();
        let headers = self.headers().ignition.is_some() || self.headers().has_kargs();
        if kargs.is_some_and(|kargs| kargs.areas().iter().any(named)) {
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

    /// The files whose signatures secure boot checks, or that hold such files: boot loaders for UEFI, the file system
    /// with their copies, and the kernel. Reads them whole.
    ///
    /// # Errors
    ///
    /// Fails where the storage does.
    pub fn boot_files(&self) -> Result<Vec<BootFile>, Error> {
        const OTHERS: [&str; 3] =
            ["images/efiboot.img", "images/pxeboot/vmlinuz", "images/pxeboot/kernel.img"];
        let tree = self.volume().tree();
        let signed = |path: &str| OTHERS.contains(&path) || path.to_ascii_lowercase().ends_with(".efi");
        let mut files = Vec::new();
        for (id, entry) in tree.entries().filter(|(_, entry)| entry.kind == Kind::File) {
            let path = tree.path(id);
            if signed(&path) {
                let plan = Plan::of(Arc::clone(self.source()), [Segment::Base(entry.extent)]);
                files.push(BootFile { path, len: plan.len(), sha256: plan.sha256()? });
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
        let (archive, error) = split(self.archive());
        let archive: Archive = archive.unwrap_or_default();
        Ok(IgnitionSummary {
            extent: area.extent,
            origin: area.origin,
            used: self.used(area.extent)?,
            members: archive.iter().map(member).collect(),
            error,
            config: archive.get(IGNITION_CONFIG).cloned(),
        })
    }

    /// Bytes of an extent up to the last one that is not zero, read from its end.
    fn used(&self, extent: Extent) -> Result<u64, Error> {
        const STEP: u64 = 64 << 10;
        let mut end = extent.end();
        while end > extent.offset() {
            let start = end.saturating_sub(STEP).max(extent.offset());
            let Some(chunk) = Extent::new(start, end - start) else { break };
            let bytes = self.source().read_extent(chunk)?;
            if let Some(last) = bytes.iter().rposition(|byte| *byte != 0) {
                return Ok(start + last as u64 + 1 - extent.offset());
            }
            end = start;
        }
        Ok(0)
    }

    fn inspect_kargs(&self, kargs: &KargsAreas) -> KargsSummary {
        let (current, error) = split(kargs.current());
        let len = current.map_or(0, |current| current.len() as u64 + 1);
        let file =
            |area: &KargsArea| KargsAreaSummary { extent: area.extent, file: self.file_at(area.extent) };
        KargsSummary {
            origin: kargs.origin(),
            current: current.map(ToOwned::to_owned),
            default: kargs.default().ok().map(ToOwned::to_owned),
            area_len: kargs.area_len(),
            free: kargs.area_len().saturating_sub(len),
            areas: kargs.areas().iter().map(file).collect(),
            error,
        }
    }

    fn inspect_minimal(&self) -> MinimalSummary {
        let (description, error) = split(self.minimal_description());
        MinimalSummary {
            available: description.is_some(),
            len: description.as_ref().map(|description| description.plan(self.source()).len()),
            sha256: description.as_ref().map(|description| description.digest),
            writer: description.map(|description| description.writer.clone()),
            error,
        }
    }

    fn inspect_files(&self) -> Vec<FileSummary> {
        let tree = self.volume().tree();
        let mut files = Vec::new();
        let mut pending = vec![EntryId::ROOT];
        while let Some(id) = pending.pop() {
            let Some(entry) = tree.entry(id) else { continue };
            let mut children: Vec<EntryId> = tree.children(id).map(|(id, _)| id).collect();
            children.reverse();
            pending.extend(children);
            if id != EntryId::ROOT {
                files.push(FileSummary {
                    path: tree.path(id),
                    iso_path: tree.iso_path(id),
                    directory: entry.directory.is_some(),
                    extent: entry.extent,
                    record: entry.record.position,
                });
            }
        }
        files
    }
}

/// A result as a value and a text that says why there is none, with all causes.
fn split<T, E: std::error::Error>(result: Result<T, E>) -> (Option<T>, Option<String>) {
    match result {
        Ok(value) => (Some(value), None),
        Err(error) => (None, Some(with_causes(&error))),
    }
}
