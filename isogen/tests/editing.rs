//! Proves, for every era and architecture, that an edited image is the original with its areas overwritten and nothing
//! else, that it says so when it is opened, that a reset gives the original back, and that the PXE initrd and the
//! minimal image are what they should be.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::cast_possible_truncation,
    reason = "test code over images that `fixtures` made"
)]

mod images;

use std::sync::LazyLock;

use images::{Good, few, good, slice};
use isogen::initrd::Limits;
use isogen::{
    Archive, BaseImage, Digest, Edits, Encoding, Error, KargsEdit, KargsError, KargsOperations, Packed, Plan,
    Source,
};
use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::Value;

const CONFIG: &[u8] = br#"{"ignition":{"version":"3.3.0"}}"#;

fn config() -> Archive {
    let mut archive = Archive::new();
    archive.insert("config.ign", CONFIG);
    archive
}

fn network() -> Archive {
    let mut archive = Archive::new();
    archive.insert_network("wired.nmconnection", &b"[connection]\nid=wired\n"[..]);
    archive.insert("config.ign", &b"replaced by the later archive"[..]);
    archive
}

/// Archives for the Ignition area: what is put in, and the members that shall be found there.
static ARCHIVES: LazyLock<Vec<(Vec<Packed>, Archive)>> = LazyLock::new(|| {
    let packed = |archive: Archive, encoding| archive.pack(encoding).unwrap();
    let mut both = network();
    both.insert("config.ign", CONFIG);
    vec![
        (vec![packed(config(), Encoding::Xz)], config()),
        (vec![packed(network(), Encoding::Gzip), packed(config(), Encoding::Stored)], both),
        (vec![Packed::default()], Archive::new()),
    ]
});

/// Kernel arguments: the edit, and what comes of the defaults of an image that was not edited before.
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

/// The image as anybody would edit it: copy it, overwrite the areas that the maker of the fixture knows.
fn overwritten(good: &Good, archives: Option<&[Packed]>, kargs: Option<&str>) -> Vec<u8> {
    let mut copy = good.bytes.to_vec();
    let put = |copy: &mut Vec<u8>, extent: fixtures::Extent, bytes: &[u8], fill: u8| {
        let area = &mut copy[extent.offset as usize..][..extent.len as usize];
        area[..bytes.len()].copy_from_slice(bytes);
        area[bytes.len()..].fill(fill);
    };
    if let Some(archives) = archives {
        let bytes: Vec<u8> = archives.iter().flat_map(|packed| packed.as_bytes().to_vec()).collect();
        put(&mut copy, good.truth.ignition.unwrap(), &bytes, 0);
    }
    if let Some(kargs) = kargs {
        let (end, pad) = good.end_and_pad();
        let line = [kargs.as_bytes(), &[end]].concat();
        good.truth.kargs.iter().for_each(|area| put(&mut copy, *area, &line, pad));
    }
    copy
}

fn bytes_of(plan: &Plan) -> Vec<u8> {
    plan.read_all(64 << 20).unwrap()
}

fn reopened(plan: &Plan) -> BaseImage {
    BaseImage::from_source(Source::new("edited.iso".into(), plan.len(), plan.clone())).unwrap()
}

fn edits(archives: Option<&[Packed]>, kargs: Option<&KargsEdit>) -> Edits {
    let mut edits = archives.unwrap_or_default().iter().cloned().fold(Edits::new(), Edits::archive);
    if let Some(kargs) = kargs {
        edits = edits.kargs(kargs.clone());
    }
    edits
}

#[test]
fn the_areas_are_where_the_maker_put_them() {
    for good in good() {
        let image = good.open();
        let ours = |extent: isogen::Extent| fixtures::Extent { offset: extent.offset(), len: extent.len() };
        assert_eq!(
            Some(ours(image.require_ignition_area().unwrap().extent)),
            good.truth.ignition,
            "{}",
            good.name()
        );
        let areas = image.kargs().map_or(&[][..], |kargs| kargs.areas());
        let areas: Vec<_> = areas.iter().map(|area| ours(area.extent)).collect();
        assert_eq!(areas, good.truth.kargs, "{}", good.name());
        if let Some(kargs) = image.kargs() {
            assert_eq!(kargs.default().unwrap(), good.recipe.default_kargs());
            assert_eq!(kargs.current().unwrap(), good.recipe.default_kargs());
        }
        for (path, extent) in &good.truth.files {
            let entry = image.volume().file(path).unwrap_or_else(|| panic!("{}: {path}", good.name()));
            assert!(entry.extent.is_empty() || ours(entry.extent) == *extent, "{}: {path}", good.name());
            assert_eq!(entry.extent.len(), extent.len, "{}: {path}", good.name());
        }
        assert!(image.volume().findings().is_empty(), "{}: {:?}", good.name(), image.volume().findings());
        image.require_pristine().unwrap();
    }
}

#[test]
fn images_without_an_area_take_no_archive() {
    let none = |recipe: &fixtures::Recipe| !recipe.era().has_ignition_area(recipe.architecture());
    for recipe in fixtures::Recipe::all().filter(none) {
        let bytes = recipe.clone().rootfs_len(80 << 10).build();
        let image = BaseImage::from_source(Source::from_bytes(recipe.name(), bytes)).unwrap();
        assert!(image.ignition_area().is_none() && image.kargs().is_none(), "{}", recipe.name());
        let (packed, _) = &ARCHIVES[0];
        let refused = image.plan(&edits(Some(packed), None));
        assert!(matches!(refused, Err(Error::NotCoreOs { .. })), "{}", recipe.name());
    }
}

/// All combinations of archives and kernel arguments, on all images.
#[test]
fn an_edited_image_is_the_original_with_its_areas_overwritten() {
    for good in good() {
        let image = good.open();
        let default = good.recipe.default_kargs();
        let archives = ARCHIVES.iter().map(|(packed, members)| (Some(&packed[..]), members.clone()));
        let archives: Vec<_> = archives.chain([(None, Archive::new())]).collect();
        let changes = if good.has_kargs() { kargs_edits(&default) } else { Vec::new() };
        let changes: Vec<_> = changes.iter().map(Some).chain([None]).collect();
        for (packed, members) in &archives {
            for change in &changes {
                let edit = change.map(|(edit, _)| edit);
                let line = change.map(|(_, line)| &line[..]);
                let plan = image.plan(&edits(*packed, edit)).unwrap();
                let expected = overwritten(good, *packed, line);
                assert!(bytes_of(&plan) == expected, "{}: {edit:?}", good.name());

                let edited = reopened(&plan);
                assert_eq!(edited.archive().unwrap(), *members, "{}", good.name());
                let current = edited.kargs().map(|kargs| kargs.current().unwrap());
                let was = good.has_kargs().then_some(&default[..]);
                assert_eq!(current, line.or(was), "{}: {edit:?}", good.name());
                assert_eq!(edited.kargs().map(|kargs| kargs.default().unwrap()), was);
            }
        }
    }
}

#[test]
fn a_reset_restores_every_byte() {
    for good in good() {
        let (packed, _) = &ARCHIVES[1];
        let set = KargsEdit::Set("quiet".into());
        let kargs = good.has_kargs().then_some(&set);
        let edited = reopened(&good.open().plan(&edits(Some(packed), kargs)).unwrap());
        assert!(edited.require_pristine().is_err());
        let reset = good.has_kargs().then_some(&KargsEdit::Reset);
        let reset = edited.plan(&edits(Some(&[Packed::default()]), reset)).unwrap();
        assert_eq!(reset.sha256().unwrap(), Digest::of(&good.bytes), "{}", good.name());
    }
}

#[test]
fn images_without_kargs_refuse_to_edit_them() {
    for good in good().iter().filter(|good| !good.has_kargs()) {
        let refused = good.open().plan(&Edits::new().kargs(KargsEdit::Reset));
        assert!(matches!(refused, Err(Error::NoKargs { .. })), "{}", good.name());
    }
}

#[test]
fn what_fills_an_area_fits_and_one_byte_more_does_not() {
    for good in good() {
        let image = good.open();
        let capacity = good.truth.ignition.unwrap().len as usize;
        let plan = |len: usize| {
            let packed = Packed::from_encoded(vec![b'x'; len].into());
            image.plan_in_place(&Edits::new().archive(packed))
        };
        assert!(plan(capacity).is_ok());
        assert!(matches!(plan(capacity + 4), Err(Error::ArchiveTooLarge { .. })), "{}", good.name());
        if let Some(area) = good.truth.kargs.first() {
            let set = |len: usize| image.plan_in_place(&Edits::new().kargs(KargsEdit::Set("k".repeat(len))));
            let full = set(area.len as usize - 1).unwrap();
            assert_eq!(reopened(&full).kargs().unwrap().current().unwrap().len(), area.len as usize - 1);
            let refused = set(area.len as usize);
            assert!(
                matches!(refused, Err(Error::Kargs { reason: KargsError::TooLarge { .. }, .. })),
                "{}",
                good.name()
            );
        }
    }
}

#[test]
fn an_edit_in_place_is_the_edited_image() {
    let (packed, _) = &ARCHIVES[0];
    for good in few() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("image.iso");
        std::fs::write(&path, &good.bytes).unwrap();
        let image = BaseImage::open(&path).unwrap();
        let plan = image.plan(&edits(Some(packed), Some(&KargsEdit::Set("quiet".into())))).unwrap();
        let file = std::fs::OpenOptions::new().read(true).write(true).open(&path).unwrap();
        plan.write_in_place(&file, image.require_ignition_area().unwrap().extent).unwrap();
        assert!(
            std::fs::read(&path).unwrap() == overwritten(good, Some(packed), Some("quiet")),
            "{}",
            good.name()
        );
        plan.write_file(folder.path().join("copy.iso")).unwrap();
        assert!(std::fs::read(folder.path().join("copy.iso")).unwrap() == std::fs::read(&path).unwrap());
    }
}

#[test]
fn pxe_files_are_the_files_of_the_image() {
    for good in good() {
        let image = good.open();
        for file in image.pxe_files().unwrap() {
            let path = format!("images/pxeboot/{}", file.name);
            assert!(bytes_of(&file.plan) == good.file(&path), "{}: {path}", good.name());
        }
        assert!(bytes_of(&image.rootfs().unwrap()) == good.file("images/pxeboot/rootfs.img"));
        assert!(!image.kernel().unwrap().is_empty());
    }
}

#[test]
fn an_initrd_with_archives_behind_it_reads_back() {
    for good in good() {
        let image = good.open();
        let plain = good.file("images/pxeboot/initrd.img");
        let before = Archive::read(plain, Limits::INITRD).unwrap();
        assert!(before.get("etc/coreos-live-initramfs").is_some());
        for (packed, members) in ARCHIVES.iter() {
            let initrd = image.initrd(packed.clone()).unwrap();
            let mut expected = before.clone();
            members.iter().for_each(|(name, contents)| expected.insert(name, contents.clone()));
            assert_eq!(Archive::read(initrd.reader(), Limits::INITRD).unwrap(), expected, "{}", good.name());
            assert!(bytes_of(&initrd).starts_with(plain));
            assert_eq!(initrd.len() % 4, 0);
        }
        if let Ok(addrsize) = image.initrd_addrsize(0x0123_4567) {
            let [before, after] = [good.file("images/initrd.addrsize").to_vec(), bytes_of(&addrsize)];
            assert_eq!(after[..8], before[..8]);
            assert_eq!(after[8..], [0, 0, 0, 0, 1, 0x23, 0x45, 0x67]);
        }
    }
}

/// The mastered minimal image with its arguments overwritten, and where its copy of `kargs.json` stands.
fn minimal_expected(good: &Good, mastered: &[u8], line: &str) -> (Vec<u8>, std::ops::Range<usize>) {
    let mut copy = mastered.to_vec();
    let (end, pad) = good.end_and_pad();
    let mut filled = [line.as_bytes(), &[end]].concat();
    filled.resize(good.truth.kargs[0].len as usize, pad);
    let pattern = [good.recipe.default_kargs().as_bytes(), &[end], &[pad; 4]].concat();
    for at in places(mastered, &pattern) {
        // At the start of a sector stands no area, but the file `.cmdline` with the defaults of before.
        if at % 2048 != 0 {
            copy[at..at + filled.len()].copy_from_slice(&filled);
        }
    }
    let json = good.file("coreos/kargs.json");
    let at = places(mastered, json)[0];
    (copy, at..at + json.len())
}

fn places(bytes: &[u8], pattern: &[u8]) -> Vec<usize> {
    let windows = bytes.windows(pattern.len()).enumerate();
    windows.filter(|(_, window)| *window == pattern).map(|(at, _)| at).collect()
}

#[test]
fn the_minimal_image_is_the_mastered_one_without_its_label() {
    let with_kargs = good().iter().filter(|good| good.truth.minimal.is_some() && good.has_kargs());
    for good in with_kargs {
        let image = good.open();
        let truth = good.truth.minimal.as_ref().unwrap();
        let mastered = truth.image.to_vec();
        let description = image.minimal_description().unwrap();
        assert_eq!(description.digest.0, truth.digest);
        image.verify_minimal().unwrap();
        // A megabyte of it goes into every plan, and is there once.
        assert!(std::sync::Arc::ptr_eq(&description, &image.minimal_description().unwrap()));

        let label = format!("coreos.liveiso={} ", good.recipe.volume_id());
        let default = good.recipe.default_kargs().replace(&label, "");
        let url = "http://example.com/rootfs?a&b";
        let with_url = format!("{default} coreos.live.rootfs_url=\"{url}\"");
        for (url, line) in [(None, &default), (Some(url), &with_url)] {
            let plan = image.plan(&Edits::new().minimal(url)).unwrap();
            let opened = reopened(&plan);
            let kargs = opened.kargs().unwrap();
            assert_eq!(kargs.current().unwrap(), line, "{}", good.name());
            assert_eq!(kargs.default().unwrap(), default, "{}", good.name());
            assert!(opened.rootfs().is_err_and(|error| error.is_not_found()));
            let (mut expected, json) = minimal_expected(good, &mastered, line);
            let found = bytes_of(&plan);
            let mut description: Value = serde_json::from_slice(good.file("coreos/kargs.json")).unwrap();
            description["default"] = default.clone().into();
            assert_eq!(serde_json::from_slice::<Value>(&found[json.clone()]).unwrap(), description);
            expected[json.clone()].copy_from_slice(&found[json]);
            let differs = found.iter().zip(&expected).position(|(a, b)| a != b);
            assert!(found == expected, "{}: first difference at {differs:?}", good.name());
        }
    }
}

#[test]
fn a_minimal_image_of_a_customised_one_is_refused() {
    let with_minimal = good().iter().filter(|good| good.truth.minimal.is_some() && good.has_kargs());
    for good in with_minimal {
        let (packed, _) = &ARCHIVES[0];
        let edited = reopened(&good.open().plan(&edits(Some(packed), None)).unwrap());
        assert!(
            matches!(edited.plan(&Edits::new().minimal(None)), Err(Error::Customized { .. })),
            "{}",
            good.name()
        );
    }
}

/// A changed byte of a file that both images share shows in the digest.
#[test]
fn a_changed_shared_byte_fails_the_digest() {
    let with_minimal = few().iter().filter(|good| good.truth.minimal.is_some());
    for good in with_minimal {
        let mut bytes = good.bytes.to_vec();
        let extent = good.truth.files["images/pxeboot/initrd.img"];
        bytes[extent.offset as usize + 200] ^= 1;
        assert_ne!(slice(&bytes, extent), good.file("images/pxeboot/initrd.img"));
        let image = BaseImage::from_source(Source::from_bytes("changed", bytes)).unwrap();
        assert!(matches!(image.verify_minimal(), Err(Error::MinimalDigest { .. })), "{}", good.name());
    }
}

/// Arguments as people write them, with filler, quotes and letters of every length in them.
fn argument() -> impl Strategy<Value = String> {
    "[a-z.#=\"ä€𝄞]{1,12}"
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn random_edits_are_overwritten_areas_and_show_when_opened(
        members in vec(("[a-z]{1,8}(/[a-z]{1,8}){0,2}", vec(any::<u8>(), 0..2000)), 0..4),
        arguments in vec(argument(), 0..12),
        gzip in any::<bool>(),
    ) {
        let mut archive = Archive::new();
        members.into_iter().for_each(|(name, contents)| archive.insert(name, contents));
        let packed = [archive.pack(if gzip { Encoding::Gzip } else { Encoding::Stored }).unwrap()];
        let line = arguments.join(" ");
        for good in few() {
            let plan = good.open().plan(&edits(Some(&packed), Some(&KargsEdit::Set(line.clone())))).unwrap();
            prop_assert!(bytes_of(&plan) == overwritten(good, Some(&packed), Some(&line)), "{}", good.name());
            let edited = reopened(&plan);
            prop_assert_eq!(&edited.archive().unwrap(), &archive);
            prop_assert_eq!(edited.kargs().unwrap().current().unwrap(), &line);
            // Taking away what was appended gives the same bytes as never appending it.
            let operations = |append: &[&str], delete: &[&str]| KargsOperations {
                append: append.iter().map(ToString::to_string).collect(),
                delete: delete.iter().map(ToString::to_string).collect(),
                replace: Vec::new(),
            };
            let appended = edited.plan(&Edits::new().kargs(KargsEdit::Current(operations(&["UNIQUE"], &[])))).unwrap();
            let taken = operations(&[], &["UNIQUE"]);
            let restored = reopened(&appended).plan(&Edits::new().kargs(KargsEdit::Current(taken))).unwrap();
            prop_assert!(bytes_of(&restored) == bytes_of(&plan), "{}", good.name());
        }
    }
}
