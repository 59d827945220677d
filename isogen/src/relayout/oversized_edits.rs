//! Re-layout for edits that do not fit into the embed areas: converts the edits to file operations.

use bytes::Bytes;

use super::changes::{FileContents, FileOperations, RelayoutChanges};
use super::fields::bytes_patch;
use super::oversized_kargs;
use super::placement::find_exact;
use crate::areas::{IGNITION_INFO, IgnitionArea};
use crate::base::{Architecture, BaseImage};
use crate::bytes_at::array_at;
use crate::edits::Edits;
use crate::error::{Error, Result};
use crate::extent::Extent;
use crate::initrd::PackedArchive;
use crate::miniso;
use crate::plan::{Plan, Segment};
use crate::pxe::ROOTFS_PATH;

/// Minimum length of a grown Ignition area: the length that builders choose.
const MIN_GROWN_AREA_LEN: u64 = 256 << 10;
/// Offset of the initrd's length in an s390x boot image.
const INITRD_LEN_AT: u64 = 66_576;

/// Plans a re-layout of the image that contains the `edits`.
pub(crate) fn plan_relayout(image: &BaseImage, edits: &Edits, reason: &'static str) -> Result<Plan> {
    let mut changes = RelayoutChanges { files: FileOperations::new(), kargs: None, reason };
    let mut archive = edits.archive.clone().map(|archive| vec![archive]);
    let mut images = edits.images.clone();
    if image.architecture() == Some(Architecture::S390x) && !images.is_empty() {
        // s390x loads exactly one initrd, so the additional images follow the archive in the Ignition area.
        let mut parts = archive.map_or_else(|| Ok(vec![current_archive(image)?]), Ok)?;
        parts.extend(std::mem::take(&mut images).into_values());
        archive = Some(parts);
    }
    if edits.minimal.is_some() {
        image.require_pristine()?;
        if image.volume().file(ROOTFS_PATH).is_some() {
            changes.files.drop_file(ROOTFS_PATH);
        }
    }
    images.keys().try_for_each(|name| check_initrd_name(image, name))?;
    let paths: Vec<String> = images.keys().map(|name| format!("/images/{name}")).collect();
    oversized_kargs::add_kargs_changes(image, edits, &paths, &mut changes)?;
    for (name, contents) in images {
        changes.put_file(format!("images/{name}"), contents);
    }
    if let Some(archive) = archive {
        change_archive(image, &mut changes, archive)?;
    }
    // Drop the description of the minimal ISO, because the re-layout invalidates the offsets in it.
    if !changes.files.is_empty() && image.volume().file(miniso::MINISO_PATH).is_some() {
        changes.files.drop_file(miniso::MINISO_PATH);
    }
    super::plan_changes(image, &changes)
}

/// Reads the encoded archives in the Ignition area, up to the last byte that is not zero.
fn current_archive(image: &BaseImage) -> Result<Bytes> {
    let mut bytes = image.source().read_extent(image.require_ignition_area()?.extent)?;
    let len = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
    bytes.truncate(len);
    Ok(PackedArchive::from_encoded(bytes.into()).as_bytes().clone())
}

/// Rejects names with blanks, commas or quotes, which would end the name in the configs of boot loaders.
fn check_initrd_name(image: &BaseImage, name: &str) -> Result<()> {
    let refused =
        |reason| Err(Error::InvalidEdit { what: "name of an initrd image", value: name.to_owned(), reason });
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    if name.is_empty() || name.starts_with('.') || !name.bytes().all(plain) {
        return refused("boot loaders take letters, digits, '.', '_' and '-'");
    }
    if find_exact(image.volume().tree(), &format!("images/{name}")).is_some() {
        return refused("the image has a file of that name");
    }
    Ok(())
}

/// Replaces the archive in the Ignition area, which grows if necessary.
fn change_archive(image: &BaseImage, changes: &mut RelayoutChanges, parts: Vec<Bytes>) -> Result<()> {
    let area = image.require_ignition_area()?;
    let Some((path, offset)) = image.locate_in_file(area.extent) else {
        let (at, what) = (area.extent.offset(), "Ignition area of an image that is re-laid out");
        return Err(image.source().malformed(at, what, "a file that contains it", "none"));
    };
    let file = image.require_file(&path)?.extent;
    let len: u64 = parts.iter().map(|part| part.len() as u64).sum();
    if len <= area.extent.len() {
        let mut patches = area.patches(image.source().name(), &parts.concat().into())?;
        for patch in &mut patches {
            patch.offset = patch.offset - area.extent.offset() + offset;
        }
        return changes.patch_file(image, &path, patches.into());
    }
    let rest = Segment::Zero(grown_area_len(len) - len);
    let archive: Vec<Segment> = parts.into_iter().map(Segment::Bytes).chain([rest]).collect();
    if file == area.extent {
        changes.files.put_file(path, FileContents::new(archive));
        return Ok(());
    }
    grow_boot_image(image, changes, (&path, file), area, archive)
}

/// Grows the Ignition area of an s390x image. The area is the end of the initrd in the boot image, and the boot image
/// contains the length of the initrd.
fn grow_boot_image(
    image: &BaseImage,
    changes: &mut RelayoutChanges,
    (path, file): (&str, Extent),
    area: IgnitionArea,
    archive: Vec<Segment>,
) -> Result<()> {
    let stated = stated_initrd_len(image, (path, file), area)?;
    let grown: u64 = archive.iter().map(Segment::len).sum();
    let initrd_len = stated - area.extent.len() + grown;
    let offset = area.extent.offset() - file.offset();
    changes.patch_file(image, path, vec![bytes_patch(INITRD_LEN_AT, initrd_len.to_be_bytes())])?;
    let boot_image = changes.current_file(image, path)?;
    let contents = boot_image.segments(0..offset).chain(archive).collect();
    changes.files.put_file(path, FileContents::new(contents));
    let json = format!("{{\n  \"file\": \"{path}\",\n  \"length\": {grown},\n  \"offset\": {offset}\n}}\n");
    changes.put_file(image.path_in_image(IGNITION_INFO), json);
    Ok(())
}

/// Reads the length of the initrd that an s390x boot image contains.
fn stated_initrd_len(image: &BaseImage, (path, file): (&str, Extent), area: IgnitionArea) -> Result<u64> {
    let malformed = |expected: &str, actual: String| {
        image.source().malformed(area.extent.offset(), "Ignition area that has to grow", expected, actual)
    };
    if area.extent.end() != file.end() {
        return Err(malformed("the end of its file", format!("the middle of {path}")));
    }
    let field = Extent::new(file.offset() + INITRD_LEN_AT, 8);
    let field = field.filter(|field| field.end() <= area.extent.offset());
    let stated = field.map(|field| image.source().read_extent(field)).transpose()?;
    let possible = area.extent.len()..=file.len();
    let stated = stated
        .and_then(|bytes| array_at(&bytes, 0))
        .map(u64::from_be_bytes)
        .filter(|len| possible.contains(len));
    let expected = "a boot image that states the length of its initrd";
    stated.ok_or_else(|| malformed(expected, format!("none in {path}")))
}

/// Returns the length of a grown area. It is a power of two, so that archives of similar lengths result in the same
/// layout.
fn grown_area_len(len: u64) -> u64 {
    len.next_power_of_two().max(MIN_GROWN_AREA_LEN)
}
