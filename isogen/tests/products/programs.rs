//! Checks every product with programs that share no code with this crate.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::path::Path;
use std::process::Command;

use crate::product::{ImageFile, RelayoutProduct, assert_same_files, check_each_product, read_files};
use crate::readers::{
    are_installed, clear_sectors_of_empty_files, list_tree, parse_isoinfo, parse_xorriso,
    read_with_iso9660_crate, text_lines,
};

/// Loads an image with xorriso and returns the report. xorriso must not print a warning.
fn xorriso_report(image: &ImageFile, more: &[&str]) -> Vec<String> {
    let strict = ["xorriso", "-return_with", "WARNING", "32", "-osirrox", "on"];
    text_lines(&image.run(&[&strict[..], more].concat()))
}

#[test]
fn xorriso_reads_and_extracts_both_trees() {
    if !are_installed(&["xorriso"]) {
        return;
    }
    check_each_product(|product| {
        let (written, image) = (ImageFile::new(&product.plan), product.open());
        let load =
            ["-indev", ImageFile::NAME, "-find", "/", "-exec", "lsdl", "--", "-extract", "/", "extracted"];
        let listed = parse_xorriso(&xorriso_report(&written, &load));
        let tree = image.volume().tree();
        let lengths = list_tree(tree).into_iter().map(|(path, data)| (path, data.map(|(len, _)| len)));
        assert_eq!(listed, lengths.collect(), "{}", product.name());
        assert_same_files(&written.take_files("extracted"), &read_files(&image, tree), &product.name());

        let Some(joliet) = image.volume().joliet_tree() else { return };
        let load = ["-read_fs", "norock", "-indev", ImageFile::NAME, "-extract", "/", "extracted"];
        xorriso_report(&written, &load);
        assert_same_files(&written.take_files("extracted"), &read_files(&image, joliet), &product.name());
    });
}

/// Reads the whole medium, like a drive.
#[test]
fn every_block_is_read() {
    if !are_installed(&["xorriso"]) {
        return;
    }
    check_each_product(|product| {
        let image = ImageFile::new(&product.plan);
        let report = xorriso_report(&image, &["-indev", ImageFile::NAME, "-check_media", "--"]);
        let regions: Vec<&String> = report.iter().filter(|line| line.starts_with("Media region")).collect();
        let sectors = product.open().volume().primary().space_size.to_string();
        let is_good = |line: &&&String| line.contains("+ good") && line.contains(&format!(" {sectors} ,"));
        assert_eq!(regions.iter().filter(is_good).count(), 1, "{}: {report:?}", product.name());
        // After the volume, the image contains only structures for disks.
        let is_good_or_empty = |line: &&String| line.contains("+ good") || line.contains("0 untested");
        assert!(regions.iter().all(is_good_or_empty), "{}: {report:?}", product.name());
    });
}

/// The fields of report lines, by subject. An example of a subject is `El Torito boot img : 1`.
type BootReport = BTreeMap<String, Vec<String>>;

fn boot_report(image: &ImageFile) -> BootReport {
    let load = ["-indev", ImageFile::NAME, "-report_el_torito", "plain", "-report_system_area", "plain"];
    let mut report = BootReport::new();
    for line in xorriso_report(image, &load) {
        let Some((what, fields)) = line.split_once(':') else { continue };
        let mut fields: Vec<String> = fields.split_whitespace().map(str::to_owned).collect();
        let numbered = fields.first().is_some_and(|first| first.parse::<u8>().is_ok()) && fields.len() > 1;
        let number = if numbered { fields.remove(0) } else { String::new() };
        report.insert(format!("{} {number}", what.trim()), fields);
    }
    report
}

/// Returns `true` for subjects of report lines with positions and sizes, which may differ and have their own checks.
/// (xorriso derives the number of heads from the address of the last sector, which does not always determine it.)
fn contains_position(what: &str) -> bool {
    const POSITION_LINES: [&str; 6] = [
        "El Torito boot img",
        "ISO image size/512",
        "MBR partition ",
        "GPT lba range",
        "GPT start and size",
        "MBR heads per cyl",
    ];
    POSITION_LINES.iter().any(|place| what.starts_with(place))
}

/// xorriso reports the same boot catalogue and partition tables as for the base image, except for an Apple partition
/// map, which is removed. The positions refer to the same boot images.
#[test]
fn boot_structures_match_the_base() {
    if !are_installed(&["xorriso"]) {
        return;
    }
    check_each_product(|product| {
        let name = product.name();
        let base = ImageFile::from_bytes(&product.fixture.bytes);
        let (before, after) = (boot_report(&base), boot_report(&ImageFile::new(&product.plan)));
        let has_apple = before.keys().any(|what| what.starts_with("APM"));
        let same = |report: &BootReport| -> BootReport {
            let about = |what: &str| {
                what.starts_with("El Torito") || what.starts_with("MBR") || what.starts_with("GPT")
            };
            let lines = report.iter().filter(|(what, _)| about(what) && !contains_position(what));
            lines.map(|(what, fields)| (what.clone(), fields.clone())).collect()
        };
        assert_eq!(same(&after), same(&before), "{name}");
        assert!(!after.keys().any(|what| what.starts_with("APM")), "{name}");
        if !has_apple {
            assert_eq!(after.get("System area summary "), before.get("System area summary "), "{name}");
        }
        assert_boot_images(product, &before, &after);
        assert_partitions(product, &before, &after);
    });
}

/// Asserts that the boot images start where the files with the same names start, and that unchanged boot images are
/// loaded as before.
fn assert_boot_images(product: &RelayoutProduct, before: &BootReport, after: &BootReport) {
    let image = product.open();
    let entries = |report: &BootReport| -> Vec<(String, Vec<String>)> {
        let entries = report.iter().filter(|(what, _)| what.starts_with("El Torito boot img"));
        entries.map(|(what, fields)| (what.replace("boot img", "img path"), fields.clone())).collect()
    };
    let (old, new) = (entries(before), entries(after));
    assert_eq!(old.len(), new.len());
    for ((path, old), (_, new)) in old.into_iter().zip(new) {
        let path = after[&path][0].trim_start_matches('/');
        let [old_file, file] = [&product.base, &image].map(|image| image.require_file(path).unwrap());
        assert_eq!(new[6], file.record.sector.to_string(), "{}: {path}", product.name());
        // The fields are platform, activity, emulation, segment and disk type.
        assert_eq!(old[..5], new[..5], "{}: {path}", product.name());
        if old_file.extent.len() == file.extent.len() {
            assert_eq!(old[5], new[5], "{}: {path}", product.name());
        } else {
            assert_eq!(new[5], (file.extent.len().div_ceil(2048) * 4).min(65_535).to_string());
        }
    }
}

fn assert_partitions(product: &RelayoutProduct, before: &BootReport, after: &BootReport) {
    let name = product.name();
    let numbers = |what: &str, from: usize| -> Option<Vec<u64>> {
        let fields = after.get(what)?;
        Some(fields[from..].iter().map(|field| field.parse().unwrap()).collect())
    };
    assert_eq!(before.contains_key("MBR partition 1"), after.contains_key("MBR partition 1"), "{name}");
    assert_eq!(before.contains_key("GPT disk GUID "), after.contains_key("GPT disk GUID "), "{name}");
    let sectors = product.plan.len() / 512;
    if let Some(whole) = numbers("MBR partition 1", 2) {
        let first = before["MBR partition 1"][2].parse::<u64>().unwrap();
        assert_eq!(whole, [first, sectors - first], "{name}");
        assert_eq!(after["MBR partition 1"][..2], before["MBR partition 1"][..2], "{name}");
    }
    if let Some(lba_range) = numbers("GPT lba range ", 0).or_else(|| numbers("GPT lba range 34", 0)) {
        let volume: u64 = after["ISO image size/512 "][0].parse().unwrap();
        assert_eq!(lba_range[lba_range.len() - 2..], [sectors - 34, sectors - 1], "{name}");
        assert_eq!(numbers("GPT start and size 1", 0).unwrap(), [0, volume], "{name}");
        let efi: u64 = after["El Torito boot img 2"][6].parse().unwrap();
        let count: u64 = after["El Torito boot img 2"][5].parse().unwrap();
        assert_eq!(numbers("GPT start and size 2", 0).unwrap(), [efi * 4, count], "{name}");
        assert_eq!(numbers("MBR partition 2", 2).unwrap(), [efi * 4, count], "{name}");
    }
}

#[test]
fn isoinfo_lists_all_three_kinds_of_names() {
    if !are_installed(&["isoinfo"]) {
        return;
    }
    check_each_product(|product| {
        let (written, image) = (ImageFile::new(&product.plan), product.open());
        let list = |names: &[&str]| {
            let command = [&["isoinfo"], names, &["-l", "-i", ImageFile::NAME]].concat();
            let mut listed = parse_isoinfo(&text_lines(&written.run(&command)));
            clear_sectors_of_empty_files(&mut listed);
            listed
        };
        let tree = image.volume().tree();
        let mut expected = list_tree(tree);
        clear_sectors_of_empty_files(&mut expected);
        assert_eq!(list(&["-R"]), expected, "{}", product.name());
        let iso: BTreeSet<String> = list(&[]).into_keys().map(|path| decoded_iso_path(&path)).collect();
        let paths = tree.entries().map(|(id, _)| format!("/{}", tree.iso_path(id)));
        assert_eq!(iso, paths.collect(), "{}", product.name());
        if let Some(joliet) = image.volume().joliet_tree() {
            let mut expected = list_tree(joliet);
            clear_sectors_of_empty_files(&mut expected);
            assert_eq!(list(&["-J"]), expected, "{}", product.name());
        }
        for (path, bytes) in
            read_files(&image, tree).into_iter().step_by(5).filter(|(_, bytes)| !bytes.is_empty())
        {
            let extracted = written.run(&["isoinfo", "-R", "-x", &format!("/{path}"), "-i", ImageFile::NAME]);
            assert!(extracted == bytes, "{}: {path}", product.name());
        }
    });
}

/// Removes versions and the dots of empty extensions from an ISO path.
fn decoded_iso_path(path: &str) -> String {
    let parts = path.split('/').map(|part| part.trim_end_matches(";1").trim_end_matches('.'));
    parts.collect::<Vec<_>>().join("/")
}

#[test]
fn iso9660_crate_reads_the_same_files() {
    check_each_product(|product| {
        let (written, image) = (ImageFile::new(&product.plan), product.open());
        let file = File::open(written.folder.path().join(ImageFile::NAME)).unwrap();
        let mut theirs = BTreeMap::new();
        read_with_iso9660_crate(&iso9660::ISO9660::new(file).unwrap().root, "", &mut theirs);
        let tree = image.volume().tree();
        let entries = tree.entries().filter(|(_, entry)| entry.kind != isogen::volume::EntryKind::Directory);
        let ours =
            entries.map(|(id, entry)| (tree.iso_path(id), image.source().read_extent(entry.extent).unwrap()));
        assert_same_files(&theirs, &ours.collect(), &product.name());
    });
}

/// Returns the complaints of a partition tool. All tools complain about the tables of isohybrid: partitions overlap,
/// and the first partition contains the table itself.
fn complaints(image: &ImageFile, command: &[&str]) -> BTreeSet<String> {
    let mut program = Command::new(command[0]);
    let program = program.args(&command[1..]).arg(ImageFile::NAME).current_dir(image.folder.path());
    let output = program.env("PATH", path_with_sbin()).output().unwrap();
    let text = [output.stdout, output.stderr].concat();
    let is_complaint = |line: &&str| {
        let line = line.to_lowercase();
        ["problem", "error", "warning", "overlap", "invalid", "corrupt", "mismatch"]
            .iter()
            .any(|it| line.contains(it))
    };
    let text = String::from_utf8(text).unwrap();
    // The alignment of partitions for encrypted disks depends on the lengths of files.
    let is_luck =
        |line: &&str| line.contains("disk encryption tools") || line.starts_with("No problems found.");
    text.lines().filter(is_complaint).filter(|line| !is_luck(line)).map(str::to_owned).collect()
}

/// Returns `PATH` with the folders of programs for administrators, which a user's `PATH` may not contain.
fn path_with_sbin() -> String {
    format!("{}:/usr/sbin:/sbin", std::env::var("PATH").unwrap_or_default())
}

fn are_partition_tools_installed() -> bool {
    let path = path_with_sbin();
    let there = |program: &str| path.split(':').any(|folder| Path::new(folder).join(program).is_file());
    (there("sgdisk") && there("sfdisk")) || are_installed(&["sgdisk", "sfdisk"])
}

#[test]
fn partition_tools_report_no_new_problems() {
    if !are_partition_tools_installed() {
        return;
    }
    check_each_product(|product| {
        let (base, new) = (ImageFile::from_bytes(&product.fixture.bytes), ImageFile::new(&product.plan));
        for command in [["sgdisk", "-v"], ["sfdisk", "--verify"]] {
            let (before, after) = (complaints(&base, &command), complaints(&new, &command));
            let more: Vec<_> = after.difference(&before).collect();
            assert!(more.is_empty(), "{}: {command:?}: {more:#?}", product.name());
        }
    });
}

/// The tools that the tests above use must detect damage.
#[test]
fn partition_tools_detect_a_broken_table() {
    let Some(product) = crate::product::products().iter().find(|it| it.base.partitions().gpt.is_some())
    else {
        panic!("no product with a GPT");
    };
    if !are_partition_tools_installed() {
        return;
    }
    let mut bytes = product.plan.read_all(64 << 20).unwrap();
    bytes[1024 + 40] ^= 1;
    let (sound, broken) = (ImageFile::new(&product.plan), ImageFile::from_bytes(&bytes));
    assert_ne!(complaints(&broken, &["sgdisk", "-v"]), complaints(&sound, &["sgdisk", "-v"]));
}
