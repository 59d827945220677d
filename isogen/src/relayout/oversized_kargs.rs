//! Changes the kernel arguments in a re-layout: makes the areas longer, and adds initrd images to the boot loaders'
//! configs.
//!
//! Both changes also affect `kargs.json` and the area of the default arguments.

use std::collections::BTreeMap;

use bytes::Bytes;

use super::boot_config::BootConfig;
use super::changes::{FileContents, KargsLayout, RelayoutChanges};
use crate::areas::{KARGS_INFO, KargsDescription};
use crate::base::BaseImage;
use crate::edits::Edits;
use crate::error::{Error, OrInternal, Result};
use crate::extent::Extent;
use crate::kargs::{KargsArea, KargsAreas};
use crate::minimal_iso::remove_liveiso_label;
use crate::plan::{Patch, Segment};

/// Maximum length of an area that other tools accept.
const MAX_AREA_LEN: usize = 2048;
/// Maximum length of a command line that reaches the kernel completely: the kernel accepts 2047 bytes, and isolinux
/// removes the last one. If the line is longer, GRUB drops the last arguments, and isolinux does not boot.
const MAX_COMMAND_LINE_LEN: usize = 2046;
/// Maximum length of a boot loader config. Published configs are about 3 KiB long.
const MAX_CONFIG_LEN: u64 = 1 << 20;

/// Adds the kernel-argument changes for `edits`. `initrds` are the paths of additional initrd images that boot loaders
/// load.
pub(super) fn add_kargs_changes(
    image: &BaseImage,
    edits: &Edits,
    initrds: &[String],
    changes: &mut RelayoutChanges,
) -> Result<()> {
    if edits.minimal.is_none() && edits.kargs.is_none() && initrds.is_empty() {
        return Ok(());
    }
    let areas = image.require_kargs()?;
    KargsRewrite { image, areas, initrds, changes }.run(edits)
}

struct KargsRewrite<'a> {
    image: &'a BaseImage,
    areas: &'a KargsAreas,
    initrds: &'a [String],
    changes: &'a mut RelayoutChanges,
}

impl KargsRewrite<'_> {
    fn run(mut self, edits: &Edits) -> Result<()> {
        let kargs = self.image.edited_kargs(edits)?;
        let default = self.new_default(edits)?;
        let len = self.new_len(&kargs)?;
        let offsets = self.write_areas(&kargs, len)?;
        let layout = KargsLayout { len: len as u64, offsets };
        let is_described_correctly =
            default.as_deref() == self.areas.default().ok() && layout.len == self.areas.area_len();
        if !is_described_correctly || !self.initrds.is_empty() {
            self.write_description(default.as_deref(), &layout)?;
            self.write_default(default.as_deref(), len)?;
        }
        self.changes.kargs = Some(layout);
        Ok(())
    }

    /// Returns the new default arguments, or `None` if the image does not record them.
    fn new_default(&self, edits: &Edits) -> Result<Option<String>> {
        let Ok(default) = self.areas.default() else { return Ok(None) };
        match edits.minimal {
            Some(_) => remove_liveiso_label(self.image, default).map(Some),
            None => Ok(Some(default.to_owned())),
        }
    }

    /// Returns the new length of each area: the old length if `kargs` fits, otherwise the maximum length.
    fn new_len(&self, kargs: &str) -> Result<usize> {
        let areas = self.areas.areas();
        let old = usize::try_from(self.areas.area_len()).or_internal("length of the kargs areas", 0)?;
        if areas.iter().any(|area| area.end() != '\n') {
            // On s390x, the area is a field of the boot image and cannot grow.
            return Ok(old);
        }
        let longest = self.longest_len()?;
        let current = old.min(longest);
        Ok(if kargs.len() < current { current } else { longest })
    }

    /// Returns the maximum length of an area whose arguments reach the kernel completely after the arguments that the
    /// boot loaders add.
    fn longest_len(&self) -> Result<usize> {
        let mut longest = MAX_AREA_LEN;
        for area in self.areas.areas() {
            let (path, offset) = self.locate(area)?;
            let mut config = self.boot_config(area, &path, offset)?;
            for initrd in self.initrds {
                config.add_initrd(initrd);
            }
            // The room is 0 if the boot loader's own arguments are too long.
            let room = MAX_COMMAND_LINE_LEN.saturating_sub(config.len_before_arguments());
            longest = longest.min(room + area.end().len_utf8());
        }
        Ok(longest)
    }

    /// Writes `kargs` into areas of `len` bytes. Returns the offset of each area in its file, by the path of the file.
    fn write_areas(&mut self, kargs: &str, len: usize) -> Result<BTreeMap<String, u64>> {
        let mut offsets = BTreeMap::new();
        for area in self.areas.areas() {
            let filled = area.fill_to_len(kargs, len).map_err(|reason| self.areas.kargs_error(reason))?;
            let (path, offset) = self.write_area(area, filled)?;
            if offsets.insert(path.clone(), offset).is_some() && len != area.contents.len() {
                return Err(self.malformed(area, "kargs area", "one in each file", &path));
            }
        }
        Ok(offsets)
    }

    /// Replaces an area in its file and adds the initrds. Returns the path of the file and the new offset of the area
    /// in it.
    fn write_area(&mut self, area: &KargsArea, filled: Bytes) -> Result<(String, u64)> {
        let (path, offset) = self.locate(area)?;
        if self.initrds.is_empty() && filled.len() == area.contents.len() {
            let patch = Patch { offset, segment: Segment::Bytes(filled) };
            self.changes.patch_file(self.image, &path, vec![patch])?;
            return Ok((path, offset));
        }
        let mut config = self.boot_config(area, &path, offset)?;
        for initrd in self.initrds {
            if !config.add_initrd(initrd) {
                let actual = format!("none in {path}");
                return Err(self.malformed(area, "config of a boot loader", "a list of initrds", &actual));
            }
        }
        config.set_area(&filled);
        let offset = config.area_offset();
        self.changes.put_file(path.clone(), config.into_text());
        Ok((path, offset))
    }

    /// Returns the path of the file that contains an area, and the offset of the area in it.
    fn locate(&self, area: &KargsArea) -> Result<(String, u64)> {
        let located = self.image.locate_in_file(area.extent);
        located.ok_or_else(|| self.malformed(area, "kargs area", "a config file that contains it", "none"))
    }

    /// Returns the config that contains an area, after the changes so far.
    fn boot_config(&self, area: &KargsArea, path: &str, offset: u64) -> Result<BootConfig> {
        let text = self.changes.current_file(self.image, path)?.read_all(MAX_CONFIG_LEN)?;
        let config = Extent::new(offset, area.extent.len()).and_then(|area| BootConfig::new(&text, area));
        let actual = format!("beyond {path}");
        config.ok_or_else(|| self.malformed(area, "kargs area", "one within its file", &actual))
    }

    /// Updates `kargs.json` if the image has one.
    fn write_description(&mut self, default: Option<&str>, layout: &KargsLayout) -> Result<()> {
        let image = self.image;
        let Some(mut description) = KargsDescription::read(image.described())? else {
            return Ok(());
        };
        if let Some(default) = default {
            default.clone_into(&mut description.default);
        }
        description.size = layout.len;
        for file in &mut description.files {
            if let Some(offset) = layout.offsets.get(&image.path_in_image(&file.path)) {
                file.offset = *offset;
            }
        }
        let mut json = description.to_json(image.described())?;
        json.push(b'\n');
        self.changes.put_file(image.path_in_image(KARGS_INFO), json);
        Ok(())
    }

    /// Updates the area of the default arguments in an old image with a header. It has the same length as the other
    /// areas.
    fn write_default(&mut self, default: Option<&str>, len: usize) -> Result<()> {
        let image = self.image;
        let Some(header) = &image.headers().kargs else { return Ok(()) };
        let missing = || {
            let actual = format!("none at byte {}", header.default_offset);
            image.source().malformed(0, "area of the default kernel arguments", "a file", actual)
        };
        let extent = Extent::new(header.default_offset, header.area_len).ok_or_else(missing)?;
        let (path, offset) = image.locate_in_file(extent).ok_or_else(missing)?;
        let area = KargsArea::read(image.source(), extent)?;
        let default =
            default.or_internal("header without default kernel arguments", header.default_offset)?;
        let filled = area.fill_to_len(default, len).map_err(|reason| self.areas.kargs_error(reason))?;
        let file = self.changes.current_file(image, &path)?;
        let before = file.segments(0..offset);
        let after = file.segments(offset + extent.len()..file.len());
        let contents = before.chain([Segment::Bytes(filled)]).chain(after).collect();
        self.changes.files.put_file(path, FileContents::new(contents));
        Ok(())
    }

    fn malformed(&self, area: &KargsArea, what: &'static str, expected: &str, actual: &str) -> Error {
        self.image.source().malformed(area.extent.offset(), what, expected, actual)
    }
}
