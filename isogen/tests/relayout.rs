//! Re-layouts of every fixture image. This crate reads the results of every kind of change.

#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use std::sync::LazyLock;

use bytes::Bytes;
use fixtures::Recipe;
use isogen::plan::Patch;
use isogen::verify::CheckOutcome;
use isogen::volume::EntryKind;
use isogen::{
    Archive, BaseImage, Edits, Encoding, Error, Extent, FileContents, FileOperations, KargsEdit,
    KargsOperations, LayoutStrategy, PackedArchive, Plan, Segment, Source,
};

const URL: &str = "http://192.0.2.1/rootfs?arch=x86_64&version=4.20";

fn fixture_images() -> impl Iterator<Item = BaseImage> {
    static FIXTURES: LazyLock<Vec<(String, Bytes)>> =
        LazyLock::new(|| Recipe::all().map(|recipe| (recipe.file_name(), recipe.build().into())).collect());
    let open = |(name, bytes): &(String, Bytes)| Source::from_bytes(name.clone(), bytes.clone());
    FIXTURES.iter().map(move |fixture| BaseImage::from_source(open(fixture)).unwrap())
}

fn open_plan(plan: &Plan) -> BaseImage {
    BaseImage::from_source(Source::new("new".into(), plan.len(), plan.clone())).unwrap()
}

/// Opens a re-laid out image and asserts that it is valid.
fn open_and_verify(plan: &Plan, name: &str) -> BaseImage {
    let image = open_plan(plan);
    for check in image.verify().unwrap() {
        let ignored = check.name == "minimal iso" && image.volume().file("coreos/miniso.dat").is_some();
        assert!(ignored || !matches!(check.outcome, CheckOutcome::Wrong(_)), "{name}: {check:?}");
    }
    image
}

fn file_paths(image: &BaseImage) -> Vec<String> {
    let mut paths: Vec<String> = image.inspect().unwrap().files.into_iter().map(|file| file.path).collect();
    paths.sort();
    paths
}

fn file_contents(image: &BaseImage, path: &str) -> Vec<u8> {
    image.file(path).unwrap().read_all(1 << 30).unwrap()
}

/// Returns an archive that is longer than `len` in every compression.
fn large_archive(len: usize) -> Archive {
    let mut archive = Archive::new();
    archive.insert("config.ign", noise(len));
    archive
}

fn noise(len: usize) -> Vec<u8> {
    let mut state = 0x2545_F491_4F6C_DD1D_u64;
    let next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()[3]
    };
    std::iter::repeat_with(next).take(len).collect()
}

/// The strategy only compares lengths, while planning in place fills the areas. Both must have the same result.
#[test]
fn layout_strategy_is_in_place_if_and_only_if_edits_fit() {
    for image in fixture_images() {
        let mut edits = Vec::new();
        if let Some(area) = image.ignition_area() {
            let archive =
                |len: u64| PackedArchive::from_encoded(vec![b'0'; usize::try_from(len).unwrap()].into());
            edits.extend(
                [area.extent.len(), area.extent.len() + 4].map(|len| Edits::new().archive(archive(len))),
            );
        }
        if let Some(kargs) = image.kargs() {
            let set = |len: u64| KargsEdit::Set("k".repeat(usize::try_from(len).unwrap()));
            edits.extend([kargs.area_len() - 1, kargs.area_len()].map(|len| Edits::new().kargs(set(len))));
        }
        for pair in edits.chunks(2) {
            let strategies = pair.iter().map(|edits| image.layout_strategy(edits).unwrap());
            let in_place: Vec<bool> = strategies.map(|it| it == LayoutStrategy::InPlace).collect();
            assert_eq!(in_place, [true, false], "{}", image.source().name());
            let fits: Vec<bool> = pair.iter().map(|edits| image.plan_in_place(edits).is_ok()).collect();
            assert_eq!(fits, in_place, "{}", image.source().name());
        }
    }
}

#[test]
fn layout_strategy_rejects_edits_that_leave_an_interrupted_image_incomplete() {
    let image =
        fixture_images().find(|image| image.ignition_area().is_some() && image.kargs().is_some()).unwrap();
    let offset = image.ignition_area().unwrap().extent.offset();
    let marker = Segment::Bytes(Bytes::from_static(b"KINDLING EDIT WAS NOT COMPLETED\n"));
    let plan =
        Plan::from_source(image.source().clone()).patched(vec![Patch { offset, segment: marker }]).unwrap();
    let interrupted = open_plan(&plan);
    let edits =
        Edits::new().initrd_image("more.img", &PackedArchive::from_encoded(Bytes::from_static(b"more")));
    assert!(matches!(interrupted.layout_strategy(&edits), Err(Error::Interrupted { .. })));
    let complete = edits.archive(PackedArchive::default()).kargs(KargsEdit::Reset);
    assert!(matches!(interrupted.layout_strategy(&complete).unwrap(), LayoutStrategy::Relayout(_)));
}

#[test]
fn empty_list_of_operations_returns_the_base() {
    for image in fixture_images() {
        let plan = image.relayout(&FileOperations::new()).unwrap();
        assert_eq!(plan.layout().len(), 1);
        assert_eq!(plan.len(), image.source().len());
    }
}

#[test]
fn dropped_file_is_gone_and_others_are_unchanged() {
    for image in fixture_images() {
        let name = image.source().name().to_owned();
        let mut operations = FileOperations::new();
        operations.drop_file("images/pxeboot/rootfs.img");
        let new = open_and_verify(&image.relayout(&operations).unwrap(), &name);
        let mut expected = file_paths(&image);
        expected.retain(|path| path != "images/pxeboot/rootfs.img");
        assert_eq!(file_paths(&new), expected, "{name}");
        for path in expected.iter().filter(|path| new.volume().file(path).is_some()) {
            // The boot info table contains the position of its file, so it may change.
            assert!(file_contents(&new, path) == file_contents(&image, path), "{name}: {path}");
        }
    }
}

#[test]
fn dropped_and_re_added_file_reads_the_same() {
    for image in fixture_images() {
        let name = image.source().name().to_owned();
        let rootfs = file_contents(&image, "images/pxeboot/rootfs.img");
        let mut operations = FileOperations::new();
        operations.put_file("images/pxeboot/rootfs.img", FileContents::from(Bytes::from(rootfs.clone())));
        let new = open_and_verify(&image.relayout(&operations).unwrap(), &name);
        assert_eq!(file_paths(&new), file_paths(&image), "{name}");
        assert!(file_contents(&new, "images/pxeboot/rootfs.img") == rootfs, "{name}");
    }
}

/// The directory must move, so the references in its parent, its children and the path tables change.
#[test]
fn added_files_may_outgrow_their_directory() {
    for image in fixture_images() {
        let name = image.source().name().to_owned();
        let mut operations = FileOperations::new();
        for number in 0..60 {
            let contents =
                FileContents::new(vec![Segment::Bytes(vec![number; 10 + usize::from(number)].into())]);
            operations.put_file(format!("images/added_file_{number}.img"), contents);
        }
        let new = open_and_verify(&image.relayout(&operations).unwrap(), &name);
        assert_eq!(file_paths(&new).len(), file_paths(&image).len() + 60, "{name}");
        assert_eq!(file_contents(&new, "images/added_file_59.img"), vec![59; 69], "{name}");
        let kernel = |image: &BaseImage| image.kernel().unwrap().read_all(1 << 30).unwrap();
        assert!(kernel(&new) == kernel(&image), "{name}");
        if let (Some(tree), Some(joliet)) = (Some(new.volume().tree()), new.volume().joliet_tree()) {
            assert_eq!(
                tree.find("images/added_file_7.img").unwrap().extent,
                joliet.find("images/added_file_7.img").unwrap().extent
            );
        }
    }
}

#[test]
fn archive_of_any_size_fits() {
    for image in fixture_images().filter(|image| image.ignition_area().is_some()) {
        let name = image.source().name().to_owned();
        let archive = large_archive(700_000);
        let edits = Edits::new().archive(archive.pack(Encoding::Gzip).unwrap());
        assert!(matches!(image.layout_strategy(&edits).unwrap(), LayoutStrategy::Relayout(_)));
        let new = open_and_verify(&image.plan(&edits).unwrap(), &name);
        assert!(new.archive().unwrap() == archive, "{name}");
        assert_eq!(new.require_ignition_area().unwrap().extent.len(), 1 << 20, "{name}");
        // A re-laid out image can also be edited in place and reset.
        let reset = new.plan_in_place(&Edits::new().archive(Default::default())).unwrap();
        assert!(open_plan(&reset).archive().unwrap().is_empty());
    }
}

#[test]
fn kernel_arguments_may_be_longer_than_their_area() {
    for image in fixture_images().filter(|image| image.kargs().is_some()) {
        let name = image.source().name().to_owned();
        let long = format!("long={}", "x".repeat(1500));
        let operations = KargsOperations { append: vec![long.clone()], ..KargsOperations::default() };
        let edits = Edits::new().kargs(KargsEdit::Current(operations));
        if image.architecture() == Some(isogen::Architecture::S390x) {
            assert!(image.plan(&edits).is_err(), "{name}");
            continue;
        }
        let new = open_and_verify(&image.plan(&edits).unwrap(), &name);
        assert!(new.kargs().unwrap().current().unwrap().ends_with(&long), "{name}");
        assert_eq!(
            new.kargs().unwrap().default().unwrap(),
            image.kargs().unwrap().default().unwrap(),
            "{name}"
        );
    }
}

/// The text that boot loaders add counts towards the 2046 bytes that all of them pass on completely.
#[test]
fn kernel_arguments_are_limited_by_boot_loaders() {
    let is_s390x = |image: &BaseImage| image.architecture() == Some(isogen::Architecture::S390x);
    let more = large_archive(1).pack(Encoding::Stored).unwrap();
    for image in fixture_images().filter(|image| image.kargs().is_some() && !is_s390x(image)) {
        let name = image.source().name().to_owned();
        let isolinux = image.volume().file("isolinux/isolinux.cfg").is_some();
        for (edits, added) in
            [(Edits::new(), ""), (Edits::new().initrd_image("more.img", &more), ",/images/more.img")]
        {
            let initrds = format!("initrd=/images/pxeboot/initrd.img,/images/ignition.img{added} ");
            let initrds = if isolinux { initrds.len() } else { 0 };
            let longest = 2046 - "BOOT_IMAGE=/images/pxeboot/vmlinuz ".len() - initrds;
            let plan = |len| image.plan(&edits.clone().kargs(KargsEdit::Set("x".repeat(len))));
            let new = open_and_verify(&plan(longest).unwrap(), &name);
            assert_eq!(new.kargs().unwrap().current().unwrap().len(), longest, "{name}");
            assert!(plan(longest + 1).unwrap_err().to_string().contains("too large"), "{name}");
            // A later edit does not have more space either.
            let later = Edits::new().kargs(KargsEdit::Set("x".repeat(longest + 1)));
            assert!(new.plan(&later).is_err(), "{name}");
        }
    }
}

/// A volume with only 8.3 names has the description under another name. The re-layout must not add a second
/// description.
#[test]
fn grown_kargs_description_is_found_by_its_short_name() {
    let is_described = |image: &BaseImage| image.volume().file("coreos/kargs.json").is_some();
    let image =
        fixture_images().find(|image| image.volume().joliet().is_none() && is_described(image)).unwrap();
    let mut bytes = image.source().read_extent(Extent::from_start(image.source().len())).unwrap();
    for (_, entry) in image.volume().tree().entries().filter(|(_, entry)| entry.kind == EntryKind::Directory)
    {
        let directory = &mut bytes[usize::try_from(entry.extent.offset()).unwrap()..][..2048];
        let names: Vec<usize> = directory
            .windows(4)
            .enumerate()
            .filter(|(_, it)| is_rock_ridge_entry(it))
            .map(|(at, _)| at)
            .collect();
        names.into_iter().for_each(|at| directory[at..at + 2].fill(b'X'));
    }
    let image = BaseImage::from_source(Source::from_bytes("short", bytes)).unwrap();
    assert!(file_paths(&image).contains(&"COREOS/KARGS.JSO".to_owned()));
    let long = "x".repeat(1500);
    let new =
        open_and_verify(&image.plan(&Edits::new().kargs(KargsEdit::Set(long.clone()))).unwrap(), "short");
    assert_eq!(new.kargs().unwrap().current().unwrap(), long);
    let mut expected = file_paths(&image);
    expected.retain(|path| path != "COREOS/MINISO.DAT");
    assert_eq!(file_paths(&new), expected);
}

/// Returns `true` if these bytes start an entry with a name or with a file's mode.
fn is_rock_ridge_entry(entry: &[u8]) -> bool {
    matches!(entry, [b'N', b'M', _, 1] | [b'P', b'X', 36 | 44, 1])
}

/// An area at its maximum length shrinks if a boot loader must put more text before it.
#[test]
fn added_initrd_image_takes_space_from_the_kernel_arguments() {
    let image =
        fixture_images().find(|image| image.source().name().contains("41.20241215.3.0-live.x86_64")).unwrap();
    let grown = open_plan(&image.plan(&Edits::new().kargs(KargsEdit::Set("x".repeat(1500)))).unwrap());
    let more = large_archive(1).pack(Encoding::Stored).unwrap();
    let new = open_and_verify(&grown.plan(&Edits::new().initrd_image("more.img", &more)).unwrap(), "more");
    let len = |image: &BaseImage| image.kargs().unwrap().area_len();
    assert_eq!(len(&grown) - len(&new), ",/images/more.img".len() as u64);
    assert_eq!(new.kargs().unwrap().current().unwrap(), "x".repeat(1500));
}

#[test]
fn minimal_iso_accepts_extra_initrd_images() {
    for image in fixture_images().filter(|image| image.kargs().is_some()) {
        let name = image.source().name().to_owned();
        let network = large_archive(5000).pack(Encoding::Stored).unwrap();
        let edits = Edits::new().minimal(Some(URL)).initrd_image("network.img", &network);
        let new = open_and_verify(&image.plan(&edits).unwrap(), &name);
        assert!(new.volume().file("images/pxeboot/rootfs.img").is_none(), "{name}");
        let kargs = new.kargs().unwrap();
        let current = kargs.current().unwrap();
        assert!(current.ends_with(&format!("coreos.live.rootfs_url=\"{URL}\"")), "{name}: {current}");
        assert!(!current.contains("coreos.liveiso"), "{name}");
        assert!(!kargs.default().unwrap().contains("coreos.live"), "{name}");
        if image.architecture() == Some(isogen::Architecture::S390x) {
            assert_eq!(new.archive().unwrap(), large_archive(5000), "{name}");
        } else {
            assert!(file_contents(&new, "images/network.img") == **network.as_bytes(), "{name}");
            for area in new.inspect().unwrap().kargs.unwrap().areas {
                let config = String::from_utf8(file_contents(&new, &area.file.unwrap())).unwrap();
                assert!(config.contains("/images/network.img"), "{name}");
            }
        }
    }
}

#[test]
fn layout_strategies_of_minimal_isos_agree() {
    for image in fixture_images().filter(|image| image.kargs().is_some()) {
        let name = image.source().name().to_owned();
        let edits = Edits::new().minimal(Some(URL));
        let described = image.layout_strategy(&edits).unwrap() == LayoutStrategy::DescribedMinimal;
        assert_eq!(described, image.volume().file("coreos/miniso.dat").is_some(), "{name}");
        let new = open_and_verify(&image.plan(&edits).unwrap(), &name);
        assert!(new.volume().file("images/pxeboot/rootfs.img").is_none(), "{name}");
        assert!(new.kargs().unwrap().current().unwrap().contains(URL), "{name}");
        let default = new.kargs().unwrap().default().unwrap();
        assert!(!default.contains("coreos.live"), "{name}: {default}");
    }
}

/// A URL that does not fit into the areas needs a re-layout, even if the image describes its minimal ISO.
#[test]
fn long_url_is_accepted() {
    for image in fixture_images().filter(|image| image.kargs().is_some()) {
        let name = image.source().name().to_owned();
        let url = format!("http://192.0.2.1/{}", "x".repeat(1500));
        let edits = Edits::new().minimal(Some(&url));
        if image.architecture() == Some(isogen::Architecture::S390x) {
            let error = image.plan(&edits).unwrap_err().to_string();
            assert!(error.contains("kargs too large for area"), "{name}: {error}");
            continue;
        }
        let reason = "the kernel arguments are longer than their areas";
        assert_eq!(image.layout_strategy(&edits).unwrap(), LayoutStrategy::Relayout(reason), "{name}");
        let new = open_and_verify(&image.plan(&edits).unwrap(), &name);
        assert!(new.kargs().unwrap().current().unwrap().ends_with(&url), "{name}");
        assert_eq!(new.inspect().unwrap().relayout_reason.as_deref(), Some(reason), "{name}");
    }
}

/// The header of a 2021 image must remain as correct as its description.
#[test]
fn headers_and_descriptions_agree_on_kernel_arguments() {
    let header = Extent::new(32_672, 8).unwrap();
    let has_header = |image: &BaseImage| image.source().read_extent(header).unwrap() == b"coreKarg";
    for image in fixture_images().filter(has_header) {
        let name = image.source().name().to_owned();
        let append = vec![format!("long={}", "x".repeat(1500))];
        let operations = KargsOperations { append, ..KargsOperations::default() };
        let more = large_archive(100).pack(Encoding::Stored).unwrap();
        let edits = [
            Edits::new().kargs(KargsEdit::Current(operations)),
            Edits::new().minimal(Some(URL)).initrd_image("more.img", &more),
            Edits::new().archive(large_archive(700_000).pack(Encoding::Stored).unwrap()),
        ];
        for edits in edits {
            let new = open_and_verify(&image.plan(&edits).unwrap(), &name);
            let mut undescribed = FileOperations::new();
            if new.volume().file("coreos/kargs.json").is_some() {
                undescribed.drop_file("coreos/kargs.json");
            }
            let by_header = open_plan(&new.relayout(&undescribed).unwrap());
            let origin = by_header.inspect().unwrap().kargs.unwrap().origin;
            assert_eq!(origin, isogen::kargs::KargsOrigin::Header, "{name}");
            let (new, by_header) = (new.kargs().unwrap(), by_header.kargs().unwrap());
            assert_eq!(by_header.current().unwrap(), new.current().unwrap(), "{name}");
            assert_eq!(by_header.default().unwrap(), new.default().unwrap(), "{name}");
            assert_eq!(by_header.area_len(), new.area_len(), "{name}");
        }
    }
}

#[test]
fn images_of_one_size_class_share_their_prefix() {
    for image in fixture_images().filter(|image| image.ignition_area().is_some()) {
        let plan = |len| {
            let archive = large_archive(len).pack(Encoding::Stored).unwrap();
            image.plan(&Edits::new().archive(archive)).unwrap()
        };
        let (one, other) = (plan(600_000), plan(900_000));
        assert_eq!(one.len(), other.len());
        let differing = one.layout().iter().zip(other.layout()).position(|(a, b)| a != b).unwrap();
        let at = one.layout()[differing].start;
        let area = open_plan(&one).require_ignition_area().unwrap().extent;
        assert_eq!(at, area.offset(), "{}", image.source().name());
    }
}

/// If extra initrds share the Ignition area, the old contents of the area are kept.
#[test]
fn added_initrd_image_keeps_the_embed_area() {
    for image in fixture_images().filter(|image| image.kargs().is_some()) {
        let name = image.source().name().to_owned();
        let archive = large_archive(3000);
        let customised =
            open_plan(&image.plan(&Edits::new().archive(archive.pack(Encoding::Gzip).unwrap())).unwrap());
        let mut more = Archive::new();
        more.insert("more", &b"more"[..]);
        let edits = Edits::new().initrd_image("more.img", &more.pack(Encoding::Stored).unwrap());
        let new = open_and_verify(&customised.plan(&edits).unwrap(), &name).archive().unwrap();
        assert_eq!(new.get("config.ign"), archive.get("config.ign"), "{name}");
    }
}
