//! Edits that do not fit into the areas of an image, as changes of its files.

use std::collections::BTreeMap;

use bytes::Bytes;

use super::boot_config::BootConfig;
use super::{Contents, FileOperations};
use crate::areas::{IGNITION_INFO, IgnitionArea, KARGS_INFO, KargsDescription};
use crate::base::{Architecture, BaseImage};
use crate::bytes_at::u64_be;
use crate::edits::Edits;
use crate::extent::Extent;
use crate::initrd::Packed;
use crate::kargs::{KargsArea, KargsAreas, KargsEdit, KargsError, KargsOperations, KargsOrigin};
use crate::miniso::{self, ROOTFS};
use crate::plan::{Patch, Plan, Segment};
use crate::{Error, Result};

/// The longest area that tools accept, and a kernel's longest command line.
const MAX_KARGS_AREA: usize = 2048;
/// The smallest size class of a grown Ignition area: the size that builders give it.
const SMALLEST_CLASS: u64 = 256 << 10;
/// On s390x, where the boot image states the length of its initrd.
const INITRD_LEN_AT: u64 = 66_576;

/// What an edit makes of an image: files that change, and bytes that change where they are in the base.
#[derive(Debug, Default)]
struct Changes {
    files: FileOperations,
    patches: Vec<Patch>,
}

impl BaseImage {
    /// The image with edits, laid out anew.
    pub(crate) fn plan_relayout(&self, edits: &Edits) -> Result<Plan> {
        self.check_complete(edits)?;
        let mut changes = Changes::default();
        let mut archive = edits.archive.clone();
        let mut images = edits.images.clone();
        if self.architecture() == Some(Architecture::S390x) {
            // That platform loads exactly one initrd: what else would be a file of its own goes behind the archive.
            let more = std::mem::take(&mut images);
            if !more.is_empty() {
                let first = archive.map_or_else(|| self.held_archive(), Ok)?;
                let parts: Vec<Bytes> = std::iter::once(first).chain(more.into_values()).collect();
                archive = Some(parts.concat().into());
            }
        }
        if edits.minimal.is_some() {
            self.require_pristine()?;
            for path in [ROOTFS, miniso::PATH] {
                if self.volume().file(path).is_some() {
                    changes.files.drop_file(path);
                }
            }
        }
        self.change_kargs(&mut changes, edits, &images)?;
        for (name, image) in &images {
            changes.files.put_file(format!("images/{name}"), Contents::from(image.clone()));
        }
        if let Some(archive) = archive {
            self.change_archive(&mut changes, &archive)?;
        }
        self.relayout_with(&changes.files, changes.patches)
    }

    /// The encoded archives that the Ignition area holds now, up to the last byte that is not zero.
    fn held_archive(&self) -> Result<Bytes> {
        let mut bytes = self.source().read_extent(self.require_ignition_area()?.extent)?;
        let len = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
        bytes.truncate(len);
        Ok(Packed::from_encoded(bytes.into()).as_bytes().clone())
    }

    /// Changes kernel arguments and the list of initrds.
    fn change_kargs(
        &self,
        changes: &mut Changes,
        edits: &Edits,
        images: &BTreeMap<String, Bytes>,
    ) -> Result<()> {
        if edits.minimal.is_none() && edits.kargs.is_none() && images.is_empty() {
            return Ok(());
        }
        let areas = self.require_kargs()?;
        // Without an edit, an edit without operations.
        let unchanged = KargsEdit::Current(KargsOperations::default());
        let edit = edits.kargs.as_ref().unwrap_or(&unchanged);
        let mut default = areas.default().ok().map(ToOwned::to_owned);
        let kargs = match &edits.minimal {
            Some(minimal) => {
                default = default.map(|default| miniso::without_label(self, &default)).transpose()?;
                self.minimal_kargs(edit, minimal.rootfs_url.as_deref())?
            }
            None => areas.edited(edit)?,
        };
        match areas.patches(&kargs) {
            Ok(patches) if images.is_empty() => {
                changes.patches.extend(patches);
                if edits.minimal.is_some() {
                    self.describe_kargs(changes, default, &BTreeMap::new(), areas.area_len())?;
                }
                Ok(())
            }
            Err(error @ Error::Kargs { reason: KargsError::TooLarge { .. }, .. })
                if areas.areas().iter().any(|area| area.end() != '\n') =>
            {
                // s390x: the area is a field of the boot image.
                Err(error)
            }
            Ok(_) | Err(Error::Kargs { reason: KargsError::TooLarge { .. }, .. }) => {
                self.rewrite_configs(changes, areas, (&kargs, default), images)
            }
            Err(error) => Err(error),
        }
    }

    fn rewrite_configs(
        &self,
        changes: &mut Changes,
        areas: &KargsAreas,
        (kargs, default): (&str, Option<String>),
        images: &BTreeMap<String, Bytes>,
    ) -> Result<()> {
        let old_len = areas.areas().first().map_or(0, |area| area.contents.len());
        let len = if kargs.len() < old_len { old_len } else { MAX_KARGS_AREA };
        let mut offsets = BTreeMap::new();
        for area in areas.areas() {
            let (path, mut config) = self.config_of(area)?;
            for name in images.keys() {
                if !config.add_initrd(&format!("/images/{name}")) {
                    return Err(self.refuse_layout(
                        area.extent.offset(),
                        "config of a boot loader",
                        "a list of initrds",
                        format!("none in {path}"),
                    ));
                }
            }
            let refused = |reason| Error::Kargs { file: self.source().name().to_owned(), reason };
            config.set_area(&area.filled_to(kargs, len).map_err(refused)?);
            offsets.insert(path.clone(), config.area().offset());
            changes.files.put_file(path, Contents::from(Bytes::from(config.into_text())));
        }
        self.describe_kargs(changes, default, &offsets, len as u64)
    }

    /// The file around an area.
    fn config_of(&self, area: &KargsArea) -> Result<(String, BootConfig)> {
        let inside = |path: String| {
            let extent = self.require_file(&path).ok()?.extent;
            let offset = area.extent.offset().checked_sub(extent.offset())?;
            let text = self.source().read_extent(extent).ok()?;
            Some((path, BootConfig::new(text, Extent::new(offset, area.extent.len())?)?))
        };
        self.file_at(area.extent).and_then(inside).ok_or_else(|| {
            self.refuse_layout(area.extent.offset(), "kargs area", "a config file around it", "none".into())
        })
    }

    /// Rewrites `kargs.json`; `offsets` are those of areas that moved within their files.
    fn describe_kargs(
        &self,
        changes: &mut Changes,
        default: Option<String>,
        offsets: &BTreeMap<String, u64>,
        len: u64,
    ) -> Result<()> {
        let Some(mut description) = KargsDescription::read(self.source(), self.volume())? else {
            // Without a description, the header has to tell: its areas must be where it says.
            let by_header = self.kargs().is_some_and(|areas| areas.origin() == KargsOrigin::Header);
            return if by_header && !offsets.is_empty() {
                Err(self.refuse_layout(
                    0,
                    "kernel arguments",
                    "coreos/kargs.json",
                    "an image of early 2021, whose header cannot follow".into(),
                ))
            } else {
                Ok(())
            };
        };
        if let Some(default) = default {
            description.default = default;
        }
        description.size = len;
        for file in &mut description.files {
            let tree = self.volume().tree();
            let path = tree.find_id(&file.path).map(|id| tree.path(id));
            if let Some(offset) = path.and_then(|path| offsets.get(&path)) {
                file.offset = *offset;
            }
        }
        let mut json = serde_json::to_vec_pretty(&description).map_err(|error| Error::Description {
            file: self.source().name().to_owned(),
            path: KARGS_INFO.to_owned(),
            reason: error.to_string(),
        })?;
        json.push(b'\n');
        changes.files.put_file(KARGS_INFO, Contents::from(Bytes::from(json)));
        Ok(())
    }

    fn change_archive(&self, changes: &mut Changes, archive: &Bytes) -> Result<()> {
        let area = self.require_ignition_area()?;
        let len = archive.len() as u64;
        if len <= area.extent.len() {
            changes.patches.extend(self.archive_patches(archive)?);
            return Ok(());
        }
        let class = size_class(len);
        let archive = [Segment::Bytes(archive.clone()), Segment::Zero(class - len)];
        let path = self.file_at(area.extent).unwrap_or_default();
        let file = self.require_file(&path)?.extent;
        if file == area.extent {
            changes.files.put_file(path, Contents::new(archive.into()));
            return Ok(());
        }
        self.grow_boot_image(changes, (&path, file), area, archive)
    }

    /// s390x: the area is the end of the initrd in the boot image, which states the initrd's length.
    fn grow_boot_image(
        &self,
        changes: &mut Changes,
        (path, file): (&str, Extent),
        area: IgnitionArea,
        archive: [Segment; 2],
    ) -> Result<()> {
        let refused = |expected: &str, found: String| {
            Err(self.refuse_layout(area.extent.offset(), "Ignition area that has to grow", expected, found))
        };
        if area.extent.end() != file.end() {
            return refused("the end of its file", format!("the middle of {path}"));
        }
        let at = file.offset() + INITRD_LEN_AT;
        let field = Extent::new(at, 8).filter(|field| field.end() <= area.extent.offset());
        let stated = field.map(|field| self.source().read_extent(field)).transpose()?;
        let stated = stated.and_then(|bytes| u64_be(&bytes, 0)).filter(|len| *len >= area.extent.len());
        let (Some(field), Some(stated)) = (field, stated) else {
            return refused("a boot image that states the length of its initrd", format!("none in {path}"));
        };
        let grown: u64 = archive.iter().map(Segment::len).sum();
        let initrd_len = stated - area.extent.len() + grown;
        let between = |from: u64, to: u64| Extent::new(from, to - from).map(Segment::Base);
        let mut segments: Vec<Segment> = between(file.offset(), field.offset()).into_iter().collect();
        segments.push(Segment::Bytes(Bytes::copy_from_slice(&initrd_len.to_be_bytes())));
        segments.extend(between(field.end(), area.extent.offset()));
        segments.extend(archive);
        changes.files.put_file(path, Contents::new(segments));
        let offset = area.extent.offset() - file.offset();
        let json =
            format!("{{\n  \"file\": \"{path}\",\n  \"length\": {grown},\n  \"offset\": {offset}\n}}\n");
        changes.files.put_file(IGNITION_INFO, Contents::from(Bytes::from(json)));
        Ok(())
    }
}

/// The length of a grown area: a power of two, so that images whose archives differ a little have the same layout.
fn size_class(len: u64) -> u64 {
    len.next_power_of_two().max(SMALLEST_CLASS)
}
