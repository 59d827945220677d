//! Impossible re-layouts are refused with the reason and the position. Harmless defects are kept. A product has no
//! defects that its base image does not have, and no operation panics.

use std::collections::BTreeSet;

use fixtures::hostile;
use isogen::verify::CheckOutcome;
use isogen::{BaseImage, Edits, Error, Extent, FileContents, FileOperations, Plan, Result, Segment, Source};

use crate::images::{FixtureImage, all_images, diverse_images};
use crate::relayout_kinds::{ROOTFS_URL, file_contents, incompressible_bytes, large_archive, small_archive};

fn image_for(architecture: fixtures::Architecture) -> BaseImage {
    let matches = |fixture: &&FixtureImage| {
        fixture.recipe.architecture() == architecture && fixture.recipe.era() == fixtures::Era::E2023_07
    };
    all_images().iter().find(matches).unwrap().open()
}

fn x86_64_image() -> BaseImage {
    image_for(fixtures::Architecture::X86_64)
}

/// Runs an operation that must be refused, and returns the message.
fn refusal_message(image: &BaseImage, path: &str, contents: Option<FileContents>) -> String {
    let mut operations = FileOperations::new();
    match contents {
        Some(contents) => operations.put_file(path, contents),
        None => operations.drop_file(path),
    }
    image.relayout(&operations).map(|_| path.to_owned()).unwrap_err().to_string()
}

#[test]
fn sizes_beyond_32_bits_are_refused() {
    let image = x86_64_image();
    for len in [u64::from(u32::MAX) + 1, 5 << 30, u64::MAX] {
        let message =
            refusal_message(&image, "images/large.img", Some(FileContents::new(vec![Segment::Zero(len)])));
        assert!(
            message.contains(&format!("images/large.img of {len} bytes")) && message.contains("4 GiB"),
            "{message}"
        );
    }
    // The sum of these lengths exceeds 64 bits.
    let endless = FileContents::new(vec![Segment::Zero(u64::MAX), Segment::Zero(u64::MAX)]);
    assert!(refusal_message(&image, "endless", Some(endless)).contains("4 GiB"));

    let mut operations = FileOperations::new();
    let largest = || FileContents::new(vec![Segment::Zero(u64::from(u32::MAX))]);
    for number in 0..2047 {
        operations.put_file(format!("images/{number}"), largest());
    }
    // 2047 files of 4 GiB are just below 8 TiB, the limit of 32-bit sector numbers.
    let plan = image.relayout(&operations);
    assert!(plan.is_ok_and(|plan| plan.len() > (8 << 40) - (8 << 30)));
    operations.put_file("images/2047", largest());
    let message = image.relayout(&operations).map(|_| "2048 files").unwrap_err().to_string();
    assert!(message.contains("size of the new image") && message.contains("at most 4294967295"), "{message}");
}

#[test]
fn rejects_oversized_directory() {
    let image = x86_64_image();
    let mut operations = FileOperations::new();
    // A thousand 8.3 names are available for each first letter, so they do not run out.
    for number in 0..9000 {
        let letter = char::from(b'a' + u8::try_from(number % 26).unwrap());
        operations.put_file(format!("images/{letter}{}{number}", "x".repeat(90)), FileContents::default());
    }
    let message = image.relayout(&operations).map(|_| "9000 files").unwrap_err().to_string();
    assert!(message.contains("invalid directory \"/images\": with its new files"), "{message}");
}

/// The reader loads a path table completely, so it must limit the stated length of the table.
#[test]
fn rejects_oversized_path_table() {
    const LEN: u32 = 5 << 20;
    let fixture = diverse_images().iter().find(|fixture| fixture.open().volume().joliet().is_none()).unwrap();
    let mut bytes = fixture.bytes.to_vec();
    let at = 16 * 2048 + 132;
    bytes[at..at + 8].copy_from_slice(&[LEN.to_le_bytes(), LEN.to_be_bytes()].concat());
    bytes.resize(8 << 20, 0);
    let image = BaseImage::from_source(Source::from_bytes("tables.iso", bytes)).unwrap();
    let mut operations = FileOperations::new();
    // The records exceed the directory's sectors, so that it moves.
    for number in 0..200 {
        operations.put_file(format!("images/{number}"), FileContents::default());
    }
    let message = image.relayout(&operations).map(|_| "taken").unwrap_err().to_string();
    assert!(message.contains(&format!("byte {at}: path table: expected at most")), "{message}");
    assert!(message.ends_with(&LEN.to_string()), "{message}");
}

/// On s390x, the boot image contains the length of its initrd, which ends with the Ignition area.
#[test]
fn initrd_longer_than_its_boot_image_does_not_grow() {
    let s390x = |fixture: &&FixtureImage| fixture.name().starts_with("2023-07.s390x");
    let fixture = all_images().iter().find(s390x).unwrap();
    let boot_image = fixture.mastered.files["images/cdboot.img"];
    let at = usize::try_from(boot_image.offset).unwrap() + 66_576;
    for (stated, is_taken) in
        [(boot_image.len, true), (boot_image.len + 1, false), (u64::MAX, false), (0, false)]
    {
        let mut bytes = fixture.bytes.to_vec();
        bytes[at..at + 8].copy_from_slice(&stated.to_be_bytes());
        let image = BaseImage::from_source(Source::from_bytes("initrd.iso", bytes)).unwrap();
        match image.plan(&Edits::new().archive(large_archive())) {
            Ok(_) => assert!(is_taken, "{stated}"),
            Err(error) => {
                assert!(
                    !is_taken && error.to_string().contains("states the length of its initrd"),
                    "{error}"
                );
            }
        }
    }
}

#[test]
fn rejects_extents_outside_the_base() {
    let image = x86_64_image();
    let beyond = Extent::new(image.source().len() - 1, 2).unwrap();
    let message = refusal_message(&image, "images/x", Some(FileContents::new(vec![Segment::Base(beyond)])));
    assert!(message.contains("after the end of the base"), "{message}");
}

#[test]
fn rejects_invalid_paths() {
    let image = x86_64_image();
    let cases = [
        ("", "it is a directory"),
        ("images/", "it is a directory"),
        ("images", "it is a directory"),
        ("IMAGES/PXEBOOT", "it is a directory"),
        ("images/..", "it has no name"),
        ("images/missing/file", "images/missing"),
        ("images_of_mine/file", "images_of_mine"),
        ("images/ignition.img/file", "images/ignition.img"),
        ("images/new\nline", "must not contain control characters"),
        ("images/semi;colon", "any of * : ; ? \\"),
        ("images/back\\slash", "any of * : ; ? \\"),
    ];
    for (path, reason) in cases {
        let message = refusal_message(&image, path, Some(file_contents(incompressible_bytes(1))));
        assert!(message.contains(reason), "{path:?}: {message}");
    }
    let long = format!("images/{}", "n".repeat(104));
    assert!(
        refusal_message(&image, &long, Some(file_contents(incompressible_bytes(1))))
            .contains("at most 103 characters")
    );
    // Without Joliet, the maximum length of a directory record is the limit.
    let power = image_for(fixtures::Architecture::Ppc64le);
    let long = format!("images/{}", "n".repeat(200));
    assert!(
        refusal_message(&power, &long, Some(file_contents(incompressible_bytes(1))))
            .contains("exceed 255 bytes")
    );
    assert!(refusal_message(&image, "images/missing.img", None).contains("images/missing.img"));

    let mut operations = FileOperations::new();
    operations.put_file("images/one", file_contents(incompressible_bytes(1)));
    operations.put_file("/images//one", file_contents(incompressible_bytes(2)));
    let message = image.relayout(&operations).map(|_| "twice").unwrap_err().to_string();
    assert!(message.contains("another operation names the same file"), "{message}");
}

#[test]
fn rejects_dropping_boot_files() {
    for fixture in all_images() {
        let image = fixture.open();
        let Some(catalog) = image.boot_catalog() else { continue };
        for entry in &catalog.entries {
            let path = image.file_at(Extent::new(entry.sector.offset(), 1).unwrap()).unwrap();
            for contents in [None, Some(FileContents::default())] {
                let message = refusal_message(&image, &path, contents);
                assert!(
                    message.contains(&path) && message.contains("the firmware boots from it"),
                    "{}: {message}",
                    fixture.name()
                );
            }
        }
        let path = image.file_at(Extent::new(catalog.sector.offset(), 1).unwrap()).unwrap();
        assert!(refusal_message(&image, &path, None).contains("boot catalogue"), "{}", fixture.name());
    }
}

#[test]
fn rejects_initrd_names_that_boot_loaders_cannot_read() {
    let image = x86_64_image();
    for (name, reason) in [
        ("", "letters, digits"),
        ("a b.img", "letters, digits"),
        ("a,b.img", "letters, digits"),
        ("a;reboot", "letters, digits"),
        ("../x.img", "letters, digits"),
        ("ignition.img", "has a file of that name"),
        ("EFIBOOT.IMG", "has a file of that name"),
    ] {
        let edits = Edits::new().initrd_image(name, &small_archive());
        let message = image.plan(&edits).map(|_| name).unwrap_err().to_string();
        assert!(message.contains(reason) && message.contains(&format!("{name:?}")), "{name:?}: {message}");
    }
}

/// If a path table ends within a record, it cannot be updated for a directory that moves.
#[test]
fn rejects_path_tables_that_end_within_a_record() {
    let image = x86_64_image();
    let mut bytes = image.source().read_extent(Extent::from_start(image.source().len())).unwrap();
    // The record of the root directory is ten bytes long, so a table of 13 bytes ends within the next record.
    bytes[16 * 2048 + 132..][..8].copy_from_slice(&[13, 0, 0, 0, 0, 0, 0, 13]);
    let table = image.volume().primary().path_tables.little_endian.offset();
    let cut = BaseImage::from_source(Source::from_bytes("cut.iso", bytes)).unwrap();
    let mut operations = FileOperations::new();
    for number in 0..100 {
        operations.put_file(format!("images/{number:050}.img"), file_contents(vec![1]));
    }
    assert!(image.relayout(&operations).is_ok());
    let error = cut.relayout(&operations).map(|_| "taken").unwrap_err();
    let is_expected =
        matches!(&error, Error::Malformed { what: "path table", offset, .. } if *offset == table + 10);
    assert!(is_expected, "{error}");
}

#[test]
fn rejects_urls_that_boot_loaders_would_change() {
    let cases = [
        ("http://a/b\"c", "GRUB interprets"),
        ("http://a/b\\c", "GRUB interprets"),
        ("http://a/$b", "GRUB interprets"),
        ("http://a/b c", "white space"),
        ("http://a/b\tc", "white space"),
        ("http://a/b\nc", "white space"),
        ("http://a/b\u{7}c", "white space"),
        ("ftp://a/b", "http:, https: and tftp:"),
        ("file:///b", "http:, https: and tftp:"),
        ("a/b", "http:, https: and tftp:"),
        ("", "http:, https: and tftp:"),
    ];
    let described = x86_64_image();
    let mut operations = FileOperations::new();
    operations.drop_file(crate::relayout_kinds::MINISO_PATH);
    let plan = described.relayout(&operations).unwrap();
    let undescribed = crate::relayout_kinds::open_plan(&plan, "undescribed.iso");
    for image in [&described, &undescribed, &image_for(fixtures::Architecture::S390x)] {
        assert!(image.plan(&Edits::new().minimal(Some(ROOTFS_URL))).is_ok());
        for (url, reason) in cases {
            let error = image.plan(&Edits::new().minimal(Some(url))).map(|_| url).unwrap_err();
            assert!(matches!(&error, Error::InvalidEdit { value, .. } if value == url), "{url:?}: {error:?}");
            assert!(error.to_string().contains(reason), "{url:?}: {error}");
        }
    }
}

/// Returns the names of the checks that fail.
fn failed_checks(image: &BaseImage) -> BTreeSet<&'static str> {
    let checks = image.verify().unwrap().into_iter().filter(|check| check.name != "minimal iso");
    checks.filter(|check| matches!(check.outcome, CheckOutcome::Wrong(_))).map(|check| check.name).collect()
}

/// Returns the first bytes at every target of a boot structure.
fn boot_targets(image: &BaseImage) -> Vec<(String, Vec<u8>)> {
    let tables = image.partitions();
    let entries = image.boot_catalog().into_iter().flat_map(|catalog| &catalog.entries);
    let entries = entries
        .filter(|it| it.is_bootable)
        .map(|it| (format!("boot image at {}", it.position), it.sector.offset()));
    let mbr = tables.mbr.iter().flat_map(|mbr| &mbr.partitions).filter(|it| it.number > 1);
    let mbr = mbr.map(|it| (format!("MBR partition {}", it.number), u64::from(it.start) * 512));
    let gpt = tables.gpt.iter().flat_map(|gpt| &gpt.partitions).filter(|it| it.number > 1);
    let gpt = gpt.map(|it| (format!("GPT partition {}", it.number), it.first.saturating_mul(512)));
    let loaded =
        tables.mbr.iter().map(|mbr| ("isolinux in the MBR".to_owned(), u64::from(mbr.boot_sector) * 512));
    let all = entries.chain(mbr).chain(gpt).chain(loaded);
    let read = |at| {
        Extent::new(at, 512).and_then(|extent| image.source().read_extent(extent).ok()).unwrap_or_default()
    };
    all.map(|(what, at)| (what, read(at))).collect()
}

/// Returns re-layouts that move many or few bytes of an image.
fn sample_relayouts(image: &BaseImage) -> Vec<(&'static str, Result<Plan>)> {
    let relayout_with = |path: &str, bytes: Vec<u8>| {
        let mut operations = FileOperations::new();
        operations.put_file(path, file_contents(bytes));
        image.relayout(&operations)
    };
    vec![
        ("grown archive", image.plan(&Edits::new().archive(large_archive()))),
        ("further initrd", image.plan(&Edits::new().initrd_image("network.img", &small_archive()))),
        ("minimal", image.plan(&Edits::new().minimal(Some(ROOTFS_URL)).archive(large_archive()))),
        ("last file", relayout_with("coreos/features.json", [b"{}".to_vec(), vec![b' '; 5000]].concat())),
        ("first file", relayout_with("images/efiboot.img", incompressible_bytes(70_000))),
        ("new file", relayout_with("images/new.img", incompressible_bytes(70_000))),
    ]
}

/// Returns `true` if an error names the file and the position in it.
fn names_position(error: &Error, file: &str) -> bool {
    let causes = std::iter::successors(Some(error as &dyn std::error::Error), |error| error.source());
    let text = causes.map(ToString::to_string).collect::<Vec<_>>().join(": ");
    text.contains(file)
        && (text.contains("byte ")
            || text.contains("coreos/")
            || text.contains("no Ignition embed area")
            || matches!(
                error,
                Error::NotFound { .. }
                    | Error::NoKargs { .. }
                    | Error::Interrupted { .. }
                    | Error::Customized { .. }
            ))
}

#[test]
fn products_have_no_new_defects() {
    let mut products = 0;
    for hostile in hostile() {
        let file = format!("{}.iso", hostile.name);
        let Ok(base) = BaseImage::from_source(Source::from_bytes(file.clone(), hostile.image())) else {
            continue;
        };
        let (before, pointed) = (failed_checks(&base), boot_targets(&base));
        for (what, plan) in sample_relayouts(&base) {
            let plan = match plan {
                Ok(plan) => plan,
                Err(error) => {
                    assert!(names_position(&error, &file), "{file}, {what}: {error}");
                    continue;
                }
            };
            let new = Source::new(file.clone(), plan.len(), plan.clone());
            let new = BaseImage::from_source(new).unwrap_or_else(|error| panic!("{file}, {what}: {error}"));
            let more: Vec<_> = failed_checks(&new).difference(&before).copied().collect();
            assert!(more.is_empty(), "{file}, {what}: {more:?}");
            // Skip the product whose first file, an EFI boot image, was replaced, because its boot structures refer to
            // the new file.
            if what != "first file" {
                let same =
                    |other: &(String, Vec<u8>)| pointed.contains(other) || other.1.starts_with(&[0; 8]);
                let other = boot_targets(&new).into_iter().find(|it| !same(it)).map(|(other, _)| other);
                assert_eq!(other, None, "{file}, {what}");
            }
            products += 1;
        }
    }
    assert!(products > 100, "{products} products");
}

/// The cases are base images with contradictory structures, the refused layouts, and the message.
#[test]
fn contradictory_structures_are_refused_only_for_moved_files() {
    let cases: [(&str, &[&str], &str); 12] = [
        (
            "catalog-image-in-a-file",
            &["grown archive", "further initrd", "minimal", "first file"],
            "sector of a boot image that moves",
        ),
        (
            "catalog-image-nowhere",
            &["grown archive", "last file", "new file"],
            "sector of a boot image that moves",
        ),
        ("info-table-wrong", &[], ""),
        ("mbr-boot-sector-wrong", &["grown archive", "first file"], "sector of isolinux in the MBR"),
        ("mbr-partition-wrong", &["grown archive", "first file"], "MBR partition"),
        ("mbr-partition-past-end", &["grown archive", "last file", "new file"], "MBR partition"),
        ("gpt-partition-wrong", &["grown archive", "first file"], "GPT partition"),
        ("gpt-partition-past-end", &["grown archive", "last file", "new file"], "GPT partition"),
        ("gpt-partition-backwards", &["grown archive", "last file", "new file"], "GPT partition"),
        ("gpt-short-table", &["grown archive", "last file", "new file"], "a table of 4 entries"),
        ("joliet-only-name", &["minimal"], "record of a file that moves"),
        ("continuation-behind-files", &["grown archive", "last file"], "Rock Ridge continuation"),
    ];
    for (name, layouts_refused, phrase) in cases {
        let hostile = hostile().into_iter().find(|hostile| hostile.name == name).unwrap();
        let base = BaseImage::from_source(Source::from_bytes(name, hostile.image())).unwrap();
        for (what, plan) in sample_relayouts(&base) {
            match plan {
                Ok(_) => {
                    assert!(!layouts_refused.contains(&what) || phrase.is_empty(), "{name}, {what}: taken")
                }
                Err(error) => {
                    let message = error.to_string();
                    assert!(
                        message.contains(phrase) && message.contains("byte "),
                        "{name}, {what}: {message}"
                    );
                    assert!(
                        !phrase.is_empty() || layouts_refused.contains(&what),
                        "{name}, {what}: {message}"
                    );
                }
            }
        }
    }
}

/// A boot info table with a wrong position is kept if the re-layout does not have to write a new position.
#[test]
fn wrong_boot_info_table_is_kept_or_refused() {
    // In images of this era, the EFI boot image comes first, so isolinux moves when the EFI boot image changes.
    let is_fixture = |fixture: &&FixtureImage| fixture.name().starts_with("2024-12.x86_64");
    let fixture = all_images().iter().find(is_fixture).unwrap();
    let table = usize::try_from(fixture.mastered.files["isolinux/isolinux.bin"].offset).unwrap() + 12;
    let mut bytes = fixture.bytes.to_vec();
    bytes[table] ^= 1;
    let base = BaseImage::from_source(Source::from_bytes("wrong-table.iso", bytes.clone())).unwrap();
    for (what, plan) in sample_relayouts(&base) {
        if what == "first file" {
            let message = plan.map(|_| what).unwrap_err().to_string();
            assert!(message.contains(&format!("byte {table}: sector in the boot info table")), "{message}");
            continue;
        }
        let mut actual = [0; 4];
        plan.unwrap().read_at(&mut actual, table as u64).unwrap();
        assert_eq!(actual, bytes[table..table + 4], "{what}");
    }
}

/// A UDF tree may contain the same files, and a re-layout would not update it.
#[test]
fn rejects_udf_bridge() {
    let image = x86_64_image();
    let mut bytes = image.source().read_extent(Extent::from_start(image.source().len())).unwrap();
    // The position after the three descriptors and the terminator.
    let at = (16 + image.volume().descriptors().len() + 1) * 2048;
    bytes[at..at + 6].copy_from_slice(b"\0BEA01");
    let bridge = BaseImage::from_source(Source::from_bytes("bridge.iso", bytes)).unwrap();
    for (what, plan) in sample_relayouts(&bridge) {
        let message = plan.map(|_| what).unwrap_err().to_string();
        assert!(
            message.contains(&format!("byte {at}: volume descriptors")) && message.ends_with("UDF"),
            "{message}"
        );
    }
    assert!(bridge.plan_in_place(&Edits::new().archive(small_archive())).is_ok());
}

/// A Joliet tree may refer to bytes that the primary tree does not refer to.
#[test]
fn joliet_only_files_are_kept() {
    let base = diverse_images().iter().find(|fixture| fixture.open().volume().joliet().is_some()).unwrap();
    let image = base.open();
    let joliet = image.volume().joliet_tree().unwrap();
    let record = &joliet.find("images/pxeboot/rootfs.img").unwrap().record;
    let mut bytes = base.bytes.to_vec();
    let at = usize::try_from(record.position).unwrap();
    let len = 2048;
    let short = u32::try_from(len).unwrap();
    bytes[at + 10..at + 18].copy_from_slice(&[short.to_le_bytes(), short.to_be_bytes()].concat());
    let image = BaseImage::from_source(Source::from_bytes("joliet.iso", bytes)).unwrap();
    let message =
        image.plan(&Edits::new().archive(large_archive())).map(|_| "taken").unwrap_err().to_string();
    assert!(message.contains("record of a file that moves") && message.contains("rootfs.img"), "{message}");
}
