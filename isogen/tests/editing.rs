//! Edits of the images of every era and architecture. An edited image differs from the original only in its embed
//! areas, and opening it shows the edits. A reset restores the original. The PXE initrd and the minimal image are
//! correct.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::cast_possible_truncation,
    reason = "test code over images that `fixtures` made"
)]

mod images;

use std::sync::LazyLock;

use images::{FixtureImage, diverse_images, extent_bytes, images_with_ignition_area};
use isogen::initrd::ArchiveLimits;
use isogen::{
    Archive, BaseImage, Digest, Edits, Encoding, Error, IgnitionArea, KargsEdit, KargsError, KargsOperations,
    PackedArchive, Plan, Source,
};
use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::Value;

const CONFIG: &[u8] = br#"{"ignition":{"version":"3.3.0"}}"#;

fn config_archive() -> Archive {
    let mut archive = Archive::new();
    archive.insert("config.ign", CONFIG);
    archive
}

fn network_archive() -> Archive {
    let mut archive = Archive::new();
    archive.insert_network_file("wired.nmconnection", &b"[connection]\nid=wired\n"[..]);
    archive.insert("config.ign", &b"replaced by the later archive"[..]);
    archive
}

/// Archives for the Ignition area, and the members that the area must contain after the edit.
static ARCHIVES: LazyLock<Vec<(Vec<PackedArchive>, Archive)>> = LazyLock::new(|| {
    let packed = |archive: Archive, encoding| archive.pack(encoding).unwrap();
    let mut both = network_archive();
    both.insert("config.ign", CONFIG);
    vec![
        (vec![packed(config_archive(), Encoding::Xz)], config_archive()),
        (vec![packed(network_archive(), Encoding::Gzip), packed(config_archive(), Encoding::Stored)], both),
        (vec![PackedArchive::default()], Archive::new()),
    ]
});

/// Returns edits of the kernel arguments, each with the expected arguments of an image that had the default arguments.
fn kargs_edits(default: &str) -> Vec<(KargsEdit, String)> {
    let operations = KargsOperations {
        append: vec!["console=ttyS0".into(), "rd.x=1".into()],
        delete: vec!["ignition.firstboot".into()],
        replace: vec!["rd.x=1=2".into()],
    };
    let changed = default.replace(" ignition.firstboot", "") + " console=ttyS0 rd.x=2";
    vec![
        (KargsEdit::Current(operations.clone()), changed.clone()),
        (KargsEdit::Default(operations), changed),
        (KargsEdit::Set("  quiet#  ".into()), "quiet#".into()),
        (KargsEdit::Set(String::new()), String::new()),
        (KargsEdit::Reset, default.to_owned()),
    ]
}

/// Applies a simple reference edit: copies the image and overwrites the areas at the positions that the fixture
/// records.
fn naive_edit(fixture: &FixtureImage, archives: Option<&[PackedArchive]>, kargs: Option<&str>) -> Vec<u8> {
    let mut copy = fixture.bytes.to_vec();
    let overwrite = |copy: &mut Vec<u8>, extent: fixtures::Extent, bytes: &[u8], fill: u8| {
        let area = &mut copy[extent.offset as usize..][..extent.len as usize];
        area[..bytes.len()].copy_from_slice(bytes);
        area[bytes.len()..].fill(fill);
    };
    if let Some(archives) = archives {
        let bytes: Vec<u8> = archives.iter().flat_map(|packed| packed.as_bytes().to_vec()).collect();
        overwrite(&mut copy, fixture.mastered.ignition.unwrap(), &bytes, 0);
    }
    if let Some(kargs) = kargs {
        let (end, pad) = fixture.end_and_pad();
        let line = [kargs.as_bytes(), &[end]].concat();
        fixture.mastered.kargs.iter().for_each(|area| overwrite(&mut copy, *area, &line, pad));
    }
    copy
}

fn plan_bytes(plan: &Plan) -> Vec<u8> {
    plan.read_all(64 << 20).unwrap()
}

fn reopen(plan: &Plan) -> BaseImage {
    BaseImage::from_source(Source::new("edited.iso".into(), plan.len(), plan.clone())).unwrap()
}

fn edits_with(archives: Option<&[PackedArchive]>, kargs: Option<&KargsEdit>) -> Edits {
    let mut edits = archives.unwrap_or_default().iter().cloned().fold(Edits::new(), Edits::archive);
    if let Some(kargs) = kargs {
        edits = edits.kargs(kargs.clone());
    }
    edits
}

#[test]
fn embed_areas_are_found() {
    for fixture in images_with_ignition_area() {
        let image = fixture.open();
        let fixture_extent =
            |extent: isogen::Extent| fixtures::Extent { offset: extent.offset(), len: extent.len() };
        assert_eq!(
            Some(fixture_extent(image.require_ignition_area().unwrap().extent)),
            fixture.mastered.ignition,
            "{}",
            fixture.name()
        );
        assert_eq!(IgnitionArea::find(image.source()).unwrap(), image.ignition_area(), "{}", fixture.name());
        let areas = image.kargs().map_or(&[][..], |kargs| kargs.areas());
        let areas: Vec<_> = areas.iter().map(|area| fixture_extent(area.extent)).collect();
        assert_eq!(areas, fixture.mastered.kargs, "{}", fixture.name());
        if let Some(kargs) = image.kargs() {
            assert_eq!(kargs.default().unwrap(), fixture.recipe.default_kargs());
            assert_eq!(kargs.current().unwrap(), fixture.recipe.default_kargs());
        }
        for (path, extent) in &fixture.mastered.files {
            let entry = image.volume().file(path).unwrap_or_else(|| panic!("{}: {path}", fixture.name()));
            assert!(
                entry.extent.is_empty() || fixture_extent(entry.extent) == *extent,
                "{}: {path}",
                fixture.name()
            );
            assert_eq!(entry.extent.len(), extent.len, "{}: {path}", fixture.name());
        }
        assert!(image.volume().findings().is_empty(), "{}: {:?}", fixture.name(), image.volume().findings());
        image.require_pristine().unwrap();
    }
}

#[test]
fn rejects_archive_for_images_without_an_area() {
    let none = |recipe: &fixtures::Recipe| !recipe.era().has_ignition_area(recipe.architecture());
    for recipe in fixtures::Recipe::all().filter(none) {
        let bytes = recipe.clone().rootfs_len(80 << 10).build();
        let image = BaseImage::from_source(Source::from_bytes(recipe.name(), bytes)).unwrap();
        assert!(image.ignition_area().is_none() && image.kargs().is_none(), "{}", recipe.name());
        assert_eq!(IgnitionArea::find(image.source()).unwrap(), None, "{}", recipe.name());
        let (packed, _) = &ARCHIVES[0];
        let refused = image.plan(&edits_with(Some(packed), None));
        assert!(matches!(refused, Err(Error::NotCoreOs { .. })), "{}", recipe.name());
    }
}

/// Tests all combinations of archives and kernel arguments on all images.
#[test]
fn edited_image_is_the_original_with_its_areas_overwritten() {
    for fixture in images_with_ignition_area() {
        let image = fixture.open();
        let default = fixture.recipe.default_kargs();
        let archives = ARCHIVES.iter().map(|(packed, members)| (Some(&packed[..]), members.clone()));
        let archives: Vec<_> = archives.chain([(None, Archive::new())]).collect();
        let changes = if fixture.has_kargs() { kargs_edits(&default) } else { Vec::new() };
        let changes: Vec<_> = changes.iter().map(Some).chain([None]).collect();
        for (packed, members) in &archives {
            for change in &changes {
                let edit = change.map(|(edit, _)| edit);
                let line = change.map(|(_, line)| &line[..]);
                let plan = image.plan(&edits_with(*packed, edit)).unwrap();
                let expected = naive_edit(fixture, *packed, line);
                assert!(plan_bytes(&plan) == expected, "{}: {edit:?}", fixture.name());

                let edited = reopen(&plan);
                assert_eq!(edited.archive().unwrap(), *members, "{}", fixture.name());
                let current = edited.kargs().map(|kargs| kargs.current().unwrap());
                let was = fixture.has_kargs().then_some(&default[..]);
                assert_eq!(current, line.or(was), "{}: {edit:?}", fixture.name());
                assert_eq!(edited.kargs().map(|kargs| kargs.default().unwrap()), was);
            }
        }
    }
}

#[test]
fn reset_restores_every_byte() {
    for fixture in images_with_ignition_area() {
        let (packed, _) = &ARCHIVES[1];
        let set = KargsEdit::Set("quiet".into());
        let kargs = fixture.has_kargs().then_some(&set);
        let edited = reopen(&fixture.open().plan(&edits_with(Some(packed), kargs)).unwrap());
        assert!(edited.require_pristine().is_err());
        let reset = fixture.has_kargs().then_some(&KargsEdit::Reset);
        let reset = edited.plan(&edits_with(Some(&[PackedArchive::default()]), reset)).unwrap();
        assert_eq!(reset.sha256().unwrap(), Digest::from_data(&fixture.bytes), "{}", fixture.name());
    }
}

#[test]
fn rejects_kargs_edits_for_images_without_kargs() {
    for fixture in images_with_ignition_area().iter().filter(|fixture| !fixture.has_kargs()) {
        let refused = fixture.open().plan(&Edits::new().kargs(KargsEdit::Reset));
        assert!(matches!(refused, Err(Error::NoKargs { .. })), "{}", fixture.name());
    }
}

#[test]
fn embed_area_capacity_is_exact() {
    for fixture in images_with_ignition_area() {
        let image = fixture.open();
        let capacity = fixture.mastered.ignition.unwrap().len as usize;
        let plan = |len: usize| {
            let packed = PackedArchive::from_encoded(vec![b'x'; len].into());
            image.plan_in_place(&Edits::new().archive(packed))
        };
        assert!(plan(capacity).is_ok());
        assert!(matches!(plan(capacity + 4), Err(Error::ArchiveTooLarge { .. })), "{}", fixture.name());
        if let Some(area) = fixture.mastered.kargs.first() {
            let set = |len: usize| image.plan_in_place(&Edits::new().kargs(KargsEdit::Set("k".repeat(len))));
            let full = set(area.len as usize - 1).unwrap();
            assert_eq!(reopen(&full).kargs().unwrap().current().unwrap().len(), area.len as usize - 1);
            let refused = set(area.len as usize);
            assert!(
                matches!(refused, Err(Error::Kargs { reason: KargsError::TooLarge { .. }, .. })),
                "{}",
                fixture.name()
            );
        }
    }
}

#[test]
fn edit_in_place_equals_the_edited_copy() {
    let (packed, _) = &ARCHIVES[0];
    for fixture in diverse_images() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("image.iso");
        std::fs::write(&path, &fixture.bytes).unwrap();
        let image = BaseImage::open(&path).unwrap();
        let plan = image.plan(&edits_with(Some(packed), Some(&KargsEdit::Set("quiet".into())))).unwrap();
        let file = std::fs::OpenOptions::new().read(true).write(true).open(&path).unwrap();
        plan.write_in_place(&file, image.require_ignition_area().unwrap().extent).unwrap();
        assert!(
            std::fs::read(&path).unwrap() == naive_edit(fixture, Some(packed), Some("quiet")),
            "{}",
            fixture.name()
        );
        plan.write_file(folder.path().join("copy.iso")).unwrap();
        assert!(std::fs::read(folder.path().join("copy.iso")).unwrap() == std::fs::read(&path).unwrap());
    }
}

#[test]
fn pxe_files_equal_the_files_of_the_image() {
    for fixture in images_with_ignition_area() {
        let image = fixture.open();
        for file in image.pxe_files().unwrap() {
            let path = format!("images/pxeboot/{}", file.name);
            assert!(plan_bytes(&file.plan) == fixture.file(&path), "{}: {path}", fixture.name());
        }
        assert!(plan_bytes(&image.rootfs().unwrap()) == fixture.file("images/pxeboot/rootfs.img"));
        assert!(!image.kernel().unwrap().is_empty());
    }
}

#[test]
fn initrd_with_appended_archives_reads_back() {
    for fixture in images_with_ignition_area() {
        let image = fixture.open();
        let plain = fixture.file("images/pxeboot/initrd.img");
        let before = Archive::read(plain, ArchiveLimits::INITRD).unwrap();
        assert!(before.get("etc/coreos-live-initramfs").is_some());
        for (packed, members) in ARCHIVES.iter() {
            let initrd = image.initrd(packed.clone()).unwrap();
            let mut expected = before.clone();
            members.iter().for_each(|(name, contents)| expected.insert(name, contents.clone()));
            assert_eq!(
                Archive::read(initrd.reader(), ArchiveLimits::INITRD).unwrap(),
                expected,
                "{}",
                fixture.name()
            );
            assert!(plan_bytes(&initrd).starts_with(plain));
            assert_eq!(initrd.len() % 4, 0);
        }
        if let Ok(addrsize) = image.initrd_addrsize(0x0123_4567) {
            let [before, after] = [fixture.file("images/initrd.addrsize").to_vec(), plan_bytes(&addrsize)];
            assert_eq!(after[..8], before[..8]);
            assert_eq!(after[8..], [0, 0, 0, 0, 1, 0x23, 0x45, 0x67]);
        }
    }
}

/// Returns the minimal image as mastered, with its kernel arguments overwritten, and the range of its copy of
/// `kargs.json`.
fn expected_minimal(
    fixture: &FixtureImage,
    mastered: &[u8],
    line: &str,
) -> (Vec<u8>, std::ops::Range<usize>) {
    let mut copy = mastered.to_vec();
    let (end, pad) = fixture.end_and_pad();
    let mut filled = [line.as_bytes(), &[end]].concat();
    filled.resize(fixture.mastered.kargs[0].len as usize, pad);
    let pattern = [fixture.recipe.default_kargs().as_bytes(), &[end], &[pad; 4]].concat();
    for at in offsets_of(mastered, &pattern) {
        // Skip an area at the start of a sector: it is the file `.cmdline`, which keeps the old defaults.
        if at % 2048 != 0 {
            copy[at..at + filled.len()].copy_from_slice(&filled);
        }
    }
    let json = fixture.file("coreos/kargs.json");
    let at = offsets_of(mastered, json)[0];
    (copy, at..at + json.len())
}

fn offsets_of(bytes: &[u8], pattern: &[u8]) -> Vec<usize> {
    let windows = bytes.windows(pattern.len()).enumerate();
    windows.filter(|(_, window)| *window == pattern).map(|(at, _)| at).collect()
}

#[test]
fn minimal_image_equals_the_mastered_one() {
    let with_kargs = images_with_ignition_area()
        .iter()
        .filter(|fixture| fixture.mastered.minimal.is_some() && fixture.has_kargs());
    for fixture in with_kargs {
        let image = fixture.open();
        let minimal = fixture.mastered.minimal.as_ref().unwrap();
        let mastered = minimal.image.to_vec();
        assert_eq!(image.inspect().unwrap().minimal.sha256.unwrap().0, minimal.digest);
        image.verify_minimal().unwrap();

        let label = format!("coreos.liveiso={} ", fixture.recipe.volume_id());
        let default = fixture.recipe.default_kargs().replace(&label, "");
        let url = "http://example.com/rootfs?a&b";
        let with_url = format!("{default} coreos.live.rootfs_url=\"{url}\"");
        for (url, line) in [(None, &default), (Some(url), &with_url)] {
            let plan = image.plan(&Edits::new().minimal(url)).unwrap();
            let opened = reopen(&plan);
            let kargs = opened.kargs().unwrap();
            assert_eq!(kargs.current().unwrap(), line, "{}", fixture.name());
            assert_eq!(kargs.default().unwrap(), default, "{}", fixture.name());
            assert!(matches!(opened.rootfs(), Err(Error::NotFound { .. })));
            let (mut expected, json) = expected_minimal(fixture, &mastered, line);
            let actual = plan_bytes(&plan);
            let mut description: Value = serde_json::from_slice(fixture.file("coreos/kargs.json")).unwrap();
            description["default"] = default.clone().into();
            assert_eq!(serde_json::from_slice::<Value>(&actual[json.clone()]).unwrap(), description);
            expected[json.clone()].copy_from_slice(&actual[json]);
            let differs = actual.iter().zip(&expected).position(|(a, b)| a != b);
            assert!(actual == expected, "{}: first difference at {differs:?}", fixture.name());
        }
    }
}

#[test]
fn rejects_minimal_iso_of_a_customised_image() {
    let with_minimal = images_with_ignition_area()
        .iter()
        .filter(|fixture| fixture.mastered.minimal.is_some() && fixture.has_kargs());
    for fixture in with_minimal {
        let (packed, _) = &ARCHIVES[0];
        let edited = reopen(&fixture.open().plan(&edits_with(Some(packed), None)).unwrap());
        assert!(
            matches!(edited.plan(&Edits::new().minimal(None)), Err(Error::Customized { .. })),
            "{}",
            fixture.name()
        );
    }
}

/// The digest detects a changed byte in a file that both images share.
#[test]
fn changed_shared_byte_fails_the_digest() {
    let with_minimal = diverse_images().iter().filter(|fixture| fixture.mastered.minimal.is_some());
    for fixture in with_minimal {
        let mut bytes = fixture.bytes.to_vec();
        let extent = fixture.mastered.files["images/pxeboot/initrd.img"];
        bytes[extent.offset as usize + 200] ^= 1;
        assert_ne!(extent_bytes(&bytes, extent), fixture.file("images/pxeboot/initrd.img"));
        let image = BaseImage::from_source(Source::from_bytes("changed", bytes)).unwrap();
        assert!(matches!(image.verify_minimal(), Err(Error::MinimalDigest { .. })), "{}", fixture.name());
    }
}

/// Generates realistic arguments that contain filler characters, quotes and multi-byte letters.
fn kernel_argument() -> impl Strategy<Value = String> {
    "[a-z.#=\"ä€𝄞]{1,12}"
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn random_edits_overwrite_areas_and_read_back(
        members in vec(("[a-z]{1,8}(/[a-z]{1,8}){0,2}", vec(any::<u8>(), 0..2000)), 0..4),
        arguments in vec(kernel_argument(), 0..12),
        gzip in any::<bool>(),
    ) {
        let mut archive = Archive::new();
        members.into_iter().for_each(|(name, contents)| archive.insert(name, contents));
        let packed = [archive.pack(if gzip { Encoding::Gzip } else { Encoding::Stored }).unwrap()];
        let line = arguments.join(" ");
        for fixture in diverse_images() {
            let plan = fixture.open().plan(&edits_with(Some(&packed), Some(&KargsEdit::Set(line.clone())))).unwrap();
            prop_assert!(plan_bytes(&plan) == naive_edit(fixture, Some(&packed), Some(&line)), "{}", fixture.name());
            let edited = reopen(&plan);
            prop_assert_eq!(&edited.archive().unwrap(), &archive);
            prop_assert_eq!(edited.kargs().unwrap().current().unwrap(), &line);
            // Removing appended arguments must result in the same bytes as never appending them.
            let operations = |append: &[&str], delete: &[&str]| KargsOperations {
                append: append.iter().map(ToString::to_string).collect(),
                delete: delete.iter().map(ToString::to_string).collect(),
                replace: Vec::new(),
            };
            let appended = edited.plan(&Edits::new().kargs(KargsEdit::Current(operations(&["UNIQUE"], &[])))).unwrap();
            let removal = operations(&[], &["UNIQUE"]);
            let restored = reopen(&appended).plan(&Edits::new().kargs(KargsEdit::Current(removal))).unwrap();
            prop_assert!(plan_bytes(&restored) == plan_bytes(&plan), "{}", fixture.name());
        }
    }
}
