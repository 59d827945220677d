//! Compares this crate with programs that share no code with it: `cpio`, `xz` and `gzip` for packed archives;
//! `xorriso`, `isoinfo` and the `iso9660` crate for written images.
//!
//! If a program is missing, its tests print a notice and are skipped. With `KINDLING_REQUIRE_TOOLS=1` they fail
//! instead.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "test code over its own images and archives"
)]

mod images;
mod readers;

use std::collections::BTreeMap;
use std::fs::File;
use std::path::Path;

use images::{FixtureImage, images_with_ignition_area};
use isogen::volume::EntryKind;
use isogen::{Archive, BaseImage, Edits, Encoding, KargsEdit, Plan};
use readers::{
    are_installed, clear_sectors_of_empty_files, list_tree, parse_isoinfo, parse_xorriso,
    read_with_iso9660_crate, run_program, text_lines,
};

/// Returns an archive with names like the names of configs and network settings. The contents have every length up to a
/// multiple of four and beyond.
fn sample_archive() -> Archive {
    let mut archive = Archive::new();
    let names =
        ["config.ign", "a/b", "a/c d", "a-/x", "etc/coreos-firstboot-network/ä.nmconnection", "z/y/x/w/v"];
    for (number, name) in names.into_iter().enumerate() {
        archive.insert(name, name.repeat(number * 1000 + number).into_bytes());
    }
    archive.insert("empty", &b""[..]);
    archive
}

/// Decodes an encoded archive with the real decoder. Returns the file with the plain cpio archive.
fn decode_archive(folder: &Path, encoding: Encoding, encoded: &Path) -> std::path::PathBuf {
    let decoder = match encoding {
        Encoding::Xz => Some(["xz", "-dc"]),
        Encoding::Gzip => Some(["gzip", "-dc"]),
        _ => None,
    };
    let Some(decoder) = decoder else { return encoded.to_owned() };
    let plain = folder.join("plain.cpio");
    std::fs::write(&plain, run_program(folder, Some(encoded), &decoder)).unwrap();
    plain
}

#[test]
fn cpio_extracts_packed_archives() {
    if !are_installed(&["cpio", "xz", "gzip"]) {
        return;
    }
    let archive = sample_archive();
    for encoding in [Encoding::Xz, Encoding::Gzip, Encoding::Stored] {
        let folder = tempfile::tempdir().unwrap();
        let encoded = folder.path().join("encoded");
        std::fs::write(&encoded, archive.pack(encoding).unwrap().as_bytes()).unwrap();
        let plain = decode_archive(folder.path(), encoding, &encoded);

        let listed = text_lines(&run_program(folder.path(), Some(&plain), &["cpio", "-it", "--quiet"]));
        let directories = ["a", "a-", "etc", "etc/coreos-firstboot-network", "z", "z/y", "z/y/x", "z/y/x/w"];
        let mut expected: Vec<&str> = archive.iter().map(|(name, _)| name).chain(directories).collect();
        expected.sort_unstable();
        let mut sorted = listed.clone();
        sorted.sort_unstable();
        assert_eq!(sorted, expected, "{encoding:?}");
        // The kernel skips a file if its folder has not come before it.
        let place = |name: &str| listed.iter().position(|listed| listed == name);
        for name in &listed {
            let parent = name.rsplit_once('/').map(|(parent, _)| parent);
            assert!(parent.is_none_or(|parent| place(parent) < place(name)), "{encoding:?}: {name}");
        }

        let extracted = folder.path().join("extracted");
        std::fs::create_dir(&extracted).unwrap();
        run_program(&extracted, Some(&plain), &["cpio", "-i", "--quiet", "--make-directories"]);
        for (name, contents) in archive.iter() {
            assert!(std::fs::read(extracted.join(name)).unwrap() == contents[..], "{encoding:?}: {name}");
        }
    }
}

/// An image with a config and kernel arguments, in a file.
struct EditedImage {
    folder: tempfile::TempDir,
    plan: Plan,
}

impl EditedImage {
    fn new(fixture: &FixtureImage) -> Self {
        let image = fixture.open();
        let mut edits = Edits::new().archive(sample_archive().pack(Encoding::Gzip).unwrap());
        if fixture.has_kargs() {
            edits = edits.kargs(KargsEdit::Set("quiet".into()));
        }
        let plan = image.plan(&edits).unwrap();
        Self::from_plan(plan)
    }

    fn from_plan(plan: Plan) -> Self {
        let folder = tempfile::tempdir().unwrap();
        plan.write_file(folder.path().join("image.iso")).unwrap();
        Self { folder, plan }
    }

    fn run(&self, command: &[&str]) -> Vec<u8> {
        run_program(self.folder.path(), None, command)
    }

    fn open(&self) -> BaseImage {
        BaseImage::open(self.folder.path().join("image.iso")).unwrap()
    }
}

#[test]
fn isoinfo_lists_edited_images_as_this_crate_does() {
    if !are_installed(&["isoinfo"]) {
        return;
    }
    for fixture in images_with_ignition_area() {
        let edited = EditedImage::new(fixture);
        let theirs = parse_isoinfo(&text_lines(&edited.run(&["isoinfo", "-R", "-l", "-i", "image.iso"])));
        let image = edited.open();
        let mut ours = list_tree(image.volume().tree());
        let mut theirs = theirs;
        clear_sectors_of_empty_files(&mut ours);
        clear_sectors_of_empty_files(&mut theirs);
        assert_eq!(theirs, ours, "{}", fixture.name());
        assert!(theirs.len() > 10);
    }
}

#[test]
fn xorriso_lists_edited_images_as_this_crate_does() {
    if !are_installed(&["xorriso"]) {
        return;
    }
    for fixture in images_with_ignition_area() {
        let edited = EditedImage::new(fixture);
        let command = ["xorriso", "-indev", "image.iso", "-find", "/", "-exec", "lsdl", "--"];
        let theirs = parse_xorriso(&text_lines(&edited.run(&command)));
        let ours = list_tree(edited.open().volume().tree());
        let lengths = ours.into_iter().map(|(path, data)| (path, data.map(|(len, _)| len)));
        assert_eq!(theirs, lengths.collect(), "{}", fixture.name());
    }
}

/// Images of other architectures may have the file that is the boot configuration of ppc64le.
#[test]
fn image_with_a_boot_catalog_and_grub_files_is_not_for_ppc64le() {
    if !are_installed(&["xorriso"]) {
        return;
    }
    let mut checked = 0;
    for fixture in images_with_ignition_area() {
        let original = fixture.open();
        if original.boot_catalog().is_none() {
            continue;
        }
        checked += 1;
        let edited = EditedImage::new(fixture);
        let copy = ["xorriso", "-indev", "image.iso", "-outdev", "grub.iso", "-boot_image", "any", "keep"];
        let add = ["-map", "/etc/hostname", "/boot/grub/grub.cfg"];
        edited.run(&[&copy[..], &add[..]].concat());
        let copied = BaseImage::open(edited.folder.path().join("grub.iso")).unwrap();
        assert!(copied.volume().tree().find("boot/grub/grub.cfg").is_some(), "{}", fixture.name());
        assert_eq!(copied.architecture(), original.architecture(), "{}", fixture.name());
    }
    assert!(checked > 0, "no fixture has a boot catalog");
}

/// Tests the complete path of a config: this crate writes it to the area, and other programs extract it.
#[test]
fn xorriso_xz_and_cpio_find_the_config_of_an_edited_image() {
    if !are_installed(&["xorriso", "xz", "cpio"]) {
        return;
    }
    let config = br#"{"ignition":{"version":"3.3.0"}}"#;
    let mut archive = Archive::new();
    archive.insert("config.ign", &config[..]);
    let packed = archive.pack(Encoding::Xz).unwrap();
    // Test only images in which the area is a whole file. On s390x, the area is a part of a larger file.
    for fixture in images_with_ignition_area()
        .iter()
        .filter(|fixture| fixture.mastered.files.contains_key("images/ignition.img"))
    {
        let edited =
            EditedImage::from_plan(fixture.open().plan(&Edits::new().archive(packed.clone())).unwrap());
        let extract = ["-extract", "/images/ignition.img", "area"];
        edited.run(&[&["xorriso", "-osirrox", "on", "-indev", "image.iso"], &extract[..]].concat());
        let folder = edited.folder.path();
        let plain = decode_archive(folder, Encoding::Xz, &folder.join("area"));
        let extracted =
            run_program(folder, Some(&plain), &["cpio", "-i", "--quiet", "--to-stdout", "config.ign"]);
        assert_eq!(extracted, config, "{}", fixture.name());
    }
}

/// The re-laid out images have an added file, a dropped file, and changed sizes and partition tables.
#[test]
fn isoinfo_and_xorriso_list_re_laid_out_images_alike() {
    if !are_installed(&["isoinfo", "xorriso"]) {
        return;
    }
    // Images of early 2021 have a header that this crate cannot update when a config changes its length.
    let described = |fixture: &&FixtureImage| fixture.mastered.files.contains_key("coreos/kargs.json");
    for fixture in images_with_ignition_area().iter().filter(described) {
        let more = sample_archive().pack(Encoding::Gzip).unwrap();
        let edits = Edits::new().minimal(Some("http://example.com/rootfs")).initrd_image("more.img", &more);
        let edited = EditedImage::from_plan(fixture.open().plan(&edits).unwrap());
        let mut ours = list_tree(edited.open().volume().tree());
        let mut theirs = parse_isoinfo(&text_lines(&edited.run(&["isoinfo", "-R", "-l", "-i", "image.iso"])));
        let command = ["xorriso", "-indev", "image.iso", "-find", "/", "-exec", "lsdl", "--"];
        let lengths = ours.iter().map(|(path, data)| (path.clone(), data.map(|(len, _)| len)));
        assert_eq!(
            parse_xorriso(&text_lines(&edited.run(&command))),
            lengths.collect(),
            "{}",
            fixture.name()
        );
        clear_sectors_of_empty_files(&mut ours);
        clear_sectors_of_empty_files(&mut theirs);
        assert_eq!(theirs, ours, "{}", fixture.name());
        assert!(!ours.keys().any(|path| path.ends_with("rootfs.img")), "{}", fixture.name());

        let (theirs, ours) = read_with_both(&edited);
        assert!(theirs == ours, "{}", fixture.name());
    }
}

#[test]
fn isoinfo_and_xorriso_list_minimal_images_alike() {
    if !are_installed(&["isoinfo", "xorriso"]) {
        return;
    }
    for fixture in images_with_ignition_area()
        .iter()
        .filter(|fixture| fixture.mastered.minimal.is_some() && fixture.has_kargs())
    {
        let edited = EditedImage::from_plan(fixture.open().plan(&Edits::new().minimal(None)).unwrap());
        let ours: Vec<_> = list_tree(edited.open().volume().tree()).into_keys().collect();
        let theirs = parse_isoinfo(&text_lines(&edited.run(&["isoinfo", "-R", "-l", "-i", "image.iso"])));
        assert_eq!(theirs.into_keys().collect::<Vec<_>>(), ours, "{}", fixture.name());
        let command = ["xorriso", "-indev", "image.iso", "-find", "/", "-exec", "lsdl", "--"];
        let theirs = parse_xorriso(&text_lines(&edited.run(&command)));
        assert_eq!(theirs.into_keys().collect::<Vec<_>>(), ours, "{}", fixture.name());
        assert!(!ours.iter().any(|path| path.ends_with("rootfs.img")));
    }
}

/// Reads the files of an image by ISO path, with the other crate and with this crate.
fn read_with_both(edited: &EditedImage) -> (BTreeMap<String, Vec<u8>>, BTreeMap<String, Vec<u8>>) {
    let file = File::open(edited.folder.path().join("image.iso")).unwrap();
    let mut theirs = BTreeMap::new();
    read_with_iso9660_crate(&iso9660::ISO9660::new(file).unwrap().root, "", &mut theirs);

    let image = edited.open();
    let tree = image.volume().tree();
    let files = tree.entries().filter(|(_, entry)| entry.kind != EntryKind::Directory);
    let ours = files.map(|(id, entry)| {
        let mut contents = vec![0; usize::try_from(entry.extent.len()).unwrap()];
        edited.plan.read_at(&mut contents, entry.extent.offset()).unwrap();
        (tree.iso_path(id), contents)
    });
    (theirs, ours.collect())
}

#[test]
fn iso9660_crate_finds_the_same_files_in_edited_images() {
    for fixture in images_with_ignition_area() {
        let (theirs, ours) = read_with_both(&EditedImage::new(fixture));
        let names = |files: &BTreeMap<String, Vec<u8>>| files.keys().cloned().collect::<Vec<_>>();
        assert_eq!(names(&theirs), names(&ours), "{}", fixture.name());
        let differ = ours.iter().find(|(path, contents)| theirs[*path] != **contents);
        assert_eq!(differ.map(|(path, _)| path), None, "{}", fixture.name());
    }
}
