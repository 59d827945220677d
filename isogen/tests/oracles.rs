//! Asks programs that share no code with this crate: `cpio`, `xz` and `gzip` about the archives that it packs; `xorriso`,
//! `isoinfo` and the `iso9660` crate about the images that its plans write.
//!
//! A missing program is reported and skipped, unless `KINDLING_REQUIRE_TOOLS=1` makes that a failure.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "test code over images and archives of its own"
)]

mod images;
mod readers;

use std::collections::BTreeMap;
use std::fs::File;
use std::path::Path;

use images::{Good, good};
use isogen::{Archive, BaseImage, Edits, Encoding, KargsEdit, Plan};
use readers::{have, isoinfo, lines, ours, read_by_other_crate, run, without_empty, xorriso};

/// Names as configs and network settings have them, contents of every length up to a multiple of four and beyond.
fn sample() -> Archive {
    let mut archive = Archive::new();
    let names =
        ["config.ign", "a/b", "a/c d", "a-/x", "etc/coreos-firstboot-network/ä.nmconnection", "z/y/x/w/v"];
    for (number, name) in names.into_iter().enumerate() {
        archive.insert(name, name.repeat(number * 1000 + number).into_bytes());
    }
    archive.insert("empty", &b""[..]);
    archive
}

/// The plain cpio archive in an encoded one, as the real decoder gives it.
fn unpacked(folder: &Path, encoding: Encoding, encoded: &Path) -> std::path::PathBuf {
    let decoder = match encoding {
        Encoding::Xz => Some(["xz", "-dc"]),
        Encoding::Gzip => Some(["gzip", "-dc"]),
        _ => None,
    };
    let Some(decoder) = decoder else { return encoded.to_owned() };
    let plain = folder.join("plain.cpio");
    std::fs::write(&plain, run(folder, Some(encoded), &decoder)).unwrap();
    plain
}

#[test]
fn cpio_extracts_what_was_packed() {
    if !have(&["cpio", "xz", "gzip"]) {
        return;
    }
    let archive = sample();
    for encoding in [Encoding::Xz, Encoding::Gzip, Encoding::Stored] {
        let folder = tempfile::tempdir().unwrap();
        let encoded = folder.path().join("encoded");
        std::fs::write(&encoded, archive.pack(encoding).unwrap().as_bytes()).unwrap();
        let plain = unpacked(folder.path(), encoding, &encoded);

        let listed = lines(&run(folder.path(), Some(&plain), &["cpio", "-it", "--quiet"]));
        let directories = ["a", "a-", "etc", "etc/coreos-firstboot-network", "z", "z/y", "z/y/x", "z/y/x/w"];
        let mut expected: Vec<&str> = archive.iter().map(|(name, _)| name).chain(directories).collect();
        expected.sort_unstable();
        let mut sorted = listed.clone();
        sorted.sort_unstable();
        assert_eq!(sorted, expected, "{encoding:?}");
        // The kernel leaves out a file whose folder it has not met yet.
        let place = |name: &str| listed.iter().position(|listed| listed == name);
        for name in &listed {
            let parent = name.rsplit_once('/').map(|(parent, _)| parent);
            assert!(parent.is_none_or(|parent| place(parent) < place(name)), "{encoding:?}: {name}");
        }

        let extracted = folder.path().join("extracted");
        std::fs::create_dir(&extracted).unwrap();
        run(&extracted, Some(&plain), &["cpio", "-i", "--quiet", "--make-directories"]);
        for (name, contents) in archive.iter() {
            assert!(std::fs::read(extracted.join(name)).unwrap() == contents[..], "{encoding:?}: {name}");
        }
    }
}

/// An image with a config and kernel arguments, written to a file.
struct Edited {
    folder: tempfile::TempDir,
    plan: Plan,
}

impl Edited {
    fn new(good: &Good) -> Self {
        let image = good.open();
        let mut edits = Edits::new().archive(sample().pack(Encoding::Gzip).unwrap());
        if good.has_kargs() {
            edits = edits.kargs(KargsEdit::Set("quiet".into()));
        }
        let plan = image.plan(&edits).unwrap();
        Self::written(plan)
    }

    fn written(plan: Plan) -> Self {
        let folder = tempfile::tempdir().unwrap();
        plan.write_file(folder.path().join("image.iso")).unwrap();
        Self { folder, plan }
    }

    fn run(&self, command: &[&str]) -> Vec<u8> {
        run(self.folder.path(), None, command)
    }

    fn open(&self) -> BaseImage {
        BaseImage::open(self.folder.path().join("image.iso")).unwrap()
    }
}

#[test]
fn isoinfo_lists_edited_images_as_this_crate_does() {
    if !have(&["isoinfo"]) {
        return;
    }
    for good in good() {
        let edited = Edited::new(good);
        let theirs = isoinfo(&lines(&edited.run(&["isoinfo", "-R", "-l", "-i", "image.iso"])));
        let image = edited.open();
        let mut ours = ours(image.volume().tree());
        let mut theirs = theirs;
        without_empty(&mut ours);
        without_empty(&mut theirs);
        assert_eq!(theirs, ours, "{}", good.name());
        assert!(theirs.len() > 10);
    }
}

#[test]
fn xorriso_lists_edited_images_as_this_crate_does() {
    if !have(&["xorriso"]) {
        return;
    }
    for good in good() {
        let edited = Edited::new(good);
        let command = ["xorriso", "-indev", "image.iso", "-find", "/", "-exec", "lsdl", "--"];
        let theirs = xorriso(&lines(&edited.run(&command)));
        let ours = ours(edited.open().volume().tree());
        let lengths = ours.into_iter().map(|(path, data)| (path, data.map(|(len, _)| len)));
        assert_eq!(theirs, lengths.collect(), "{}", good.name());
    }
}

/// The whole way that a config takes: into the area, out through somebody else's programs.
#[test]
fn xorriso_xz_and_cpio_find_the_config_of_an_edited_image() {
    if !have(&["xorriso", "xz", "cpio"]) {
        return;
    }
    let config = br#"{"ignition":{"version":"3.3.0"}}"#;
    let mut archive = Archive::new();
    archive.insert("config.ign", &config[..]);
    let packed = archive.pack(Encoding::Xz).unwrap();
    // On s390x the area is a part of a larger file.
    for good in good().iter().filter(|good| good.truth.files.contains_key("images/ignition.img")) {
        let edited = Edited::written(good.open().plan(&Edits::new().archive(packed.clone())).unwrap());
        let extract = ["-extract", "/images/ignition.img", "area"];
        edited.run(&[&["xorriso", "-osirrox", "on", "-indev", "image.iso"], &extract[..]].concat());
        let folder = edited.folder.path();
        let plain = unpacked(folder, Encoding::Xz, &folder.join("area"));
        let found = run(folder, Some(&plain), &["cpio", "-i", "--quiet", "--to-stdout", "config.ign"]);
        assert_eq!(found, config, "{}", good.name());
    }
}

/// Images laid out anew: a file added, a file dropped, sizes and partition tables changed.
#[test]
fn images_laid_out_anew_are_listed_alike() {
    if !have(&["isoinfo", "xorriso"]) {
        return;
    }
    // Those of early 2021 have a header that cannot follow when a config changes its length.
    let described = |good: &&Good| good.truth.files.contains_key("coreos/kargs.json");
    for good in good().iter().filter(described) {
        let more = sample().pack(Encoding::Gzip).unwrap();
        let edits = Edits::new().minimal(Some("http://example.com/rootfs")).initrd_image("more.img", &more);
        let edited = Edited::written(good.open().plan(&edits).unwrap());
        let mut ours = ours(edited.open().volume().tree());
        let mut theirs = isoinfo(&lines(&edited.run(&["isoinfo", "-R", "-l", "-i", "image.iso"])));
        let command = ["xorriso", "-indev", "image.iso", "-find", "/", "-exec", "lsdl", "--"];
        let lengths = ours.iter().map(|(path, data)| (path.clone(), data.map(|(len, _)| len)));
        assert_eq!(xorriso(&lines(&edited.run(&command))), lengths.collect(), "{}", good.name());
        without_empty(&mut ours);
        without_empty(&mut theirs);
        assert_eq!(theirs, ours, "{}", good.name());
        assert!(!ours.keys().any(|path| path.ends_with("rootfs.img")), "{}", good.name());

        let (theirs, ours) = read_twice(&edited);
        assert!(theirs == ours, "{}", good.name());
    }
}

#[test]
fn minimal_images_are_listed_alike() {
    if !have(&["isoinfo", "xorriso"]) {
        return;
    }
    for good in good().iter().filter(|good| good.truth.minimal.is_some() && good.has_kargs()) {
        let edited = Edited::written(good.open().plan(&Edits::new().minimal(None)).unwrap());
        let ours: Vec<_> = ours(edited.open().volume().tree()).into_keys().collect();
        let theirs = isoinfo(&lines(&edited.run(&["isoinfo", "-R", "-l", "-i", "image.iso"])));
        assert_eq!(theirs.into_keys().collect::<Vec<_>>(), ours, "{}", good.name());
        let command = ["xorriso", "-indev", "image.iso", "-find", "/", "-exec", "lsdl", "--"];
        let theirs = xorriso(&lines(&edited.run(&command)));
        assert_eq!(theirs.into_keys().collect::<Vec<_>>(), ours, "{}", good.name());
        assert!(!ours.iter().any(|path| path.ends_with("rootfs.img")));
    }
}

/// The files of an image by ISO path, as the other crate reads them and as this one does.
fn read_twice(edited: &Edited) -> (BTreeMap<String, Vec<u8>>, BTreeMap<String, Vec<u8>>) {
    let file = File::open(edited.folder.path().join("image.iso")).unwrap();
    let mut theirs = BTreeMap::new();
    read_by_other_crate(&iso9660::ISO9660::new(file).unwrap().root, "", &mut theirs);

    let image = edited.open();
    let tree = image.volume().tree();
    let files = tree.entries().filter(|(_, entry)| entry.directory.is_none());
    let ours = files.map(|(id, entry)| {
        let mut contents = vec![0; usize::try_from(entry.extent.len()).unwrap()];
        edited.plan.read_at(&mut contents, entry.extent.offset()).unwrap();
        (tree.iso_path(id), contents)
    });
    (theirs, ours.collect())
}

#[test]
fn another_reader_finds_the_same_files_in_edited_images() {
    for good in good() {
        let (theirs, ours) = read_twice(&Edited::new(good));
        let names = |files: &BTreeMap<String, Vec<u8>>| files.keys().cloned().collect::<Vec<_>>();
        assert_eq!(names(&theirs), names(&ours), "{}", good.name());
        let differ = ours.iter().find(|(path, contents)| theirs[*path] != **contents);
        assert_eq!(differ.map(|(path, _)| path), None, "{}", good.name());
    }
}
