//! Verifies every product with this crate's own checks, and compares the unchanged parts with the base image.

use std::collections::BTreeSet;

use isogen::verify::CheckOutcome;
use isogen::{BaseImage, Extent};

use crate::product::{RelayoutProduct, check_each_product, read_files};
use crate::relayout_kinds::{
    MINISO_PATH, ROOTFS_PATH, ROOTFS_URL, RelayoutKind, large_archive, small_archive,
};

#[test]
fn verify_passes_and_inspect_shows_everything() {
    check_each_product(|product| {
        let image = product.open();
        for check in image.verify().unwrap() {
            assert!(!matches!(check.outcome, CheckOutcome::Wrong(_)), "{}: {check:?}", product.name());
        }
        let inspection = image.inspect().unwrap();
        let listed: BTreeSet<String> =
            inspection.files.iter().filter(|file| !file.is_directory).map(|file| file.path.clone()).collect();
        let read: BTreeSet<String> = read_files(&image, image.volume().tree()).into_keys().collect();
        assert_eq!(listed, read, "{}", product.name());
        assert_eq!(inspection.len, product.plan.len());
        assert_eq!(u64::from(inspection.volume.sectors) * 2048, declared_volume_len(&image));
        assert_eq!(image.volume().id(), product.base.volume().id());
        assert_eq!(image.architecture(), product.base.architecture(), "{}", product.name());
        assert_eq!(image.features(), product.base.features(), "{}", product.name());
        // A re-laid out image must not keep the description of the minimal ISO, because its offsets would be wrong.
        let in_place = product.plan.changes_in_place().is_ok();
        assert!(in_place || !inspection.minimal.is_available, "{}", product.name());
    });
}

/// Returns the volume size, which must be the same in both descriptors.
fn declared_volume_len(image: &BaseImage) -> u64 {
    let sectors = image.volume().primary().space_size;
    assert!(image.volume().joliet().is_none_or(|joliet| joliet.space_size == sectors));
    u64::from(sectors) * 2048
}

#[test]
fn products_contain_the_requested_edits() {
    check_each_product(|product| {
        let (image, kind) = (product.open(), product.kind);
        let minimal = matches!(kind, RelayoutKind::Minimal | RelayoutKind::MinimalWithAll);
        let dropped = minimal || kind == RelayoutKind::Files;
        assert_eq!(image.volume().file(ROOTFS_PATH).is_none(), dropped, "{}", product.name());
        assert_eq!(
            has_extra_initrd(product, &image),
            kind == RelayoutKind::ExtraInitrd || kind == RelayoutKind::MinimalWithAll
        );
        let Some(kargs) = image.kargs() else { return };
        let long = matches!(kind, RelayoutKind::LongArguments | RelayoutKind::MinimalWithAll);
        let current = kargs.current().unwrap();
        assert_eq!(current.contains(" long=xxx"), long, "{}: {current}", product.name());
        assert_eq!(
            current.ends_with(&format!("coreos.live.rootfs_url=\"{ROOTFS_URL}\"")),
            minimal,
            "{current}"
        );
        assert_eq!(current.contains("coreos.liveiso="), !minimal, "{}: {current}", product.name());
    });
}

/// Returns `true` if the extra initrd image exists and the large archive is at its position.
fn has_extra_initrd(product: &RelayoutProduct, image: &BaseImage) -> bool {
    let mut area = image.ignition_area().map(|area| image.source().read_extent(area.extent).unwrap());
    if matches!(product.kind, RelayoutKind::GrownArchive | RelayoutKind::MinimalWithAll) {
        let large = large_archive();
        let (held, rest) = area.as_ref().unwrap().split_at(large.as_bytes().len());
        assert!(held == &large.as_bytes()[..], "{}", product.name());
        area = Some(rest.to_vec());
    }
    let small = small_archive();
    let is_small = |bytes: &[u8]| bytes.starts_with(small.as_bytes());
    let file = image.volume().file("images/network.img").map(|entry| entry.extent);
    // s390x has a single initrd, whose end is the area.
    file.is_some_and(|extent| is_small(&image.source().read_extent(extent).unwrap()))
        || area.is_some_and(|rest| is_small(&rest))
}

/// Returns the ranges of a file that a kind of change may modify, relative to the file. Returns `None` if the whole
/// file may change.
fn changeable_ranges(product: &RelayoutProduct, path: &str) -> Option<Vec<Extent>> {
    let base = &product.base;
    let file = base.require_file(path).unwrap().extent;
    let inside = |extent: Extent| {
        file.contains(extent).then(|| Extent::new(extent.offset() - file.offset(), extent.len()).unwrap())
    };
    let mut areas: Vec<Extent> =
        base.kargs().iter().flat_map(|kargs| kargs.areas()).map(|it| it.extent).collect();
    let is_config = path.ends_with(".cfg") && areas.iter().any(|area| inside(*area).is_some());
    if is_config || [".cmdline", "coreos/kargs.json", "coreos/igninfo.json"].contains(&path) {
        return None;
    }
    areas.extend(base.ignition_area().map(|area| area.extent));
    let mut touched: Vec<Extent> = areas.into_iter().filter_map(inside).collect();
    if path == "images/cdboot.img" {
        // The length field of the embedded initrd. The end of that initrd is the area.
        touched.push(Extent::new(66_576, 8).unwrap());
    }
    Some(touched)
}

/// Blanks an area in the contents of a file. An area at the end of the file may have grown.
fn blank_area(file: &mut Vec<u8>, area: Extent, at_end: bool) {
    let range = usize::try_from(area.offset()).unwrap()..usize::try_from(area.end()).unwrap();
    if at_end {
        file.truncate(range.start);
    } else {
        file[range].fill(0);
    }
}

/// Shim, GRUB and the kernel are signed, and isolinux and the s390x boot image are equally sensitive. All their bytes
/// that the edit does not concern must be identical.
#[test]
fn boot_files_are_unchanged() {
    const BOOT_FILES: [&str; 9] = [
        "images/efiboot.img",
        "images/pxeboot/vmlinuz",
        "images/pxeboot/kernel.img",
        "images/pxeboot/initrd.img",
        "images/cdboot.img",
        "isolinux/isolinux.bin",
        "isolinux/ldlinux.c32",
        "boot/grub/powerpc.elf",
        "System/Library/CoreServices/grub.elf",
    ];
    check_each_product(|product| {
        let image = product.open();
        let (before, after) = (
            read_files(&product.base, product.base.volume().tree()),
            read_files(&image, image.volume().tree()),
        );
        let mut boot_files = 0;
        for (path, mut before) in before.into_iter().filter(|(_, bytes)| !bytes.is_empty()) {
            let is_removed = [ROOTFS_PATH, MINISO_PATH].contains(&path.as_str());
            // This kind of change replaces a few files, which other tests compare.
            if product.kind == RelayoutKind::Files
                && !path.ends_with("efiboot.img")
                && !path.ends_with("cdboot.img")
            {
                continue;
            }
            let Some(mut after) = after.get(&path).cloned() else {
                assert!(is_removed, "{}: {path} is missing", product.name());
                continue;
            };
            let is_catalog = product.base.boot_catalog().is_some_and(|catalog| {
                catalog.sector == product.base.require_file(&path).unwrap().record.sector
            });
            if is_catalog {
                continue;
            }
            let Some(areas) = changeable_ranges(product, &path) else { continue };
            let file_len = before.len() as u64;
            for area in areas {
                blank_area(&mut before, area, area.end() == file_len);
                blank_area(&mut after, area, area.end() == file_len);
            }
            assert!(before == after, "{}: {path} differs", product.name());
            boot_files += usize::from(BOOT_FILES.contains(&path.as_str()));
        }
        let expected = if product.kind == RelayoutKind::Files { 0 } else { 2 };
        assert!(boot_files >= expected, "{}: {boot_files} boot files", product.name());
    });
}
