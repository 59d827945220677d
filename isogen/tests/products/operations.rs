//! Any set of file operations gives the files that it says, to this crate and to others.

use std::collections::{BTreeMap, BTreeSet};

use isogen::volume::{Kind, Tree};
use isogen::{BaseImage, FileOperations, Plan, Source};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;

use crate::images::few;
use crate::made::{contents, noise, open};
use crate::product::{Written, assert_same_files, files};
use crate::readers::{have, isoinfo, lines, ours, without_empty};

/// What is not to be dropped or replaced: an image without it is no live image, or firmware starts it.
fn is_needed(path: &str) -> bool {
    let ends =
        [".cfg", ".json", "boot.cat", "boot.catalog", "ignition.img", "isolinux.bin", "boot.img", ".cmdline"];
    ends.iter().any(|end| path.ends_with(end)) || path.starts_with("images/pxeboot/")
}

/// Lengths around those at which a file takes another sector.
fn len() -> impl Strategy<Value = usize> {
    prop_oneof![Just(0), 1..40_usize, 2046..2051_usize, 4000..9000_usize]
}

/// One thing to do; indices choose among what an image has.
#[derive(Debug, Clone)]
enum Operation {
    Drop(Index),
    Replace(Index, usize),
    /// A directory, a name and a length.
    Add(Index, String, usize),
    /// So many files in one directory, whose names agree in their first letters.
    AddMany(Index, usize),
}

fn operation() -> impl Strategy<Value = Operation> {
    let name = "[a-zA-Z0-9_.]?[a-zA-Z0-9 _+,=.-]{0,70}[a-zA-Z0-9]";
    // As long as Joliet takes.
    let long = "[a-z]{90}[A-Z]{8}[.][a-z]{3}";
    prop_oneof![
        2 => any::<Index>().prop_map(Operation::Drop),
        2 => (any::<Index>(), len()).prop_map(|(file, len)| Operation::Replace(file, len)),
        4 => (any::<Index>(), name, len()).prop_map(|(folder, name, len)| Operation::Add(folder, name, len)),
        1 => (any::<Index>(), long, len()).prop_map(|(folder, name, len)| Operation::Add(folder, name, len)),
        1 => (any::<Index>(), 1..40_usize).prop_map(|(folder, count)| Operation::AddMany(folder, count)),
    ]
}

/// Files by path.
type Files = BTreeMap<String, Vec<u8>>;

/// The operations, and what comes of them.
fn applied(image: &BaseImage, list: &[Operation]) -> (FileOperations, Files) {
    let tree = image.volume().tree();
    let mut expected = files(image, tree);
    let free: Vec<String> = expected.keys().filter(|path| !is_needed(path)).cloned().collect();
    let directories: Vec<String> = tree
        .entries()
        .filter(|(_, entry)| entry.kind == Kind::Directory)
        .map(|(id, _)| tree.path(id))
        .collect();
    let mut operations = FileOperations::new();
    let mut put = |expected: &mut Files, path: String, len: usize| {
        operations.put_file(path.clone(), contents(noise(len)));
        expected.insert(path, noise(len));
    };
    let mut dropped = BTreeSet::new();
    for operation in list {
        match operation {
            Operation::Drop(file) => drop(dropped.insert(free[file.index(free.len())].clone())),
            Operation::Replace(file, len) => put(&mut expected, free[file.index(free.len())].clone(), *len),
            Operation::Add(folder, name, len) => {
                let folder = &directories[folder.index(directories.len())];
                let path = format!("{folder}/{name}").trim_start_matches('/').to_owned();
                // The base spells its own names in lower case, and looks them up in any.
                let known =
                    |path: &str| free.iter().chain(expected.keys()).any(|it| it.eq_ignore_ascii_case(path));
                if !known(&path) && name.trim_matches('.') == name && tree.find(&path).is_none() {
                    put(&mut expected, path, *len);
                }
            }
            Operation::AddMany(folder, count) => {
                let folder = &directories[folder.index(directories.len())];
                for number in 0..*count {
                    let path = format!("{folder}/one of many files {number}.nmconnection");
                    put(&mut expected, path.trim_start_matches('/').to_owned(), number);
                }
            }
        }
    }
    for path in dropped {
        expected.remove(&path);
        operations.drop_file(path);
    }
    (operations, expected)
}

/// ISO names: each of them once in its directory, in order, and 8.3 as those of the base are.
fn assert_iso_names(tree: &Tree, joliet: bool) {
    for (id, _) in tree.entries().filter(|(_, entry)| entry.kind == Kind::Directory) {
        let names: Vec<&[u8]> = tree.children(id).map(|(_, entry)| &entry.record.name[..]).collect();
        assert!(names.is_sorted(), "{}", tree.path(id));
        assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), names.len(), "{}", tree.path(id));
        for (_, entry) in tree.children(id).filter(|_| !joliet) {
            let (stem, extension) = entry.iso_name.rsplit_once('.').unwrap_or((&entry.iso_name, ""));
            let known = |part: &str| {
                part.bytes().all(|it| it.is_ascii_uppercase() || it.is_ascii_digit() || it == b'_')
            };
            assert!(stem.len() <= 8 && extension.len() <= 3, "{}", entry.iso_name);
            assert!(!stem.is_empty() && known(extension), "{}", entry.iso_name);
        }
    }
}

/// Compares what everybody reads with what should be there.
fn assert_files(plan: &Plan, expected: &Files, oracles: bool) {
    let image = open(plan, "changed.iso");
    let trees = [Some(image.volume().tree()), image.volume().joliet_tree()];
    for (tree, joliet) in trees.into_iter().zip([false, true]).filter_map(|(tree, it)| Some((tree?, it))) {
        assert_same_files(&files(&image, tree), expected, if joliet { "Joliet" } else { "Rock Ridge" });
        assert_iso_names(tree, joliet);
        if !oracles {
            continue;
        }
        let written = Written::new(plan);
        let read = if joliet { "norock" } else { "any" };
        let strict = ["xorriso", "-return_with", "WARNING", "32", "-osirrox", "on", "-read_fs", read];
        written.run(&[&strict[..], &["-indev", Written::NAME, "-extract", "/", "extracted"]].concat());
        assert_same_files(&written.take_files("extracted"), expected, "xorriso");
        let names = if joliet { "-J" } else { "-R" };
        let mut theirs = isoinfo(&lines(&written.run(&["isoinfo", names, "-l", "-i", Written::NAME])));
        let mut ours = ours(tree);
        without_empty(&mut theirs);
        without_empty(&mut ours);
        assert_eq!(theirs, ours);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_operations_give_the_files_that_they_say(list in vec(operation(), 1..12), base in any::<Index>()) {
        static ORACLES: std::sync::LazyLock<bool> = std::sync::LazyLock::new(|| have(&["xorriso", "isoinfo"]));
        let few = few();
        let image = few[base.index(few.len())].open();
        let (operations, expected) = applied(&image, &list);
        let plan = image.relayout(&operations).unwrap();
        assert_files(&plan, &expected, *ORACLES);
        // What was made can be changed again, here back to what it was, but for the order of files.
        let made = open(&plan, "changed.iso");
        let before = files(&image, image.volume().tree());
        let mut back = FileOperations::new();
        expected.keys().filter(|path| !before.contains_key(*path)).for_each(|path| back.drop_file(path));
        let changed = before.iter().filter(|(path, bytes)| expected.get(*path) != Some(bytes));
        changed.for_each(|(path, bytes)| back.put_file(path, contents(bytes.clone())));
        assert_files(&made.relayout(&back).unwrap().resolved(&plan), &before, false);
    }
}

#[test]
fn no_operations_are_every_byte_of_the_base() {
    for good in few() {
        let plan = good.open().relayout(&FileOperations::new()).unwrap();
        assert!(plan.read_all(64 << 20).unwrap() == good.bytes, "{}", good.name());
        assert!(plan.changes_in_place().unwrap().is_empty());
    }
}

#[test]
fn what_is_dropped_and_added_back_reads_the_same() {
    for good in few() {
        let image = good.open();
        let before = files(&image, image.volume().tree());
        for path in before.keys().filter(|path| !is_needed(path)) {
            let mut operations = FileOperations::new();
            operations.drop_file(path);
            let without = image.relayout(&operations).unwrap();
            let mut expected = before.clone();
            expected.remove(path);
            assert_files(&without, &expected, false);
            let mut operations = FileOperations::new();
            operations.put_file(path, contents(before[path].clone()));
            let back = open(&without, "without.iso").relayout(&operations).unwrap().resolved(&without);
            assert_files(&back, &before, false);
        }
    }
}

/// A name that agrees with another one in its first eight letters is another name.
#[test]
fn a_similar_name_is_a_file_of_its_own() {
    for good in few() {
        let image = good.open();
        let mut operations = FileOperations::new();
        let names =
            ["images/IGNITION-second.IMG", "images/ignition_2.image", "vmlinuz.old", ".hidden", "a.b.c"];
        names.into_iter().for_each(|name| operations.put_file(name, contents(name.into())));
        let mut expected = files(&image, image.volume().tree());
        expected.extend(names.map(|name| (name.to_owned(), name.into())));
        assert_files(&image.relayout(&operations).unwrap(), &expected, have(&["xorriso", "isoinfo"]));
    }
}

/// The name of a file may be spelt as `coreos-installer` spells it.
#[test]
fn a_file_is_found_by_its_iso_name_in_any_case() {
    for good in few().iter().filter(|good| good.truth.files.contains_key("coreos/features.json")) {
        let mut operations = FileOperations::new();
        operations.put_file("//COREOS/./FEATURES.JSO", contents(b"{}".into()));
        let image = good.open();
        let mut expected = files(&image, image.volume().tree());
        expected.insert("coreos/features.json".to_owned(), b"{}".into());
        assert_files(&image.relayout(&operations).unwrap(), &expected, false);
    }
}

/// Boot images that are replaced: what names them follows, and what isolinux knows of itself is true again.
#[test]
fn boot_images_may_be_replaced() {
    for good in crate::images::all() {
        let image = good.open();
        let boots: Vec<String> = ["isolinux/isolinux.bin", "images/efiboot.img", "images/cdboot.img"]
            .into_iter()
            .filter(|path| image.boot_catalog().is_some() && image.volume().file(path).is_some())
            .map(str::to_owned)
            .collect();
        for path in &boots {
            let old = good.file(path);
            let longer = [old, &noise(9001)].concat();
            for new in [longer, old[..old.len() / 2 + 3].to_vec()] {
                // The areas of s390x are in its boot image, which has to have them.
                if path == "images/cdboot.img" && (new.len() < old.len() || image.ignition_area().is_none()) {
                    continue;
                }
                let mut operations = FileOperations::new();
                operations.put_file(path, contents(new.clone()));
                let plan = image.relayout(&operations).unwrap();
                let made = open(&plan, &good.name());
                let name = format!("{}: {path}", good.name());
                assert_sound(&made, &name);
                let mut found = made.file(path).unwrap().read_all(1 << 20).unwrap();
                let table = if path.ends_with("isolinux.bin") { 8..64 } else { 0..0 };
                found[table.clone()].copy_from_slice(&new[table]);
                assert!(found == new, "{name}");
                assert_loaded(&made, path, &name);
            }
        }
    }
}

fn assert_sound(image: &BaseImage, name: &str) {
    for check in image.verify().unwrap().into_iter().filter(|check| check.name != "minimal iso") {
        // What was appended to an s390x boot image is behind its area.
        assert!(!matches!(check.outcome, isogen::verify::Outcome::Wrong(_)), "{name}: {check:?}");
    }
}

/// The catalogue loads the whole file or, of isolinux, its first 2 KiB; partitions are where it is.
fn assert_loaded(image: &BaseImage, path: &str, name: &str) {
    let file = image.require_file(path).unwrap();
    let catalog = image.boot_catalog().unwrap();
    let entry = catalog.entries.iter().find(|entry| entry.sector == file.record.sector).unwrap();
    let whole = u64::from(entry.load_count) == file.extent.len().div_ceil(2048) * 4;
    assert!(whole || (path.ends_with("isolinux.bin") && entry.load_count == 4), "{name}: {entry:?}");
    let first = u64::from(entry.sector.0) * 4;
    let tables = image.partitions();
    if path.ends_with("efiboot.img") {
        for partition in tables.gpt.iter().flat_map(|gpt| &gpt.partitions).filter(|it| it.number == 2) {
            assert_eq!(
                (partition.first, partition.last + 1),
                (first, first + u64::from(entry.load_count)),
                "{name}"
            );
        }
        for partition in tables.mbr.iter().flat_map(|mbr| &mbr.partitions).filter(|it| it.number == 2) {
            assert_eq!(
                (u64::from(partition.start), partition.count),
                (first, entry.load_count.into()),
                "{name}"
            );
        }
        assert_eq!(tables.gpt.is_some(), tables.mbr.is_some(), "{name}");
    } else if let Some(mbr) = tables.mbr.as_ref().filter(|_| path.ends_with("isolinux.bin")) {
        assert_eq!(u64::from(mbr.boot_sector), first, "{name}");
    }
}

/// Other makers record the exact number of bytes of a directory instead of whole sectors.
#[test]
fn a_directory_of_odd_length_may_grow() {
    let good = few().iter().find(|good| good.name().contains("ppc64le")).unwrap();
    let image = good.open();
    let tree = image.volume().tree();
    let id = tree.find_id("images").unwrap();
    let exact: u64 =
        tree.entry(id).unwrap().directory.iter().flat_map(|it| &it.dots).map(|it| u64::from(it.len)).sum();
    let exact = exact + tree.children(id).map(|(_, entry)| u64::from(entry.record.len)).sum::<u64>();
    let mut bytes = good.bytes.to_vec();
    let dots = tree.entry(id).unwrap().directory.as_ref().unwrap().dots.iter().take(1);
    let children = tree.children(id).filter_map(|(_, entry)| entry.directory.as_ref()).map(|it| &it.dots[1]);
    for record in std::iter::once(&tree.entry(id).unwrap().record).chain(dots).chain(children) {
        let at = usize::try_from(record.position).unwrap() + 10;
        let exact = u32::try_from(exact).unwrap();
        bytes[at..at + 8].copy_from_slice(&[exact.to_le_bytes(), exact.to_be_bytes()].concat());
    }
    let odd = BaseImage::from_source(Source::from_bytes("odd.iso", bytes)).unwrap();
    assert_eq!(odd.volume().tree().find("images").unwrap().extent.len(), exact);
    let mut operations = FileOperations::new();
    operations.put_file("images/more.img", contents(noise(10)));
    let mut expected = files(&image, tree);
    expected.insert("images/more.img".to_owned(), noise(10));
    assert_files(&odd.relayout(&operations).unwrap(), &expected, have(&["xorriso", "isoinfo"]));
}
