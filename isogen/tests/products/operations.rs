//! Any set of file operations results in the expected files, for this crate and for other readers.

use std::collections::{BTreeMap, BTreeSet};

use isogen::volume::{DirectoryTree, EntryKind, TreeEntry};
use isogen::{BaseImage, FileOperations, Plan, Source};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;

use crate::images::diverse_images;
use crate::product::{ImageFile, assert_same_files, read_files};
use crate::readers::{are_installed, clear_sectors_of_empty_files, list_tree, parse_isoinfo, text_lines};
use crate::relayout_kinds::{file_contents, incompressible_bytes, open_plan, resolve_plan};

/// Returns `true` for files that must remain. Without them, an image is not a base image, or firmware cannot boot it.
fn is_needed(path: &str) -> bool {
    let ends =
        [".cfg", ".json", "boot.cat", "boot.catalog", "ignition.img", "isolinux.bin", "boot.img", ".cmdline"];
    ends.iter().any(|end| path.ends_with(end)) || path.starts_with("images/pxeboot/")
}

/// Generates file lengths near the limits at which a file needs another sector.
fn file_len() -> impl Strategy<Value = usize> {
    prop_oneof![Just(0), 1..40_usize, 2046..2051_usize, 4000..9000_usize]
}

/// A random operation. The indices select from the files of an image.
#[derive(Debug, Clone)]
enum RandomOperation {
    Drop(Index),
    Replace(Index, usize),
    /// Contains a directory, a name and a length.
    Add(Index, String, usize),
    /// Adds this number of files to one directory. Their names share their first letters.
    AddMany(Index, usize),
}

fn random_operation() -> impl Strategy<Value = RandomOperation> {
    let name = "[a-zA-Z0-9_.]?[a-zA-Z0-9 _+,=.-]{0,70}[a-zA-Z0-9]";
    // The maximum length of a Joliet name.
    let long = "[a-z]{90}[A-Z]{8}[.][a-z]{3}";
    prop_oneof![
        2 => any::<Index>().prop_map(RandomOperation::Drop),
        2 => (any::<Index>(), file_len()).prop_map(|(file, len)| RandomOperation::Replace(file, len)),
        4 => (any::<Index>(), name, file_len()).prop_map(|(folder, name, len)| RandomOperation::Add(folder, name, len)),
        1 => (any::<Index>(), long, file_len()).prop_map(|(folder, name, len)| RandomOperation::Add(folder, name, len)),
        1 => (any::<Index>(), 1..40_usize).prop_map(|(folder, count)| RandomOperation::AddMany(folder, count)),
    ]
}

type FilesByPath = BTreeMap<String, Vec<u8>>;

/// Returns the operations and the files that they must result in.
fn apply_operations(image: &BaseImage, list: &[RandomOperation]) -> (FileOperations, FilesByPath) {
    let tree = image.volume().tree();
    let mut expected = read_files(image, tree);
    let free: Vec<String> = expected.keys().filter(|path| !is_needed(path)).cloned().collect();
    let directories: Vec<String> = tree
        .entries()
        .filter(|(_, entry)| entry.kind == EntryKind::Directory)
        .map(|(id, _)| tree.path(id))
        .collect();
    let mut operations = FileOperations::new();
    let mut put_file = |expected: &mut FilesByPath, path: String, len: usize| {
        operations.put_file(path.clone(), file_contents(incompressible_bytes(len)));
        expected.insert(path, incompressible_bytes(len));
    };
    let mut dropped = BTreeSet::new();
    for operation in list {
        match operation {
            RandomOperation::Drop(file) => drop(dropped.insert(free[file.index(free.len())].clone())),
            RandomOperation::Replace(file, len) => {
                put_file(&mut expected, free[file.index(free.len())].clone(), *len)
            }
            RandomOperation::Add(folder, name, len) => {
                let folder = &directories[folder.index(directories.len())];
                let path = format!("{folder}/{name}").trim_start_matches('/').to_owned();
                // The base image has lower-case names, and lookups ignore case.
                let exists =
                    |path: &str| free.iter().chain(expected.keys()).any(|it| it.eq_ignore_ascii_case(path));
                if !exists(&path) && name.trim_matches('.') == name && tree.find(&path).is_none() {
                    put_file(&mut expected, path, *len);
                }
            }
            RandomOperation::AddMany(folder, count) => {
                let folder = &directories[folder.index(directories.len())];
                for number in 0..*count {
                    let path = format!("{folder}/one of many files {number}.nmconnection");
                    put_file(&mut expected, path.trim_start_matches('/').to_owned(), number);
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

/// Checks that ISO names are unique in their directory and sorted, and have the 8.3 form of the base image's names.
fn assert_iso_names(tree: &DirectoryTree, joliet: bool) {
    for (id, _) in tree.entries().filter(|(_, entry)| entry.kind == EntryKind::Directory) {
        let names: Vec<&[u8]> = tree.children(id).map(|(_, entry)| &entry.record.name[..]).collect();
        assert!(names.is_sorted(), "{}", tree.path(id));
        assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), names.len(), "{}", tree.path(id));
        for (_, entry) in tree.children(id).filter(|_| !joliet) {
            let (stem, extension) = entry.iso_name.rsplit_once('.').unwrap_or((&entry.iso_name, ""));
            let is_iso_text = |part: &str| {
                part.bytes().all(|it| it.is_ascii_uppercase() || it.is_ascii_digit() || it == b'_')
            };
            assert!(stem.len() <= 8 && extension.len() <= 3, "{}", entry.iso_name);
            assert!(!stem.is_empty() && is_iso_text(extension), "{}", entry.iso_name);
        }
    }
}

/// Compares the expected files with the files that every reader finds.
fn assert_files(plan: &Plan, expected: &FilesByPath, oracles: bool) {
    let image = open_plan(plan, "changed.iso");
    let trees = [Some(image.volume().tree()), image.volume().joliet_tree()];
    for (tree, joliet) in trees.into_iter().zip([false, true]).filter_map(|(tree, it)| Some((tree?, it))) {
        assert_same_files(&read_files(&image, tree), expected, if joliet { "Joliet" } else { "Rock Ridge" });
        assert_iso_names(tree, joliet);
        if !oracles {
            continue;
        }
        let file = ImageFile::new(plan);
        let read = if joliet { "norock" } else { "any" };
        let strict = ["xorriso", "-return_with", "WARNING", "32", "-osirrox", "on", "-read_fs", read];
        file.run(&[&strict[..], &["-indev", ImageFile::NAME, "-extract", "/", "extracted"]].concat());
        assert_same_files(&file.take_files("extracted"), expected, "xorriso");
        let names = if joliet { "-J" } else { "-R" };
        let mut theirs =
            parse_isoinfo(&text_lines(&file.run(&["isoinfo", names, "-l", "-i", ImageFile::NAME])));
        let mut ours = list_tree(tree);
        clear_sectors_of_empty_files(&mut theirs);
        clear_sectors_of_empty_files(&mut ours);
        assert_eq!(theirs, ours);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn random_operations_result_in_the_expected_files(list in vec(random_operation(), 1..12), base in any::<Index>()) {
        static ORACLES: std::sync::LazyLock<bool> = std::sync::LazyLock::new(|| are_installed(&["xorriso", "isoinfo"]));
        let images = diverse_images();
        let image = images[base.index(images.len())].open();
        let (operations, expected) = apply_operations(&image, &list);
        let plan = image.relayout(&operations).unwrap();
        assert_files(&plan, &expected, *ORACLES);
        // Change the product again, here back to the original except for the order of files.
        let product = open_plan(&plan, "changed.iso");
        let before = read_files(&image, image.volume().tree());
        let mut back = FileOperations::new();
        expected.keys().filter(|path| !before.contains_key(*path)).for_each(|path| back.drop_file(path));
        let changed = before.iter().filter(|(path, bytes)| expected.get(*path) != Some(bytes));
        changed.for_each(|(path, bytes)| back.put_file(path, file_contents(bytes.clone())));
        assert_files(&resolve_plan(&product.relayout(&back).unwrap(), &plan), &before, false);
    }
}

#[test]
fn no_operations_keep_every_byte_of_the_base() {
    for fixture in diverse_images() {
        let plan = fixture.open().relayout(&FileOperations::new()).unwrap();
        assert!(plan.read_all(64 << 20).unwrap() == fixture.bytes, "{}", fixture.name());
        assert!(plan.changes_in_place().unwrap().is_empty());
    }
}

#[test]
fn dropped_and_re_added_file_reads_the_same() {
    for fixture in diverse_images() {
        let image = fixture.open();
        let before = read_files(&image, image.volume().tree());
        for path in before.keys().filter(|path| !is_needed(path)) {
            let mut operations = FileOperations::new();
            operations.drop_file(path);
            let without = image.relayout(&operations).unwrap();
            let mut expected = before.clone();
            expected.remove(path);
            assert_files(&without, &expected, false);
            let mut operations = FileOperations::new();
            operations.put_file(path, file_contents(before[path].clone()));
            let back = open_plan(&without, "without.iso").relayout(&operations).unwrap();
            assert_files(&resolve_plan(&back, &without), &before, false);
        }
    }
}

/// Files whose names agree in the first eight letters are different files.
#[test]
fn similar_names_are_different_files() {
    for fixture in diverse_images() {
        let image = fixture.open();
        let mut operations = FileOperations::new();
        let names =
            ["images/IGNITION-second.IMG", "images/ignition_2.image", "vmlinuz.old", ".hidden", "a.b.c"];
        names.into_iter().for_each(|name| operations.put_file(name, file_contents(name.into())));
        let mut expected = read_files(&image, image.volume().tree());
        expected.extend(names.map(|name| (name.to_owned(), name.into())));
        assert_files(
            &image.relayout(&operations).unwrap(),
            &expected,
            are_installed(&["xorriso", "isoinfo"]),
        );
    }
}

/// A caller may write the name of a file in the form that `coreos-installer` uses.
#[test]
fn iso_names_are_case_insensitive() {
    for fixture in
        diverse_images().iter().filter(|fixture| fixture.mastered.files.contains_key("coreos/features.json"))
    {
        let mut operations = FileOperations::new();
        operations.put_file("//COREOS/./FEATURES.JSO", file_contents(b"{}".into()));
        let image = fixture.open();
        let mut expected = read_files(&image, image.volume().tree());
        expected.insert("coreos/features.json".to_owned(), b"{}".into());
        assert_files(&image.relayout(&operations).unwrap(), &expected, false);
    }
}

/// After boot images are replaced, all references lead to the new boot images, and the boot info table of isolinux is
/// correct.
#[test]
fn boot_images_may_be_replaced() {
    for fixture in crate::images::all_images() {
        let image = fixture.open();
        let boots: Vec<String> = ["isolinux/isolinux.bin", "images/efiboot.img", "images/cdboot.img"]
            .into_iter()
            .filter(|path| image.boot_catalog().is_some() && image.volume().file(path).is_some())
            .map(str::to_owned)
            .collect();
        for path in &boots {
            let old = fixture.file(path);
            let longer = [old, &incompressible_bytes(9001)].concat();
            for new in [longer, old[..old.len() / 2 + 3].to_vec()] {
                // Skip shorter boot images on s390x, because the boot image must contain the embed areas.
                if path == "images/cdboot.img" && (new.len() < old.len() || image.ignition_area().is_none()) {
                    continue;
                }
                let mut operations = FileOperations::new();
                operations.put_file(path, file_contents(new.clone()));
                let plan = image.relayout(&operations).unwrap();
                let product = open_plan(&plan, &fixture.name());
                let name = format!("{}: {path}", fixture.name());
                assert_verified(&product, &name);
                let mut actual = product.file(path).unwrap().read_all(1 << 20).unwrap();
                let table = if path.ends_with("isolinux.bin") { 8..64 } else { 0..0 };
                actual[table.clone()].copy_from_slice(&new[table]);
                assert!(actual == new, "{name}");
                assert_boot_references(&product, path, &name);
            }
        }
    }
}

fn assert_verified(image: &BaseImage, name: &str) {
    for check in image.verify().unwrap().into_iter().filter(|check| check.name != "minimal iso") {
        // No check may fail, not even for an s390x boot image with bytes appended after its area.
        assert!(!matches!(check.outcome, isogen::verify::CheckOutcome::Wrong(_)), "{name}: {check:?}");
    }
}

/// Asserts that the catalogue loads the whole file or, for isolinux, its first 2 KiB, and that partitions refer to the
/// file.
fn assert_boot_references(image: &BaseImage, path: &str, name: &str) {
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

/// Other mastering tools record the exact length of a directory instead of whole sectors.
#[test]
fn directory_of_odd_length_may_grow() {
    let fixture = diverse_images().iter().find(|fixture| fixture.name().contains("ppc64le")).unwrap();
    let image = fixture.open();
    let tree = image.volume().tree();
    let (id, directory) = tree.entries().find(|(id, _)| tree.path(*id) == "images").unwrap();
    let mut bytes = fixture.bytes.to_vec();
    // The first record of a directory is its own record, and the second is the record of its parent.
    let own = |entry: &TreeEntry| usize::try_from(entry.extent.offset()).unwrap();
    let parent = |entry: &TreeEntry| own(entry) + usize::from(fixture.bytes[own(entry)]);
    let dots = [own(directory), parent(directory)].map(|at| u64::from(fixture.bytes[at]));
    let records = tree.children(id).map(|(_, entry)| u64::from(entry.record.len));
    let exact = dots.into_iter().chain(records).sum::<u64>();
    let children = tree.children(id).filter(|(_, entry)| entry.kind == EntryKind::Directory);
    let in_parent = usize::try_from(directory.record.position).unwrap();
    let records = [in_parent, own(directory)].into_iter().chain(children.map(|(_, entry)| parent(entry)));
    for record in records {
        let at = record + 10;
        let exact = u32::try_from(exact).unwrap();
        bytes[at..at + 8].copy_from_slice(&[exact.to_le_bytes(), exact.to_be_bytes()].concat());
    }
    let odd = BaseImage::from_source(Source::from_bytes("odd.iso", bytes)).unwrap();
    assert_eq!(odd.volume().tree().find("images").unwrap().extent.len(), exact);
    let mut operations = FileOperations::new();
    operations.put_file("images/more.img", file_contents(incompressible_bytes(10)));
    let mut expected = read_files(&image, tree);
    expected.insert("images/more.img".to_owned(), incompressible_bytes(10));
    assert_files(&odd.relayout(&operations).unwrap(), &expected, are_installed(&["xorriso", "isoinfo"]));
}
