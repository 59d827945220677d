//! What programs that share no code with this crate make of every product.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::path::Path;
use std::process::Command;

use crate::product::{Product, Written, assert_same_files, each, files};
use crate::readers::{have, isoinfo, lines, ours, read_by_other_crate, without_empty, xorriso};

/// Loads an image with xorriso, which must have no complaint, and gives what it reports.
fn loaded(written: &Written, more: &[&str]) -> Vec<String> {
    let strict = ["xorriso", "-return_with", "WARNING", "32", "-osirrox", "on"];
    lines(&written.run(&[&strict[..], more].concat()))
}

#[test]
fn xorriso_reads_and_extracts_both_trees() {
    if !have(&["xorriso"]) {
        return;
    }
    each(|product| {
        let (written, image) = (Written::new(&product.plan), product.open());
        let load =
            ["-indev", Written::NAME, "-find", "/", "-exec", "lsdl", "--", "-extract", "/", "extracted"];
        let listed = xorriso(&loaded(&written, &load));
        let tree = image.volume().tree();
        let lengths = ours(tree).into_iter().map(|(path, data)| (path, data.map(|(len, _)| len)));
        assert_eq!(listed, lengths.collect(), "{}", product.name());
        assert_same_files(&written.take_files("extracted"), &files(&image, tree), &product.name());

        let Some(joliet) = image.volume().joliet_tree() else { return };
        let load = ["-read_fs", "norock", "-indev", Written::NAME, "-extract", "/", "extracted"];
        loaded(&written, &load);
        assert_same_files(&written.take_files("extracted"), &files(&image, joliet), &product.name());
    });
}

/// Reads the whole medium, as a drive would.
#[test]
fn every_block_is_read() {
    if !have(&["xorriso"]) {
        return;
    }
    each(|product| {
        let written = Written::new(&product.plan);
        let report = loaded(&written, &["-indev", Written::NAME, "-check_media", "--"]);
        let regions: Vec<&String> = report.iter().filter(|line| line.starts_with("Media region")).collect();
        let sectors = product.open().volume().primary().space_size.to_string();
        let good = |line: &&&String| line.contains("+ good") && line.contains(&format!(" {sectors} ,"));
        assert_eq!(regions.iter().filter(good).count(), 1, "{}: {report:?}", product.name());
        // Behind the volume there is only what disks need.
        let fine = |line: &&String| line.contains("+ good") || line.contains("0 untested");
        assert!(regions.iter().all(fine), "{}: {report:?}", product.name());
    });
}

/// A report line's fields, by what it is about, such as `El Torito boot img : 1`.
type Report = BTreeMap<String, Vec<String>>;

fn reported(written: &Written) -> Report {
    let load = ["-indev", Written::NAME, "-report_el_torito", "plain", "-report_system_area", "plain"];
    let mut report = Report::new();
    for line in loaded(written, &load) {
        let Some((what, fields)) = line.split_once(':') else { continue };
        let mut fields: Vec<String> = fields.split_whitespace().map(str::to_owned).collect();
        let numbered = fields.first().is_some_and(|first| first.parse::<u8>().is_ok()) && fields.len() > 1;
        let number = if numbered { fields.remove(0) } else { String::new() };
        report.insert(format!("{} {number}", what.trim()), fields);
    }
    report
}

/// What of a report may differ, because it is about places and sizes; these are looked at one by one. (xorriso guesses the
/// heads from the last sector's address, which more than one number may explain.)
fn is_place(what: &str) -> bool {
    const PLACES: [&str; 6] = [
        "El Torito boot img",
        "ISO image size/512",
        "MBR partition ",
        "GPT lba range",
        "GPT start and size",
        "MBR heads per cyl",
    ];
    PLACES.iter().any(|place| what.starts_with(place))
}

/// Everything that xorriso says of boot catalogue and partition tables is as of the base, but for an Apple partition map,
/// which goes; and the places are those of the same boot images.
#[test]
fn boot_structures_are_as_of_the_base() {
    if !have(&["xorriso"]) {
        return;
    }
    each(|product| {
        let name = product.name();
        let base = Written::with(&product.good.bytes);
        let (before, after) = (reported(&base), reported(&Written::new(&product.plan)));
        let has_apple = before.keys().any(|what| what.starts_with("APM"));
        let same = |report: &Report| -> Report {
            let about = |what: &str| {
                what.starts_with("El Torito") || what.starts_with("MBR") || what.starts_with("GPT")
            };
            let kept = report.iter().filter(|(what, _)| about(what) && !is_place(what));
            kept.map(|(what, fields)| (what.clone(), fields.clone())).collect()
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

/// The boot images begin where files of the same names do, and of those which are as they were all is loaded as before.
fn assert_boot_images(product: &Product, before: &Report, after: &Report) {
    let image = product.open();
    let entries = |report: &Report| -> Vec<(String, Vec<String>)> {
        let entries = report.iter().filter(|(what, _)| what.starts_with("El Torito boot img"));
        entries.map(|(what, fields)| (what.replace("boot img", "img path"), fields.clone())).collect()
    };
    let (old, new) = (entries(before), entries(after));
    assert_eq!(old.len(), new.len());
    for ((path, old), (_, new)) in old.into_iter().zip(new) {
        let path = after[&path][0].trim_start_matches('/');
        let [old_file, file] = [&product.base, &image].map(|image| image.require_file(path).unwrap());
        assert_eq!(new[6], file.record.sector.to_string(), "{}: {path}", product.name());
        // Platform, activity, emulation, segment and disk type.
        assert_eq!(old[..5], new[..5], "{}: {path}", product.name());
        if old_file.extent.len() == file.extent.len() {
            assert_eq!(old[5], new[5], "{}: {path}", product.name());
        } else {
            assert_eq!(new[5], (file.extent.len().div_ceil(2048) * 4).min(65_535).to_string());
        }
    }
}

fn assert_partitions(product: &Product, before: &Report, after: &Report) {
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
    if !have(&["isoinfo"]) {
        return;
    }
    each(|product| {
        let (written, image) = (Written::new(&product.plan), product.open());
        let list = |names: &[&str]| {
            let command = [&["isoinfo"], names, &["-l", "-i", Written::NAME]].concat();
            let mut listed = isoinfo(&lines(&written.run(&command)));
            without_empty(&mut listed);
            listed
        };
        let tree = image.volume().tree();
        let mut expected = ours(tree);
        without_empty(&mut expected);
        assert_eq!(list(&["-R"]), expected, "{}", product.name());
        let iso: BTreeSet<String> = list(&[]).into_keys().map(|path| decoded(&path)).collect();
        let paths = tree.entries().map(|(id, _)| format!("/{}", tree.iso_path(id)));
        assert_eq!(iso, paths.collect(), "{}", product.name());
        if let Some(joliet) = image.volume().joliet_tree() {
            let mut expected = ours(joliet);
            without_empty(&mut expected);
            assert_eq!(list(&["-J"]), expected, "{}", product.name());
        }
        for (path, bytes) in files(&image, tree).into_iter().step_by(5).filter(|(_, bytes)| !bytes.is_empty())
        {
            let extracted = written.run(&["isoinfo", "-R", "-x", &format!("/{path}"), "-i", Written::NAME]);
            assert!(extracted == bytes, "{}: {path}", product.name());
        }
    });
}

/// An ISO path without versions and the dots of empty extensions.
fn decoded(path: &str) -> String {
    let parts = path.split('/').map(|part| part.trim_end_matches(";1").trim_end_matches('.'));
    parts.collect::<Vec<_>>().join("/")
}

#[test]
fn another_crate_reads_the_same_files() {
    each(|product| {
        let (written, image) = (Written::new(&product.plan), product.open());
        let file = File::open(written.folder.path().join(Written::NAME)).unwrap();
        let mut theirs = BTreeMap::new();
        read_by_other_crate(&iso9660::ISO9660::new(file).unwrap().root, "", &mut theirs);
        let tree = image.volume().tree();
        let entries = tree.entries().filter(|(_, entry)| entry.directory.is_none());
        let ours =
            entries.map(|(id, entry)| (tree.iso_path(id), image.source().read_extent(entry.extent).unwrap()));
        assert_same_files(&theirs, &ours.collect(), &product.name());
    });
}

/// What a partition tool has to complain of. All of them find something in what isohybrid writes: partitions overlap, and
/// the first one begins with the table itself.
fn complaints(written: &Written, command: &[&str]) -> BTreeSet<String> {
    let mut program = Command::new(command[0]);
    let program = program.args(&command[1..]).arg(Written::NAME).current_dir(written.folder.path());
    let output = program.env("PATH", path_with_sbin()).output().unwrap();
    let text = [output.stdout, output.stderr].concat();
    let is_complaint = |line: &&str| {
        let line = line.to_lowercase();
        ["problem", "error", "warning", "overlap", "invalid", "corrupt", "mismatch"]
            .iter()
            .any(|it| line.contains(it))
    };
    let text = String::from_utf8(text).unwrap();
    // Boundaries that disks with encryption would like better are a matter of luck.
    let is_luck =
        |line: &&str| line.contains("disk encryption tools") || line.starts_with("No problems found.");
    text.lines().filter(is_complaint).filter(|line| !is_luck(line)).map(str::to_owned).collect()
}

/// Administrators' programs are not on everybody's path.
fn path_with_sbin() -> String {
    format!("{}:/usr/sbin:/sbin", std::env::var("PATH").unwrap_or_default())
}

fn have_partition_tools() -> bool {
    let path = path_with_sbin();
    let there = |program: &str| path.split(':').any(|folder| Path::new(folder).join(program).is_file());
    (there("sgdisk") && there("sfdisk")) || have(&["sgdisk", "sfdisk"])
}

#[test]
fn partition_tools_complain_no_more_than_of_the_base() {
    if !have_partition_tools() {
        return;
    }
    each(|product| {
        let (base, new) = (Written::with(&product.good.bytes), Written::new(&product.plan));
        for command in [["sgdisk", "-v"], ["sfdisk", "--verify"]] {
            let (before, after) = (complaints(&base, &command), complaints(&new, &command));
            let more: Vec<_> = after.difference(&before).collect();
            assert!(more.is_empty(), "{}: {command:?}: {more:#?}", product.name());
        }
    });
}

/// Damage must be seen by the tools on which the tests above rely.
#[test]
fn partition_tools_see_a_broken_table() {
    let Some(product) = crate::product::products().iter().find(|it| it.base.partitions().gpt.is_some())
    else {
        panic!("no product with a GPT");
    };
    if !have_partition_tools() {
        return;
    }
    let mut bytes = product.plan.read_all(64 << 20).unwrap();
    bytes[1024 + 40] ^= 1;
    let (sound, broken) = (Written::new(&product.plan), Written::with(&bytes));
    assert_ne!(complaints(&broken, &["sgdisk", "-v"]), complaints(&sound, &["sgdisk", "-v"]));
}
