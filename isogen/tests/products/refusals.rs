//! What cannot be laid out anew is refused, with what is wrong and where; what is wrong but harmless stays as it is. No
//! product is more broken than its base, and nothing panics.

use std::collections::BTreeSet;

use fixtures::hostile;
use isogen::verify::Outcome;
use isogen::{
    BaseImage, Contents, Edits, Error, Extent, FileOperations, Plan, Result, SECTOR_SIZE, Segment, Source,
};

use crate::images::{Good, all, few};
use crate::made::{URL, contents, large_archive, noise, small_archive};

fn image(architecture: fixtures::Architecture) -> BaseImage {
    let found = |good: &&Good| {
        good.recipe.architecture() == architecture && good.recipe.era() == fixtures::Era::E2023_07
    };
    all().iter().find(found).unwrap().open()
}

fn hybrid() -> BaseImage {
    image(fixtures::Architecture::X86_64)
}

/// One operation that must be refused; gives what is said.
fn refused(image: &BaseImage, path: &str, contents: Option<Contents>) -> String {
    let mut operations = FileOperations::new();
    match contents {
        Some(contents) => operations.put_file(path, contents),
        None => operations.drop_file(path),
    }
    image.relayout(&operations).map(|_| path.to_owned()).unwrap_err().to_string()
}

#[test]
fn sizes_beyond_32_bits_are_refused() {
    let image = hybrid();
    for len in [u64::from(u32::MAX) + 1, 5 << 30, u64::MAX] {
        let said = refused(&image, "images/large.img", Some(Contents::new(vec![Segment::Zero(len)])));
        assert!(
            said.contains(&format!("images/large.img of {len} bytes")) && said.contains("4 GiB"),
            "{said}"
        );
    }
    // Lengths that pass 64 bits when they are added up.
    let endless = Contents::new(vec![Segment::Zero(u64::MAX), Segment::Zero(u64::MAX)]);
    assert!(refused(&image, "endless", Some(endless)).contains("4 GiB"));

    let mut operations = FileOperations::new();
    let largest = || Contents::new(vec![Segment::Zero(u64::from(u32::MAX))]);
    for number in 0..2047 {
        operations.put_file(format!("images/{number}"), largest());
    }
    // 2047 files of 4 GiB are just below 8 TiB, which is what 32 bits of sectors hold.
    let plan = image.relayout(&operations);
    assert!(plan.is_ok_and(|plan| plan.len() > (8 << 40) - (8 << 30)));
    operations.put_file("images/2047", largest());
    let said = image.relayout(&operations).map(|_| "2048 files").unwrap_err().to_string();
    assert!(said.contains("size of the new image") && said.contains("at most 4294967295 sectors"), "{said}");
}

#[test]
fn a_directory_that_no_reader_takes_is_refused() {
    let image = hybrid();
    let mut operations = FileOperations::new();
    // Short names that do not run out: each letter in front has a thousand.
    for number in 0..9000 {
        let letter = char::from(b'a' + u8::try_from(number % 26).unwrap());
        operations.put_file(format!("images/{letter}{}{number}", "x".repeat(90)), Contents::default());
    }
    let said = image.relayout(&operations).map(|_| "9000 files").unwrap_err().to_string();
    assert!(said.contains("directory with its new files: expected at most 1048576 bytes"), "{said}");
}

/// A path table is read and held as a whole, so that its length must not be believed.
#[test]
fn a_path_table_that_no_tree_fills_is_refused() {
    const LEN: u32 = 5 << 20;
    let good = few().iter().find(|good| good.open().volume().joliet().is_none()).unwrap();
    let mut bytes = good.bytes.to_vec();
    let at = 16 * 2048 + 132;
    bytes[at..at + 8].copy_from_slice(&[LEN.to_le_bytes(), LEN.to_be_bytes()].concat());
    bytes.resize(8 << 20, 0);
    let image = BaseImage::from_source(Source::from_bytes("tables.iso", bytes)).unwrap();
    let mut operations = FileOperations::new();
    // More than the sectors of the directory take, so that it moves.
    for number in 0..200 {
        operations.put_file(format!("images/{number}"), Contents::default());
    }
    let said = image.relayout(&operations).map(|_| "taken").unwrap_err().to_string();
    assert!(said.contains(&format!("byte {at}: path table: expected at most")), "{said}");
    assert!(said.ends_with(&LEN.to_string()), "{said}");
}

/// On s390x the boot image states the length of its initrd, of which the Ignition area is the end.
#[test]
fn an_initrd_longer_than_its_boot_image_does_not_grow() {
    let s390x = |good: &&Good| good.name().starts_with("2023-07.s390x");
    let good = all().iter().find(s390x).unwrap();
    let boot_image = good.truth.files["images/cdboot.img"];
    let at = usize::try_from(boot_image.offset).unwrap() + 66_576;
    for (stated, is_taken) in
        [(boot_image.len, true), (boot_image.len + 1, false), (u64::MAX, false), (0, false)]
    {
        let mut bytes = good.bytes.to_vec();
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
fn contents_are_of_this_base() {
    let image = hybrid();
    let beyond = Extent::new(image.source().len() - 1, 2).unwrap();
    let said = refused(&image, "images/x", Some(Contents::new(vec![Segment::Base(beyond)])));
    assert!(said.contains("behind the end of the base"), "{said}");
}

#[test]
fn paths_that_cannot_be_are_refused() {
    let image = hybrid();
    let cases = [
        ("", "it is a directory"),
        ("images/", "it is a directory"),
        ("images", "it is a directory"),
        ("IMAGES/PXEBOOT", "it is a directory"),
        ("images/..", "it has no name"),
        ("images/missing/file", "images/missing"),
        ("images_of_mine/file", "images_of_mine"),
        ("images/ignition.img/file", "images/ignition.img"),
        ("images/new\nline", "no control characters"),
        ("images/semi;colon", "none of * : ; ? \\"),
        ("images/back\\slash", "none of * : ; ? \\"),
    ];
    for (path, reason) in cases {
        let said = refused(&image, path, Some(contents(noise(1))));
        assert!(said.contains(reason), "{path:?}: {said}");
    }
    let long = format!("images/{}", "n".repeat(104));
    assert!(refused(&image, &long, Some(contents(noise(1)))).contains("at most 103 characters"));
    // Without Joliet, the directory record is the limit.
    let power = self::image(fixtures::Architecture::Ppc64le);
    let long = format!("images/{}", "n".repeat(200));
    assert!(refused(&power, &long, Some(contents(noise(1)))).contains("pass 255 bytes"));
    assert!(refused(&image, "images/missing.img", None).contains("images/missing.img"));

    let mut operations = FileOperations::new();
    operations.put_file("images/one", contents(noise(1)));
    operations.put_file("/images//one", contents(noise(2)));
    let said = image.relayout(&operations).map(|_| "twice").unwrap_err().to_string();
    assert!(said.contains("another operation names the same file"), "{said}");
}

#[test]
fn what_firmware_starts_cannot_be_dropped() {
    for good in all() {
        let image = good.open();
        let Some(catalog) = image.boot_catalog() else { continue };
        for entry in &catalog.entries {
            let path = image.file_at(Extent::new(entry.sector.offset(), 1).unwrap()).unwrap();
            for contents in [None, Some(Contents::default())] {
                let said = refused(&image, &path, contents);
                assert!(
                    said.contains(&path) && said.contains("firmware starts it"),
                    "{}: {said}",
                    good.name()
                );
            }
        }
        let path = image.file_at(Extent::at_sector(catalog.sector, 1)).unwrap();
        assert!(refused(&image, &path, None).contains("boot catalogue"), "{}", good.name());
    }
}

#[test]
fn names_of_initrd_images_are_those_that_boot_loaders_take() {
    let image = hybrid();
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
        let said = image.plan(&edits).map(|_| name).unwrap_err().to_string();
        assert!(said.contains(reason) && said.contains(&format!("{name:?}")), "{name:?}: {said}");
    }
}

#[test]
fn urls_that_would_not_arrive_are_refused() {
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
    let described = hybrid();
    let mut operations = FileOperations::new();
    operations.drop_file(crate::made::DESCRIPTION);
    let plan = described.relayout(&operations).unwrap();
    let undescribed = crate::made::open(&plan, "undescribed.iso");
    for image in [&described, &undescribed, &self::image(fixtures::Architecture::S390x)] {
        assert!(image.plan(&Edits::new().minimal(Some(URL))).is_ok());
        for (url, reason) in cases {
            let error = image.plan(&Edits::new().minimal(Some(url))).map(|_| url).unwrap_err();
            assert!(matches!(&error, Error::Refused { value, .. } if value == url), "{url:?}: {error:?}");
            assert!(error.to_string().contains(reason), "{url:?}: {error}");
        }
    }
}

/// What of an image is wrong, by the name of the check.
fn wrong(image: &BaseImage) -> BTreeSet<&'static str> {
    let checks = image.verify().unwrap().into_iter().filter(|check| check.name != "minimal iso");
    checks.filter(|check| matches!(check.outcome, Outcome::Wrong(_))).map(|check| check.name).collect()
}

/// The first bytes at everything that boot structures point at.
fn pointed_at(image: &BaseImage) -> Vec<(String, Vec<u8>)> {
    let tables = image.partitions();
    let entries = image.boot_catalog().into_iter().flat_map(|catalog| &catalog.entries);
    let entries = entries
        .filter(|it| it.bootable)
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

/// Ways to move much and little of an image.
fn layouts(image: &BaseImage) -> Vec<(&'static str, Result<Plan>)> {
    let put = |path: &str, bytes: Vec<u8>| {
        let mut operations = FileOperations::new();
        operations.put_file(path, contents(bytes));
        image.relayout(&operations)
    };
    vec![
        ("grown archive", image.plan(&Edits::new().archive(large_archive()))),
        ("further initrd", image.plan(&Edits::new().initrd_image("network.img", &small_archive()))),
        ("minimal", image.plan(&Edits::new().minimal(Some(URL)).archive(large_archive()))),
        ("last file", put("coreos/features.json", [b"{}".to_vec(), vec![b' '; 5000]].concat())),
        ("first file", put("images/efiboot.img", noise(70_000))),
        ("new file", put("images/new.img", noise(70_000))),
    ]
}

/// Tells whether an error says which file is meant, and where in it.
fn says_where(error: &Error, file: &str) -> bool {
    let causes = std::iter::successors(Some(error as &dyn std::error::Error), |error| error.source());
    let text = causes.map(ToString::to_string).collect::<Vec<_>>().join(": ");
    text.contains(file)
        && (text.contains("byte ")
            || text.contains("coreos/")
            || text.contains("no place for")
            || matches!(
                error,
                Error::NotFound { .. }
                    | Error::NoKargs { .. }
                    | Error::Interrupted { .. }
                    | Error::Customized { .. }
            ))
}

#[test]
fn no_product_is_more_broken_than_its_base() {
    let mut made = 0;
    for hostile in hostile() {
        let file = format!("{}.iso", hostile.name);
        let Ok(base) = BaseImage::from_source(Source::from_bytes(file.clone(), hostile.image())) else {
            continue;
        };
        let (before, pointed) = (wrong(&base), pointed_at(&base));
        for (what, plan) in layouts(&base) {
            let plan = match plan {
                Ok(plan) => plan,
                Err(error) => {
                    assert!(says_where(&error, &file), "{file}, {what}: {error}");
                    continue;
                }
            };
            let new = Source::new(file.clone(), plan.len(), plan.clone());
            let new = BaseImage::from_source(new).unwrap_or_else(|error| panic!("{file}, {what}: {error}"));
            let more: Vec<_> = wrong(&new).difference(&before).copied().collect();
            assert!(more.is_empty(), "{file}, {what}: {more:?}");
            // That file was replaced, and everything that named it follows.
            if what != "first file" {
                let same =
                    |other: &(String, Vec<u8>)| pointed.contains(other) || other.1.starts_with(&[0; 8]);
                let other = pointed_at(&new).into_iter().find(|it| !same(it)).map(|(other, _)| other);
                assert_eq!(other, None, "{file}, {what}");
            }
            made += 1;
        }
    }
    assert!(made > 100, "{made} products");
}

/// The bases that contradict themselves, one by one: the layouts that are refused, and what is said.
#[test]
fn contradictions_are_refused_where_something_moves() {
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
        for (what, plan) in layouts(&base) {
            match plan {
                Ok(_) => {
                    assert!(!layouts_refused.contains(&what) || phrase.is_empty(), "{name}, {what}: taken")
                }
                Err(error) => {
                    let said = error.to_string();
                    assert!(said.contains(phrase) && said.contains("byte "), "{name}, {what}: {said}");
                    assert!(!phrase.is_empty() || layouts_refused.contains(&what), "{name}, {what}: {said}");
                }
            }
        }
    }
}

/// A boot info table that names another place is kept, as long as nobody would have to say where it should point.
#[test]
fn a_wrong_info_table_is_kept_or_refused() {
    // In this era the EFI boot image comes first, and isolinux moves when it does.
    let found = |good: &&Good| good.name().starts_with("2024-12.x86_64");
    let good = all().iter().find(found).unwrap();
    let table = usize::try_from(good.truth.files["isolinux/isolinux.bin"].offset).unwrap() + 12;
    let mut bytes = good.bytes.to_vec();
    bytes[table] ^= 1;
    let base = BaseImage::from_source(Source::from_bytes("wrong-table.iso", bytes.clone())).unwrap();
    for (what, plan) in layouts(&base) {
        if what == "first file" {
            let said = plan.map(|_| what).unwrap_err().to_string();
            assert!(said.contains(&format!("byte {table}: sector in the boot info table")), "{said}");
            continue;
        }
        let mut kept = [0; 4];
        plan.unwrap().read_at(&mut kept, table as u64).unwrap();
        assert_eq!(kept, bytes[table..table + 4], "{what}");
    }
}

/// An image may name its files in UDF as well, which nobody would change.
#[test]
fn a_bridge_to_udf_is_refused() {
    let image = hybrid();
    let mut bytes = image.source().read_extent(Extent::first(image.source().len())).unwrap();
    // Behind the three descriptors and the terminator.
    let at = (16 + image.volume().descriptors().len() + 1) * 2048;
    bytes[at..at + 6].copy_from_slice(b"\0BEA01");
    let bridge = BaseImage::from_source(Source::from_bytes("bridge.iso", bytes)).unwrap();
    for (what, plan) in layouts(&bridge) {
        let said = plan.map(|_| what).unwrap_err().to_string();
        assert!(said.contains(&format!("byte {at}: volume descriptors")) && said.ends_with("UDF"), "{said}");
    }
    assert!(bridge.plan_in_place(&Edits::new().archive(small_archive())).is_ok());
}

/// Joliet may lead to bytes that the primary tree does not know.
#[test]
fn files_that_only_joliet_has_do_not_get_lost() {
    let base = few().iter().find(|good| good.open().volume().joliet().is_some()).unwrap();
    let image = base.open();
    let joliet = image.volume().joliet_tree().unwrap();
    let record = &joliet.find("images/pxeboot/rootfs.img").unwrap().record;
    let mut bytes = base.bytes.to_vec();
    let at = usize::try_from(record.position).unwrap();
    let len = usize::try_from(SECTOR_SIZE).unwrap();
    let short = u32::try_from(len).unwrap();
    bytes[at + 10..at + 18].copy_from_slice(&[short.to_le_bytes(), short.to_be_bytes()].concat());
    let image = BaseImage::from_source(Source::from_bytes("joliet.iso", bytes)).unwrap();
    let said = image.plan(&Edits::new().archive(large_archive())).map(|_| "taken").unwrap_err().to_string();
    assert!(said.contains("record of a file that moves") && said.contains("rootfs.img"), "{said}");
}
