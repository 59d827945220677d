//! Edits that do not fit into the areas of an image, as changes of its files.

use std::collections::BTreeMap;

use bytes::Bytes;

use super::boot_config::BootConfig;
use super::changes::{Changes, Contents, FileOperations, KargsPlaces};
use super::placement::existing;
use crate::areas::{IGNITION_INFO, IgnitionArea, KARGS_INFO, KargsDescription};
use crate::base::{Architecture, BaseImage};
use crate::bytes_at::u64_be;
use crate::edits::Edits;
use crate::error::{Error, Result};
use crate::extent::Extent;
use crate::initrd::Packed;
use crate::kargs::{KargsArea, KargsAreas};
use crate::minimal_iso::without_label;
use crate::miniso;
use crate::plan::{Patch, Plan, Segment};
use crate::pxe::ROOTFS;

/// The longest area that tools accept.
const MAX_KARGS_AREA: usize = 2048;
/// The longest command line that arrives whole: the kernel takes 2047 bytes, of which isolinux cuts off the last. Of a
/// longer one GRUB drops the last arguments, while isolinux does not boot.
const MAX_COMMAND_LINE: usize = 2046;
/// The smallest size class of a grown Ignition area: the size that builders give it.
const SMALLEST_CLASS: u64 = 256 << 10;
/// Largest config of a boot loader. Real ones have 3 KiB.
const MAX_CONFIG: u64 = 1 << 20;
/// On s390x, where the boot image states the length of its initrd.
const INITRD_LEN_AT: u64 = 66_576;

/// Plans a re-layout of the image with `edits`.
pub(crate) fn plan(image: &BaseImage, edits: &Edits, reason: &'static str) -> Result<Plan> {
    image.plan_relayout(edits, reason)
}

impl BaseImage {
    /// The image with edits, laid out anew.
    fn plan_relayout(&self, edits: &Edits, reason: &'static str) -> Result<Plan> {
        let mut changes = Changes { files: FileOperations::new(), kargs: None, reason };
        let mut archive: Option<Vec<Bytes>> = edits.archive.clone().map(|archive| vec![archive]);
        let mut images = edits.images.clone();
        if self.architecture() == Some(Architecture::S390x) {
            // That platform loads exactly one initrd: what else would be a file of its own goes behind the archive.
            let more = std::mem::take(&mut images);
            if !more.is_empty() {
                let mut parts = archive.map_or_else(|| self.held_archive().map(|held| vec![held]), Ok)?;
                parts.extend(more.into_values());
                archive = Some(parts);
            }
        }
        if edits.minimal.is_some() {
            self.require_pristine()?;
            if self.volume().file(ROOTFS).is_some() {
                changes.files.drop_file(ROOTFS);
            }
        }
        images.keys().try_for_each(|name| self.check_image_name(name))?;
        self.change_kargs(&mut changes, edits, &images)?;
        for (name, image) in &images {
            changes.put(format!("images/{name}"), image.clone());
        }
        if let Some(archive) = archive {
            self.change_archive(&mut changes, archive)?;
        }
        // The description of the minimal form names places that are no longer true.
        if !changes.files.is_empty() && self.volume().file(miniso::PATH).is_some() {
            changes.files.drop_file(miniso::PATH);
        }
        super::apply(self, &changes)
    }

    /// Boot loaders read the name in their configs, where blanks, commas and quotes end it.
    fn check_image_name(&self, name: &str) -> Result<()> {
        let refused =
            |reason| Err(Error::Refused { what: "name of an initrd image", value: name.to_owned(), reason });
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
        if name.is_empty() || name.starts_with('.') || !name.bytes().all(plain) {
            return refused("boot loaders take letters, digits, '.', '_' and '-'");
        }
        if existing(self.volume().tree(), &format!("images/{name}")).is_some() {
            return refused("the image has a file of that name");
        }
        Ok(())
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
        let kargs = self.edited_kargs(edits)?;
        let mut default = areas.default().ok().map(ToOwned::to_owned);
        if edits.minimal.is_some() {
            default = default.map(|default| without_label(self, &default)).transpose()?;
        }
        let old_len = areas.areas().first().map_or(0, |area| area.contents.len());
        let longest = self.longest_area(changes, areas, images)?;
        let len = if kargs.len() < old_len.min(longest) { old_len.min(longest) } else { longest };
        if len != old_len && areas.areas().iter().any(|area| area.end() != '\n') {
            // s390x: the area is a field of the boot image.
            return areas.patches(&kargs).map(drop);
        }
        let mut offsets = BTreeMap::new();
        for area in areas.areas() {
            let refused = |reason| Error::Kargs { file: self.source().name().to_owned(), reason };
            let filled = area.filled_to(&kargs, len).map_err(refused)?;
            let (path, offset) = self.rewrite_area(changes, area, filled, images)?;
            if offsets.insert(path.clone(), offset).is_some() && len != old_len {
                return Err(self.source().malformed(
                    area.extent.offset(),
                    "kargs area",
                    "one in each file",
                    path,
                ));
            }
        }
        let places = KargsPlaces { len: len as u64, offsets };
        if default.as_deref() != areas.default().ok() || len != old_len || !images.is_empty() {
            self.describe_kargs(changes, default.as_deref(), &places)?;
            self.record_default(changes, default.as_deref(), len)?;
        }
        changes.kargs = Some(places);
        Ok(())
    }

    /// Puts an area's new bytes into the file around it, with the initrds that are added; gives the file and where in
    /// it the area is then.
    fn rewrite_area(
        &self,
        changes: &mut Changes,
        area: &KargsArea,
        filled: Bytes,
        images: &BTreeMap<String, Bytes>,
    ) -> Result<(String, u64)> {
        let place = area.extent.offset();
        let around = self.file_around(area.extent);
        let (path, offset) = around
            .ok_or_else(|| self.source().malformed(place, "kargs area", "a config file around it", "none"))?;
        if images.is_empty() && filled.len() == area.contents.len() {
            changes.overwrite(self, &path, vec![Patch { offset, segment: Segment::Bytes(filled) }])?;
            return Ok((path, offset));
        }
        let mut config = self.boot_config(changes, area, (&path, offset))?;
        for name in images.keys() {
            if !config.add_initrd(&initrd_path(name)) {
                let found = format!("none in {path}");
                return Err(self.source().malformed(
                    place,
                    "config of a boot loader",
                    "a list of initrds",
                    found,
                ));
            }
        }
        config.set_area(&filled);
        let offset = config.area().offset();
        changes.put(path.clone(), config.into_text());
        Ok((path, offset))
    }

    /// The longest area whose arguments every boot loader can pass on, behind what it says itself.
    fn longest_area(
        &self,
        changes: &Changes,
        areas: &KargsAreas,
        images: &BTreeMap<String, Bytes>,
    ) -> Result<usize> {
        let mut longest = MAX_KARGS_AREA;
        // Those that end otherwise are fields of a boot image, which nothing is put before.
        for area in areas.areas().iter().filter(|area| area.end() == '\n') {
            let Some((path, offset)) = self.file_around(area.extent) else { continue };
            let mut config = self.boot_config(changes, area, (&path, offset))?;
            for name in images.keys() {
                config.add_initrd(&initrd_path(name));
            }
            let room = MAX_COMMAND_LINE.saturating_sub(config.len_before_arguments());
            longest = longest.min(room + area.end().len_utf8());
        }
        Ok(longest)
    }

    /// The config around an area, as it is so far.
    fn boot_config(
        &self,
        changes: &Changes,
        area: &KargsArea,
        (path, offset): (&str, u64),
    ) -> Result<BootConfig> {
        let text = changes.file(self, path)?.read_all(MAX_CONFIG)?;
        let config = Extent::new(offset, area.extent.len()).and_then(|area| BootConfig::new(text, area));
        config.ok_or_else(|| {
            let found = format!("beyond {path}");
            self.source().malformed(area.extent.offset(), "kargs area", "one within its file", found)
        })
    }

    /// How the image spells the path of a file that it has: without Rock Ridge, names are cut to 8.3.
    fn spelling(&self, path: &str) -> String {
        let tree = self.volume().tree();
        tree.find_id(path).map_or_else(|| path.to_owned(), |id| tree.path(id))
    }

    /// Rewrites `kargs.json`, where there is one.
    fn describe_kargs(
        &self,
        changes: &mut Changes,
        default: Option<&str>,
        places: &KargsPlaces,
    ) -> Result<()> {
        let Some(mut description) = KargsDescription::read(self.source(), self.volume())? else {
            return Ok(());
        };
        if let Some(default) = default {
            default.clone_into(&mut description.default);
        }
        description.size = places.len;
        for file in &mut description.files {
            if let Some(offset) = places.offsets.get(&self.spelling(&file.path)) {
                file.offset = *offset;
            }
        }
        let mut json = description.to_json(self.source())?;
        json.push(b'\n');
        changes.put(self.spelling(KARGS_INFO), json);
        Ok(())
    }

    /// Rewrites the default arguments of images that have a header: they stand in an area of their own, as long as the
    /// others.
    fn record_default(&self, changes: &mut Changes, default: Option<&str>, len: usize) -> Result<()> {
        let Some(header) = &self.headers().kargs else { return Ok(()) };
        let found = || format!("none at byte {}", header.default_offset);
        let missing =
            || self.source().malformed(0, "area of the default kernel arguments", "a file", found());
        let extent = Extent::new(header.default_offset, header.area_len).ok_or_else(missing)?;
        let (path, offset) = self.file_around(extent).ok_or_else(missing)?;
        let area = KargsArea::read(self.source(), extent)?;
        let refused = |reason| Error::Kargs { file: self.source().name().to_owned(), reason };
        let filled = area.filled_to(default.unwrap_or_default(), len).map_err(refused)?;
        let file = changes.file(self, &path)?;
        let before = file.segments(0..offset);
        let behind = file.segments(offset + extent.len()..file.len());
        let contents = before.chain([Segment::Bytes(filled)]).chain(behind).collect();
        changes.files.put_file(path, Contents::new(contents));
        Ok(())
    }

    fn change_archive(&self, changes: &mut Changes, parts: Vec<Bytes>) -> Result<()> {
        let area = self.require_ignition_area()?;
        let path = self.file_at(area.extent).unwrap_or_default();
        let file = self.require_file(&path)?.extent;
        let len: u64 = parts.iter().map(|part| part.len() as u64).sum();
        if len <= area.extent.len() {
            let mut patches = area.patches(self.source().name(), &parts.concat().into())?;
            for patch in &mut patches {
                patch.offset -= file.offset();
            }
            return changes.overwrite(self, &path, patches.into());
        }
        let rest = Segment::Zero(size_class(len) - len);
        let archive: Vec<Segment> = parts.into_iter().map(Segment::Bytes).chain([rest]).collect();
        if file == area.extent {
            changes.files.put_file(path, Contents::new(archive));
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
        archive: Vec<Segment>,
    ) -> Result<()> {
        let refused = |expected: &str, found: String| {
            Err(self.source().malformed(
                area.extent.offset(),
                "Ignition area that has to grow",
                expected,
                found,
            ))
        };
        if area.extent.end() != file.end() {
            return refused("the end of its file", format!("the middle of {path}"));
        }
        let field = Extent::new(file.offset() + INITRD_LEN_AT, 8);
        let field = field.filter(|field| field.end() <= area.extent.offset());
        let stated = field.map(|field| self.source().read_extent(field)).transpose()?;
        let possible = area.extent.len()..=file.len();
        let stated = stated.and_then(|bytes| u64_be(&bytes, 0)).filter(|len| possible.contains(len));
        let Some(stated) = stated else {
            return refused("a boot image that states the length of its initrd", format!("none in {path}"));
        };
        let grown: u64 = archive.iter().map(Segment::len).sum();
        let initrd_len = stated - area.extent.len() + grown;
        let offset = area.extent.offset() - file.offset();
        let stated = Segment::Bytes(Bytes::copy_from_slice(&initrd_len.to_be_bytes()));
        changes.overwrite(self, path, vec![Patch { offset: INITRD_LEN_AT, segment: stated }])?;
        let boot_image = changes.file(self, path)?;
        let contents = boot_image.segments(0..offset).chain(archive).collect();
        changes.files.put_file(path, Contents::new(contents));
        let json =
            format!("{{\n  \"file\": \"{path}\",\n  \"length\": {grown},\n  \"offset\": {offset}\n}}\n");
        changes.put(self.spelling(IGNITION_INFO), json);
        Ok(())
    }
}

/// How boot loaders call an initrd image that is added.
fn initrd_path(name: &str) -> String {
    format!("/images/{name}")
}

/// The length of a grown area: a power of two, so that images whose archives differ a little have the same layout.
fn size_class(len: u64) -> u64 {
    len.next_power_of_two().max(SMALLEST_CLASS)
}
